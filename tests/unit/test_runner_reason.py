"""One line from a wait status and a log."""

import signal

import pytest

from gradcheck.runner.reason import abort_sentence, reason_of_death

DUMP = "Fatal Python error: Aborted\n\nCurrent thread 0x1 (most recent call first):\n  File x\n"


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("", ""),
        (DUMP, ""),
        ("ggml-abort: /x y/ggml.c:6801: GGML_ASSERT(a) failed\n", "GGML_ASSERT(a) failed at ggml.c:6801"),
        (
            "ggml_compute_backward: unsupported unary op for backward pass: GELU\n"
            "ggml-abort: /a/ggml.c:6801: fatal error\n" + DUMP,
            "unsupported unary op for backward pass: GELU",
        ),
        ("ggml-abort: /a/ggml.c:6801: fatal error\n", "fatal error at ggml.c:6801"),
        (
            "CUDA error: an illegal memory access was encountered\n  current device: 0, in function f at g.cu:2\n"
            "ggml-abort: /a/ggml-cuda.cu:88: CUDA error\n",
            "CUDA error: an illegal memory access was encountered",
        ),
        ("ggml-abort: first\nnoise\nggml-abort: a.c:1: second\nlater\n", "second at a.c:1"),
        ("one\nfree(): invalid pointer\n" + DUMP, "free(): invalid pointer"),
        ("terminate called after throwing\n  what():  vector::at\n", "vector::at"),
    ],
)
def test_the_sentence_that_says_most(log: str, sentence: str) -> None:
    assert abort_sentence(log) == sentence


@pytest.mark.parametrize(
    ("status", "log", "reason"),
    [
        (signal.SIGABRT, "", "aborted without a message"),
        (signal.SIGABRT, "ggml-abort: f.c:1: no such axis\n", "aborted: no such axis at f.c:1"),
        (signal.SIGABRT, "what():  std::bad_alloc\n", "out of memory: std::bad_alloc"),
        (
            signal.SIGABRT,
            "CUDA error: out of memory\n  x\nggml-abort: g.cu:88: CUDA error\n",
            "out of memory: CUDA error: out of memory",
        ),
        (signal.SIGSEGV, "something printed\n", "killed by SIGSEGV"),
        (signal.SIGFPE, "", "killed by SIGFPE"),
        (1 << 8, "", "exited with code 1 without an answer"),
    ],
)
def test_the_reason_of_a_death(status: int, log: str, reason: str) -> None:
    assert reason_of_death(int(status), log) == reason
