"""Known failures and second tries."""

from dataclasses import replace

import pytest

from gradcheck.model.case import KnownFailure
from gradcheck.model.job import Job, Settings
from gradcheck.model.place import Place
from gradcheck.model.result import Outcome, Placement
from gradcheck.model.status import Status
from gradcheck.runner.verdict import after_crash, judge
from tests.builders import make_case


def job(*known: KnownFailure, mode: str = "grad") -> Job:
    case = replace(make_case("out = a"), name="v=0", place=Place("x.yaml", 3), known=known)
    return Job(4, mode, case, "CPU", Settings())


@pytest.mark.parametrize(
    ("known", "status", "expected"),
    [
        (Status.FAIL, Status.FAIL, Status.XFAIL),
        (Status.CRASH, Status.CRASH, Status.XFAIL),
        (Status.FAIL, Status.PASS, Status.XPASS),
        (Status.FAIL, Status.CRASH, Status.CRASH),
        (Status.FAIL, Status.UNSUPPORTED, Status.UNSUPPORTED),
        (Status.FAIL, Status.VACUOUS, Status.VACUOUS),
        (None, Status.FAIL, Status.FAIL),
        (None, Status.PASS, Status.PASS),
    ],
)
def test_a_known_failure_is_expected_to_fail_in_its_own_way(
    known: Status | None, status: Status, expected: Status
) -> None:
    entries = () if known is None else (KnownFailure("grad", known, "upstream", "0.15.3"),)
    result = judge(job(*entries), Outcome(status), 0.25, "printed")
    assert result.status is expected
    assert result.outcome.status is status
    assert result.known == (entries[0] if entries else None)
    assert (result.index, result.case_id, result.place.line, result.log) == (4, "OP(v=0)", 3, "printed")


def test_a_known_failure_of_another_mode_is_none() -> None:
    entry = KnownFailure("eval", Status.FAIL, "upstream", "0.15.3")
    result = judge(job(entry), Outcome(Status.FAIL), 0.0)
    assert result.status is Status.FAIL
    assert result.known is None


ON_CPU = KnownFailure("eval", Status.FAIL, "upstream", "0.15.3", target="cpu")
CRASH_ON_CPU = KnownFailure("eval", Status.CRASH, "upstream", "0.15.3", target="cpu")
SPLIT = Placement((("MUL_MAT", "BLAS"), ("ADD", "CPU")), 2, "CPU")
TARGET_ALONE = Placement((("MUL_MAT", "BLAS"),), 1, "CPU")


@pytest.mark.parametrize(
    ("target", "sched", "outcome", "expected"),
    [
        ("CPU", False, Outcome(Status.FAIL), Status.XFAIL),
        ("CPU", False, Outcome(Status.PASS), Status.XPASS),
        ("BLAS", False, Outcome(Status.FAIL), Status.FAIL),
        # What the scheduler gave to the CPU fails as on the CPU.
        ("BLAS", True, Outcome(Status.FAIL, placement=SPLIT), Status.XFAIL),
        ("BLAS", True, Outcome(Status.FAIL, placement=TARGET_ALONE), Status.FAIL),
        ("BLAS", True, Outcome(Status.TIMEOUT), Status.TIMEOUT),
        # Other memory, or the same kernel as reference: no sign that ggml is mended.
        ("BLAS", True, Outcome(Status.PASS, placement=SPLIT), Status.PASS),
        ("CPU", True, Outcome(Status.PASS, placement=SPLIT), Status.PASS),
        ("rpc://CPU@h:5", False, Outcome(Status.PASS), Status.PASS),
        # A server says nothing of what it has; the user does.
        ("rpc://CPU@h:5", False, Outcome(Status.FAIL), Status.XFAIL),
        ("rpc://Vulkan0@h:5", False, Outcome(Status.FAIL), Status.FAIL),
        ("rpc://h:5", False, Outcome(Status.FAIL), Status.FAIL),
    ],
)
def test_a_known_failure_of_a_device_concerns_what_computed(
    target: str, sched: bool, outcome: Outcome, expected: Status
) -> None:
    asked = replace(job(ON_CPU, mode="eval"), target=target, settings=Settings(sched=sched))
    assert judge(asked, outcome, 0.0).status is expected


@pytest.mark.parametrize(
    ("reference", "expected"), [("numpy", Status.XPASS), ("CPU", Status.PASS), ("cpu", Status.PASS)]
)
def test_a_device_compared_with_itself_shows_nothing(reference: str, expected: Status) -> None:
    asked = replace(job(ON_CPU, mode="eval"), settings=Settings(reference=reference))
    assert judge(asked, Outcome(Status.PASS), 0.0).status is expected


