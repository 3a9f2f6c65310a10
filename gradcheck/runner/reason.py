"""Why a worker died, in one line: from how it ended and what it printed before."""

import os
import re
import signal

#: What gradcheck.bindings prints when ggml calls the abort callback.
ABORT_MARK = "ggml-abort: "

#: Where faulthandler starts to print; what comes after it is Python's stack, not a message.
_PYTHON_DUMP = "Fatal Python error:"

_PLACE = re.compile(r"^(?P<file>\S.*?):(?P<line>\d+): (?P<text>.*)$")
_FUNCTION = re.compile(r"^ggml_\w+: ")
_NO_MEMORY = re.compile(
    r"out of memory|insufficient memory|not enough memory|cannot allocate|failed to allocate|bad_alloc"
    r"|OutOfDeviceMemory|OutOfHostMemory",
    re.IGNORECASE,
)


def reason_of_death(status: int, log: str) -> str:
    """The reason of a crash.

    status: as os.waitpid gives it
    log: what the worker printed while it had the job
    """
    sentence = abort_sentence(log)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGABRT:
        ending = f"aborted: {sentence}" if sentence else "aborted without a message"
    elif code == -signal.SIGKILL:
        ending = "killed by SIGKILL (from outside, or by the system for want of memory)"
    elif code < 0:
        ending = f"killed by {_signal_name(-code)}"
    else:
        ending = f"exited with code {code} without an answer"
    if sentence and _NO_MEMORY.search(sentence):
        return f"out of memory: {sentence}"
    return ending


def abort_sentence(log: str) -> str:
    """The sentence that says most about an abort; "" where nothing was printed.

    ggml often aborts with a bare "fatal error" after it has printed the useful sentence.
    """
    lines = [line.strip() for line in log.partition(_PYTHON_DUMP)[0].splitlines() if line.strip()]
    marked = [at for at, line in enumerate(lines) if line.startswith(ABORT_MARK)]
    if marked:
        before, last = lines[: marked[-1]], lines[marked[-1]].removeprefix(ABORT_MARK)
    elif lines:
        before, last = lines[:-1], lines[-1]
    else:
        return ""
    match = _PLACE.match(last)
    text = match["text"] if match else last
    where = f" at {os.path.basename(match['file'])}:{match['line']}" if match else ""
    if text == "fatal error":
        return _FUNCTION.sub("", before[-1]) if before else text + where
    if text.endswith(" error"):  # "CUDA error": the sentence stands some lines before
        named = [line for line in before if line.startswith(f"{text}: ")]
        return named[-1] if named else text + where
    return _FUNCTION.sub("", text.removeprefix("what():").strip()) + where


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
