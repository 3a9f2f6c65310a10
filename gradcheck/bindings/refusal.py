"""What an abort during graph building means, in words for the user."""

import re
from collections.abc import Sequence

from gradcheck.bindings.abort import Abort
from gradcheck.model.errors import Aborted, InvalidCase, Unsupported


class NoBackwardRule(Unsupported):
    """ggml says itself that it has no backward rule for this op or these arguments."""


class BackwardRefused(Aborted):
    """ggml has a rule, and an assert in it or in what it calls stopped the building: a training program dies here."""


_UNSUPPORTED = re.compile(r"unsupported [\w ]+ for backward pass: \S+")
_SENTENCE = re.compile(r'&&\s*"([^"]+)"')
_NO_RULE = re.compile(
    r"not (?:yet )?implemented|only implemented|not (?:yet )?supported|unsupported|TODO: implement",
    re.IGNORECASE,
)
#: The assert that ggml comments with "inplace operations are currently not supported".
_IN_PLACE = re.compile(r"!node->view_src \|\| node->op ==")


def forward_refusal(abort: Abort, call: str, tensors: str) -> InvalidCase | Unsupported:
    """The complaint about a forward graph that ggml refuses: which call, why, and on what.

    Unsupported where ggml says that the function is still to be written, whatever it is called with.
    """
    reason = _whole(abort)
    if reason.startswith("TODO"):
        return Unsupported(f"ggml has not finished {call.partition('(')[0]}: {reason}")
    return InvalidCase(f"{call}: ggml refuses: {reason}" + (f"; {tensors}" if tensors else ""))


def backward_refusal(abort: Abort, ops: Sequence[str]) -> NoBackwardRule | BackwardRefused:
    """Why there is no backward graph: NoBackwardRule or BackwardRefused.

    ops: the ops of the forward graph, for an abort that does not name the op itself
    """
    said = f"{abort.printed}\n{abort.message}"
    if found := _UNSUPPORTED.search(said):
        return NoBackwardRule(found.group())
    if _IN_PLACE.search(abort.message):
        return NoBackwardRule("ggml has no backward for in-place operations")
    sentence = _SENTENCE.search(abort.message)
    if sentence and _NO_RULE.search(sentence.group(1)):
        return NoBackwardRule(sentence.group(1))
    if _NO_RULE.search(abort.message):
        return NoBackwardRule(abort.message)
    reason = _whole(abort)
    if reason == "fatal error":
        reason += f" (the graph has {', '.join(ops)})"
    return BackwardRefused(f"ggml aborts while building the backward graph: {reason}")


def _whole(abort: Abort) -> str:
    """The message, or what was printed before it where the message alone says nothing."""
    if abort.message == "fatal error" and abort.printed:
        return abort.printed.splitlines()[-1]
    return abort.message