@pytest.mark.parametrize(
    ("backward", "status", "expected"),
    [
        (True, Status.CRASH, Status.XFAIL),
        (False, Status.CRASH, Status.CRASH),
        (True, Status.FAIL, Status.FAIL),
        (True, Status.PASS, Status.PASS),
    ],
)
def test_a_backward_graph_fails_in_eval_as_in_grad(backward: bool, status: Status, expected: Status) -> None:
    entry = KnownFailure("grad", Status.CRASH, "upstream", "0.15.3")
    asked = replace(job(entry, mode="eval"), settings=Settings(backward=backward))
    assert judge(asked, Outcome(status), 0.0).status is expected


@pytest.mark.parametrize(("sched", "expected"), [(True, Status.XFAIL), (False, Status.CRASH)])
def test_a_crash_through_the_scheduler_can_be_the_cpus(sched: bool, expected: Status) -> None:
    asked = replace(job(ON_CPU, CRASH_ON_CPU, mode="eval"), target="BLAS", settings=Settings(sched=sched))
    assert judge(asked, Outcome(Status.CRASH), 0.0).status is expected


def test_what_is_known_of_the_target_itself_comes_first() -> None:
    everywhere = KnownFailure("eval", Status.FAIL, "a wrong rule", "0.15.3")
    asked = replace(job(ON_CPU, everywhere, mode="eval"), target="rpc://CPU@h:5")
    assert judge(asked, Outcome(Status.FAIL), 0.0).known == everywhere
    assert judge(asked, Outcome(Status.PASS), 0.0).status is Status.XPASS


@pytest.mark.parametrize(
    ("status", "served", "note"),
    [
        (
            Status.PASS,
            0,
            "crashed once (killed by SIGSEGV) in a worker that had run 0 other cases; passed in a fresh one",
        ),
        (
            Status.TIMEOUT,
            1,
            "crashed once (killed by SIGSEGV) in a worker that had run 1 other case; ended as TIMEOUT in a fresh one",
        ),
    ],
)
def test_a_second_try_says_that_it_is_one(status: Status, served: int, note: str) -> None:
    assert after_crash(Outcome(status, notes=("a",)), "killed by SIGSEGV", served).notes == ("a", note)


def test_two_crashes_need_no_note() -> None:
    assert after_crash(Outcome(Status.CRASH, "again"), "first", 2) == Outcome(Status.CRASH, "again")


PLAIN_ENTRY = KnownFailure("grad", Status.FAIL, "upstream", "0.15.3")
VARIANT_ENTRY = KnownFailure("grad", Status.CRASH, "strides", "0.15.3", variant="strided_cotangent:*")


@pytest.mark.parametrize(
    ("variant", "status", "expected", "reason"),
    [
        ("", Status.FAIL, Status.XFAIL, "upstream"),
        ("", Status.PASS, Status.XPASS, "upstream"),
        # What is said of variants does not concern the case itself.
        ("", Status.CRASH, Status.CRASH, "upstream"),
        # A variant fails as its case does, and may pass where that fails.
        ("sliced", Status.FAIL, Status.XFAIL, "upstream"),
        ("sliced", Status.PASS, Status.PASS, "upstream"),
        ("sliced", Status.CRASH, Status.CRASH, "upstream"),
        ("strided_cotangent:permuted", Status.CRASH, Status.XFAIL, "strides"),
        ("strided_cotangent:permuted", Status.FAIL, Status.XFAIL, "upstream"),
        ("strided_cotangent:permuted", Status.PASS, Status.XPASS, "strides"),
    ],
)
def test_known_failures_of_variants(variant: str, status: Status, expected: Status, reason: str) -> None:
    asked = job(PLAIN_ENTRY, VARIANT_ENTRY)
    result = judge(replace(asked, case=replace(asked.case, variant=variant)), Outcome(status), 0.0)
    assert result.status is expected
    assert result.known is not None
    assert result.known.reason == reason
    assert result.case_id == "OP(v=0)" + (f"+{variant}" if variant else "")


def test_a_known_failure_of_a_variant_is_none_of_the_case() -> None:
    result = judge(job(VARIANT_ENTRY), Outcome(Status.CRASH), 0.0)
    assert (result.status, result.known) == (Status.CRASH, None)


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (Status.CRASH, "aborted: GGML_ASSERT(x) failed at ops.cpp:17", Status.XFAIL),
        (Status.CRASH, "aborted: GGML_ASSERT(y) failed at ops.cpp:18", Status.CRASH),
        (Status.PASS, "", Status.PASS),
    ],
)
def test_a_failure_that_is_known_by_its_words(status: Status, reason: str, expected: Status) -> None:
    entry = KnownFailure("grad", Status.CRASH, "upstream", "0.15.3", variant="sliced", says="failed at ops.cpp:17")
    asked = job(entry)
    result = judge(replace(asked, case=replace(asked.case, variant="sliced")), Outcome(status, reason), 0.0)
    assert result.status is expected
