"""The pool with real processes: every way in which a worker can end is a result."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from gradcheck.model.case import KnownFailure, Value
from gradcheck.model.errors import LibraryError
from gradcheck.model.event import Event, Finished, Started
from gradcheck.model.job import Job, Settings
from gradcheck.model.result import Result
from gradcheck.model.status import Status
from gradcheck.runner import Pool, PoolOptions, crew
from tests.builders import make_case

ROOT = Path(__file__).resolve().parent.parent.parent
FAULTS = ROOT / "tests" / "faults"
GB = 2**30
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module", autouse=True)
def planted() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FAULTS))
        yield


@pytest.fixture(scope="module")
def shared_pool() -> Iterator[Pool]:
    """One pool for many tests: none may leave it in a state that the next one sees."""
    with Pool(options()) as pool:
        yield pool


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(options()) as pool:
        yield pool


def options(
    workers: int = 1,
    *,
    isolate: bool = True,
    modes: str = "planted_modes:MODES",
    devices: str = "planted_modes",
    preload: str = "",
) -> PoolOptions:
    return PoolOptions(workers, 2 * GB, isolate, modes, devices, preload)


def job(
    mode: str,
    index: int = 0,
    *,
    target: str = "CPU",
    timeout_s: float = 20.0,
    known: Sequence[KnownFailure] = (),
    threads: int = 1,
    **variables: Value,
) -> Job:
    case = replace(make_case("out = a"), name=f"i={index}", vars=tuple(variables.items()), known=tuple(known))
    return Job(index, mode, case, target, Settings(reference="CPU", threads=threads), timeout_s)


def results(pool: Pool, jobs: Sequence[Job]) -> list[Result]:
    found = [event.result for event in pool.run(jobs) if isinstance(event, Finished)]
    assert sorted(result.index for result in found) == [job.index for job in jobs]
    return sorted(found, key=lambda result: result.index)


def result_of(event: Event) -> Result:
    assert isinstance(event, Finished)
    return event.result


def wait_for(path: Path, seconds: float = 10.0) -> list[int]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if path.exists() and (text := path.read_text().strip()):
            return [int(pid) for pid in text.split()]
        time.sleep(0.01)
    raise AssertionError(f"{path} was not written")


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie, which an init in a container may never bury, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_gone(pid: int, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and alive(pid):
        time.sleep(0.01)
    return not alive(pid)


@pytest.mark.parametrize(
    ("mode", "status", "reason"),
    [
        ("abort", Status.CRASH, "aborted: GGML_ASSERT(a->ne[0] == 3) failed at ggml.c:12"),
        ("abort_with_sentence", Status.CRASH, "aborted: unsupported unary op for backward pass: GELU"),
        ("segfault", Status.CRASH, "killed by SIGSEGV"),
        ("exit_zero", Status.CRASH, "exited with code 0 without an answer"),
        ("sys_exit", Status.CRASH, "exited with code 3 without an answer"),
        ("kill_self", Status.CRASH, "killed by SIGKILL (from outside, or by the system for want of memory)"),
        ("huge", Status.CRASH, "out of memory: Unable to allocate 64.0 GiB"),
        ("huge_in_c", Status.CRASH, "out of memory: insufficient memory (attempted to allocate 65536 MB)"),
        ("out_of_memory", Status.CRASH, "out of memory: 8 GB on CUDA0"),
        ("garbles", Status.CRASH, "gave a garbled answer"),
        ("hangs_up", Status.CRASH, "closed its channel without an answer"),
        ("raises", Status.ERROR, "ZeroDivisionError: division by zero (planted_modes.py:"),
        ("wrong_type", Status.ERROR, "TypeError: mode wrong_type gave a str, not an Outcome"),
        ("numpy_metric", Status.ERROR, "TypeError: float32 is not a record"),
        ("no_such_mode", Status.ERROR, "KeyError"),
        ("unsupported", Status.UNSUPPORTED, "no kernel for SIN"),
        ("invalid", Status.ERROR, "a and b do not fit"),
        ("bad_language", Status.ERROR, "no function foo"),
        ("forks", Status.PASS, "the parent"),
        ("fails", Status.FAIL, "off by 2"),
    ],
)
def test_every_ending_is_a_result_and_the_next_job_runs(
    shared_pool: Pool, monkeypatch: pytest.MonkeyPatch, mode: str, status: Status, reason: str
) -> None:
    monkeypatch.setattr(crew, "HANG_UP_GRACE_S", 0.3)
    first, second = results(shared_pool, [job(mode, 0), job("ok", 1)])
    assert first.status is status
    assert first.outcome.reason.startswith(reason)
    assert first.outcome.invalid_case == (mode in ("invalid", "bad_language"))
    assert second.status is Status.PASS


def test_an_endless_loop_is_a_timeout_and_is_not_tried_again(shared_pool: Pool) -> None:
    started = time.monotonic()
    events = list(shared_pool.run([job("loop", timeout_s=0.5), job("ok", 1)]))
    assert time.monotonic() - started < 3
    assert [type(event) for event in events] == [Started, Finished, Started, Finished]
    result = result_of(events[1])
    assert result.status is Status.TIMEOUT
    assert result.outcome.reason == "no answer within 0.5 s"
    assert 0.5 <= result.elapsed_s < 2


@linux
def test_a_timeout_takes_the_processes_of_the_worker_along(shared_pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    assert shared_pool.call(job("loop_with_child", timeout_s=1.0, path=str(path))).status is Status.TIMEOUT
    (pid,) = wait_for(path)
    assert wait_gone(pid)


def test_a_traceback_is_in_the_log(shared_pool: Pool) -> None:
    result = shared_pool.call(job("raises"))
    assert "return 1 / 0" in result.log


def test_the_log_has_everything_printed_and_nothing_of_the_case_before(shared_pool: Pool) -> None:
    first, second, third = results(shared_pool, [job("prints", 7), job("ok", 8), job("prints", 9)])
    assert sorted(first.log.splitlines()) == ["from C \N{REPLACEMENT CHARACTER}", "from Python i=7", "on stderr"]
    assert second.log == ""
    assert "i=9" in third.log
    assert "i=7" not in third.log


def test_only_the_tail_of_a_long_log_is_kept(shared_pool: Pool) -> None:
    result = shared_pool.call(job("chatters"))
    assert len(result.log) == 8192
    assert result.log.endswith("the end\n")


def test_a_worker_is_used_again_until_it_dies(shared_pool: Pool) -> None:
    pids = [result.outcome.reason for result in results(shared_pool, [job("pid", 0), job("abort", 1), job("pid", 2)])]
    assert shared_pool.call(job("pid")).outcome.reason == pids[2] != pids[0]


def test_devices_are_opened_once_for_a_number_of_threads(shared_pool: Pool) -> None:
    one, again, other = (
        shared_pool.call(job("devices", threads=threads, target=target)).outcome.notes
        for target, threads in (("A", 1), ("A", 1), ("A", 2))
    )
    assert one == again
    assert one[0].startswith("A/1/")
    assert one[1].startswith("CPU/1/")
    assert other[0].startswith("A/2/")
    assert one[2] == "True"


@pytest.mark.parametrize(
    ("target", "status", "reason"),
    [
        ("ABORTS", Status.CRASH, "aborted: no such device at ggml-cuda.cu:1"),
        ("NONE", Status.ERROR, "no device NONE; there is CPU"),
    ],
)
def test_a_device_that_cannot_be_opened_gives_every_job_a_result(
    shared_pool: Pool, target: str, status: Status, reason: str
) -> None:
    for result in results(shared_pool, [job("ok", index, target=target) for index in range(4)]):
        assert result.status is status
        assert result.outcome.reason == reason


def test_a_crash_that_does_not_come_again_leaves_a_note(pool: Pool, tmp_path: Path) -> None:
    jobs = [job("ok", 0), job("flaky", 1, path=str(tmp_path / "seen")), job("ok", 2)]
    _, flaky, _ = results(pool, jobs)
    assert flaky.status is Status.PASS
    assert flaky.outcome.notes == (
        "crashed once (aborted without a message) in a worker that had run 1 other case; passed in a fresh one",
    )


def test_kill_9_of_a_worker_from_outside_is_a_crash_like_any_other(shared_pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    events = shared_pool.run([job("sleeps_once", path=str(path))])
    assert isinstance(next(events), Started)
    (pid,) = wait_for(path)
    os.kill(pid, signal.SIGKILL)
    assert isinstance(next(events), Started)
    result = result_of(next(events))
    assert result.status is Status.PASS
    assert "killed by SIGKILL" in result.outcome.notes[0]


@linux
def test_kill_9_of_the_template_costs_nothing_but_a_second_try(tmp_path: Path) -> None:
    with Pool(options(2)) as pool:
        path = tmp_path / "pid"
        jobs = [job("sleeps_once", 0, path=str(path)), *(job("naps", index) for index in range(1, 30))]
        found = []
        for event in pool.run(jobs):
            if isinstance(event, Finished):
                found.append(event.result)
                if len(found) == 3:
                    template = int(Path(f"/proc/{wait_for(path)[0]}/stat").read_text().split()[3])
                    os.kill(template, signal.SIGKILL)
    assert len(found) == 30
    assert {result.status for result in found} == {Status.PASS}
    assert any("the process that forks the workers was killed" in "".join(r.outcome.notes) for r in found)


def test_a_job_that_kills_the_template_each_time_is_a_crash(shared_pool: Pool) -> None:
    first, second = results(shared_pool, [job("kill_template", 0), job("ok", 1)])
    assert first.status is Status.CRASH
    assert second.status is Status.PASS


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    modes = ["ok", "abort", "fails", "raises", "segfault", "ok", "unsupported", "exit_zero", "huge", "prints"]
    jobs = [job(mode, index) for index, mode in enumerate(modes * 2)]
    seen = []
    for workers in (1, 2):
        with Pool(options(workers)) as pool:
            seen.append([(r.case_id, r.status, r.outcome.reason, r.outcome.metrics) for r in results(pool, jobs)])
    assert seen[0] == seen[1]


def test_workers_run_side_by_side() -> None:
    with Pool(options(2)) as pool:
        events = pool.run([job("naps", 0), job("naps", 1)])
        first, second = next(events), next(events)
        assert isinstance(first, Started)
        assert isinstance(second, Started)
        assert {first.worker, second.worker} == {0, 1}
        list(events)


def test_known_failures_are_judged(shared_pool: Pool) -> None:
    known = KnownFailure("fails", Status.FAIL, "upstream", "0.15.3")
    passes = KnownFailure("ok", Status.FAIL, "upstream", "0.15.3")
    assert shared_pool.call(job("fails", known=[known])).status is Status.XFAIL
    assert shared_pool.call(job("ok", known=[passes, known])).status is Status.XPASS


def test_inspect_asks_a_worker(pool: Pool) -> None:
    info = pool.inspect()
    assert info.devices[0].name == "CPU"
    assert info.path != f"pid {os.getpid()}"
    assert pool.call(job("pid")).outcome.reason == info.path.removeprefix("pid ")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (options(preload="planted_modes:preload_fails"), "libggml.so is not there; build it"),
        (options(preload="planted_modes:preload_aborts"), r"was killed by signal 6 \(illegal build\)"),
        (options(devices="ggml.no_such_thing"), "ggml cannot be loaded .* pip install"),
        (options(modes="planted_modes:NOTHING"), "has no attribute 'NOTHING'"),
    ],
)
def test_a_library_that_cannot_be_loaded_is_one_clear_error(broken: PoolOptions, message: str) -> None:
    with Pool(broken) as pool, pytest.raises(LibraryError, match=message):
        pool.inspect()
    with Pool(broken) as pool, pytest.raises(LibraryError, match=message):
        pool.call(job("ok"))


@linux
def test_a_run_that_is_left_stops_what_it_has_started(shared_pool: Pool, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    events = shared_pool.run([job("sleeps", path=str(path))])
    assert isinstance(events, Generator)
    next(events)
    (pid,) = wait_for(path)
    events.close()
    assert wait_gone(pid)
    assert shared_pool.call(job("ok")).status is Status.PASS


def test_in_process_gives_the_same_results(capfd: pytest.CaptureFixture[str]) -> None:
    modes = ["ok", "raises", "unsupported", "invalid", "huge", "sys_exit", "fails"]
    jobs = [job(mode, index) for index, mode in enumerate(modes) if mode != "huge"]
    seen = []
    for isolate in (True, False):
        with Pool(options(isolate=isolate)) as pool:
            assert pool.inspect().devices[0].name == "CPU"
            seen.append([(r.case_id, r.status, r.outcome.reason) for r in results(pool, jobs)])
    assert seen[0] == seen[1]
    capfd.readouterr()


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with it ignored
sys.path[:0] = [{faults!r}, {root!r}]
from tests.unit.test_runner_pool import job, options
from gradcheck.runner import Pool
with Pool(options(2)) as pool:
    for event in pool.run([job("sleeps", i, path={path!r}) for i in range(4)]):
        print(event, flush=True)
"""


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_parent_that_is_stopped_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "pids"
    code = PARENT.format(faults=str(FAULTS), root=str(ROOT), path=str(path))
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    pids = wait_for(path)
    while len(pids) < 2:
        pids = wait_for(path)
    template = int(Path(f"/proc/{pids[0]}/stat").read_text().split()[3])
    started = time.monotonic()
    parent.send_signal(number)
    _, err = parent.communicate(timeout=10)
    assert time.monotonic() - started < 2
    assert (b"KeyboardInterrupt" in err) == (number == signal.SIGINT)
    for pid in (*pids, template):
        assert wait_gone(pid)


@linux
def test_no_file_descriptor_is_left_open() -> None:
    before = set(os.listdir("/proc/self/fd"))
    with Pool(options(2)) as pool:
        results(pool, [job(mode, index) for index, mode in enumerate(["ok", "abort", "garbles", "raises"])])
    assert set(os.listdir("/proc/self/fd")) == before


def test_too_many_workers_for_this_process_are_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(crew, "Child", refuse)
    with Pool(options()) as pool, pytest.raises(LibraryError, match=r"Too many open files.*-j"):
        pool.call(job("ok"))
