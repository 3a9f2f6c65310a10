"""RPC: a server of ours on the loopback, checked through the command line, and every way in which it can fail."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gradcheck import api
from gradcheck.model.errors import LibraryError
from gradcheck.model.event import Event, Finished
from gradcheck.model.server import parse_server
from gradcheck.model.status import Status
from tests.device.serving import Serving, endings, record, run

rpc = pytest.mark.rpc

FAMILIES = """
- {op: SILU, inputs: {a: [10, 5, 4, 3]}, graph: "out = silu(a)"}
- {op: MUL_MAT, inputs: {a: [8, 6], b: [8, 5]}, graph: "out = mul_mat(a, b)"}
- op: ROWS
  inputs: {a: [16, 8], rows: {ne: [5], type: i32, init: {kind: integers, low: 0, high: 8}}}
  graph: out = get_rows(a, rows)
- {op: VIEWED, inputs: {a: [6, 4, 3]}, graph: "out = permute(a, 1, 0, 2, 3)"}
"""
#: The client of RPC says yes to every op, and this one ends the server.
FATAL = """
- {op: BEFORE, inputs: {a: [10, 5]}, graph: "out = silu(a)"}
- {op: FATAL, inputs: {a: [6, 4], b: {ne: [6, 4], type: bf16}}, graph: "out = out_prod(a, b)"}
- {op: AFTER, inputs: {a: [10, 5]}, graph: "out = sqr(a)"}
"""
MANY = f"""
op: MANY
vars: {{n: {list(range(100, 160))}}}
inputs: {{a: [512, 512], b: [512, n]}}
graph: out = mul_mat(a, b)
"""


@pytest.fixture
def families(tmp_path: Path) -> str:
    return written(tmp_path, FAMILIES)


def written(folder: Path, text: str) -> str:
    file = folder / "rpc.yaml"
    file.write_text(text)
    return str(file)


@contextmanager
def listener(answer: bytes = b"") -> Iterator[str]:
    """A server that is none: it takes connections and says `answer`, or nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                if answer:
                    with client:
                        client.sendall(answer)
                held.append(client)

        held: list[socket.socket] = []
        threading.Thread(target=talk, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for client in held:
            client.close()


@rpc
@pytest.mark.parametrize("mode", ["eval", "grad", "support"])
def test_every_mode_runs_against_a_server(mode: str, serving: Serving, families: str) -> None:
    found = record(mode, "-b", serving.target, "--case", families)
    assert endings(found) == dict.fromkeys(("SILU", "MUL_MAT", "ROWS", "VIEWED"), ("PASS", ""))
    assert found["info"]["targets"] == [serving.target]


@rpc
def test_through_the_scheduler_a_server_computes_and_the_cpu_holds_the_indices(serving: Serving, families: str) -> None:
    found = record("eval", "-b", serving.target, "--sched", "--case", families)
    assert endings(found) == dict.fromkeys(("SILU", "MUL_MAT", "ROWS", "VIEWED"), ("PASS", ""))
    places = [result["outcome"]["placement"]["nodes"] for result in found["results"]]
    assert places == [[[op, serving.target]] for op in ("SILU", "MUL_MAT", "GET_ROWS")] + [[]]


@rpc
def test_who_says_that_a_server_has_a_cpu_gets_its_known_failures(serving: Serving) -> None:
    case = "IM2COL(form=strided_input,how=permuted)"
    for word, status in ((serving.target, "FAIL"), (f"rpc://CPU@127.0.0.1:{serving.port}", "XFAIL")):
        found = record("grad", "-b", word, "-o", case)
        assert [result["status"] for result in found["results"]] == [status]
        assert found["info"]["targets"] == [word]


@rpc
@pytest.mark.parametrize("arguments", [[], ["--sched"]])
def test_a_callback_stays_in_this_process(arguments: list[str], serving: Serving, tmp_path: Path) -> None:
    """ggml's client would send the address of a function of ours, and the server would jump there."""
    custom = written(tmp_path, '{op: CUSTOM, inputs: {a: [6]}, graph: "out = map_custom1(a, double, 1)"}')
    found = record("eval", "-b", serving.target, "--case", custom, *arguments)
    reason = f"{serving.target} cannot call back into this process, as MAP_CUSTOM1 does"
    assert endings(found) == {"CUSTOM": ("UNSUPPORTED", reason)}
    assert record("devices", "-b", serving.target)["devices"], "the server lives"


@rpc
def test_perf_and_the_server_as_a_reference(serving: Serving, families: str) -> None:
    assert run("perf", "-b", serving.target, "--case", families, "-o", "SILU", "--budget", "0.01").returncode == 0
    assert run("eval", "-b", "cpu", "--reference", serving.target, "--case", families).returncode == 0


@rpc
def test_devices_lists_a_server(serving: Serving) -> None:
    done = run("devices", "-b", serving.target)
    assert done.returncode == 0
    assert serving.target in done.stdout
    assert "RPC" in done.stdout


@rpc
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_and_frees_its_port(sent: signal.Signals, serving: Serving) -> None:
    target = serving.target.replace("rpc://", "rpc://CPU@")
    assert serving.greeting == f"serving CPU on 127.0.0.1:{serving.port}, for -b {target}; Ctrl-C ends it\n"
    code, said = serving.end(sent)
    assert (code, said.strip()) == (130, "gradcheck: interrupted")
    with Serving.start(f"127.0.0.1:{serving.port}") as again:
        assert again.port == serving.port


@rpc
def test_an_address_that_others_reach_comes_with_a_warning() -> None:
    with Serving.start("0.0.0.0:0") as serving:
        _, said = serving.end()
    assert "warning: RPC has no authentication" in said


@rpc
def test_what_cannot_be_served(serving: Serving) -> None:
    taken = run("serve", "--bind", f"127.0.0.1:{serving.port}")
    assert taken.returncode == 2
    assert taken.stderr == f"gradcheck: error: cannot serve on 127.0.0.1:{serving.port}: Address already in use\n"
    unknown = run("serve", "--bind", "127.0.0.1:0", "-b", "nope")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("gradcheck: error: no device matches nope; this ggml has ")


def test_no_server_is_one_error_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
    begin = time.monotonic()
    done = run("eval", "-b", f"rpc://{endpoint}")
    assert done.returncode == 2
    assert done.stderr == f"gradcheck: error: the RPC server {endpoint} does not answer (Connection refused)\n"
    assert time.monotonic() - begin < 10


@rpc
def test_servers_that_are_none(families: str) -> None:
    with listener() as silent:
        done = run("eval", "-b", f"rpc://{silent}", "--case", families)
        assert done.returncode == 2
        assert f"the RPC server {silent} does not answer within 5 s" in done.stderr
    with listener(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web:
        done = run("eval", "-b", f"rpc://{web}", "--case", families)
        assert done.returncode == 2
        assert f"the RPC server {web} does not speak ggml's RPC protocol" in done.stderr
        assert "Traceback" not in done.stderr


@rpc
def test_a_server_that_falls_silent_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradcheck.bindings import load, rpc

    monkeypatch.setattr(rpc, "RUN_GREETING_S", 1.0)
    with listener() as silent:
        server = parse_server(f"rpc://{silent}")
        for patience_s in (10.0, 0.5):
            begin = time.monotonic()
            with pytest.raises(LibraryError, match="does not answer within 1 s"):
                rpc.connect(load(), server)
            assert time.monotonic() - begin < patience_s


@rpc
def test_a_device_that_the_server_does_not_have(serving: Serving, families: str) -> None:
    done = run("eval", "-b", f"{serving.target}/3", "--case", families)
    assert done.returncode == 2
    assert "has 1 device, and so no device 3" in done.stderr


@rpc
def test_a_case_that_ends_the_server_is_a_crash_and_the_run_goes_on(serving: Serving, tmp_path: Path) -> None:
    found = endings(record("eval", "-b", serving.target, "--case", written(tmp_path, FATAL)))
    assert found["BEFORE"] == found["AFTER"] == ("PASS", "")
    status, reason = found["FATAL"]
    assert status == "CRASH"
    assert "Remote RPC server crashed" in reason
    code, said = serving.end()
    assert code == 130
    assert "the server ended, aborted: " in said


@rpc
def test_the_device_of_that_name_here_is_asked_first(serving: Serving, tmp_path: Path) -> None:
    target = serving.target.replace("rpc://", "rpc://CPU@")
    found = endings(record("eval", "-b", target, "--case", written(tmp_path, FATAL)))
    assert found["BEFORE"] == found["AFTER"] == ("PASS", "")
    reason = f"{target} does not take OUT_PROD(f32 [6,4,1,1], bf16 [6,4,1,1])"
    assert found["FATAL"] == ("UNSUPPORTED", reason)
    code, said = serving.end()
    assert (code, said.strip()) == (130, "gradcheck: interrupted")


@rpc
def test_a_server_that_dies_in_a_run_costs_no_time(serving: Serving, tmp_path: Path) -> None:
    file = written(tmp_path, MANY)
    died = 0.0

    def watch(event: Event) -> None:
        nonlocal died
        if isinstance(event, Finished) and event.result.index == 3:
            serving.end(signal.SIGKILL)
            died = time.monotonic()

    options = api.RunOptions("eval", (serving.target,), api.Selection(files=(file,)))
    results = api.run(options, on_event=watch).results
    assert time.monotonic() - died < 30
    assert len(results) == 60
    assert [result.status for result in results[:4]] == [Status.PASS] * 4
    # A case or two may have been done by the time that the server was dead.
    ends = results[6:]
    assert {result.status for result in ends} == {Status.ERROR}
    says = f"the RPC server 127.0.0.1:{serving.port} does not answer (Connection refused)"
    assert {result.outcome.reason for result in ends} == {says}


@pytest.mark.usefixtures("without_rpc")
def test_a_ggml_without_rpc_says_so() -> None:
    with listener() as there:
        for arguments in (["serve", "--bind", "127.0.0.1:0"], ["devices", "-b", f"rpc://{there}"]):
            done = run(*arguments)
            assert done.returncode == 2
            assert done.stderr.startswith("gradcheck: error: this ggml was built without RPC; ")


@pytest.mark.parametrize("word", ["rpc://", "rpc://127.0.0.1", "rpc://:5", "rpc://a:99999", "rpc://a:1/x"])
def test_a_word_that_names_no_server(word: str) -> None:
    done = run("eval", "-b", word)
    assert done.returncode == 2
    assert done.stderr.startswith(f"gradcheck: error: {word} names no server; write rpc://HOST:PORT")
