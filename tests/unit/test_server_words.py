"""How a user names an RPC server, and what the plan makes of it."""

import socket

import pytest

from gradcheck.api import RunOptions
from gradcheck.model.errors import LibraryError, UsageError
from gradcheck.model.job import Settings
from gradcheck.model.run import DeviceInfo
from gradcheck.model.server import Server, is_server, parse_endpoint, parse_server
from gradcheck.plan import choose_targets, reference_for, servers_of
from gradcheck.runner.server import check_answers, free_endpoint


@pytest.mark.parametrize(
    ("word", "server"),
    [
        ("rpc://127.0.0.1:50052", Server("127.0.0.1", 50052)),
        ("RPC://host.example:1", Server("host.example", 1)),
        ("rpc://host:00080/2", Server("host", 80, 2)),
        ("rpc://CPU@host:5/1", Server("host", 5, 1, serves="CPU")),
    ],
)
def test_words_that_name_a_server(word: str, server: Server) -> None:
    assert is_server(word)
    assert parse_server(word) == server
    assert parse_server(str(server)) == server


@pytest.mark.parametrize(
    "word",
    [
        "rpc://",
        "rpc://h",
        "rpc://:1",
        "rpc://h:",
        "rpc://h:65536",
        "rpc://h:1/",
        "rpc://::1:5",
        "rpc://@h:1",
        "rpc://a b@h:1",
    ],
)
def test_words_that_name_none(word: str) -> None:
    with pytest.raises(UsageError, match=r"names no server; write rpc://HOST:PORT"):
        parse_server(word)


def test_addresses() -> None:
    assert parse_endpoint("localhost:0") == ("localhost", 0)
    with pytest.raises(UsageError, match="is no address"):
        parse_endpoint("localhost")


def test_servers_are_targets_and_references() -> None:
    there = Server("h", 5)
    options = RunOptions("eval", ("cpu", "rpc://h:5"), settings=Settings(reference="RPC://h:6"), workers=8)
    assert options.servers == (there, Server("h", 6))
    assert options.pool.workers == 1
    assert RunOptions("eval", ("cpu",), workers=8).pool.workers == 8
    assert servers_of(["rpc://h:5", "rpc://h:05", "gpu"]) == (there,)
    info = DeviceInfo(str(there), "", "RPC", "GPU", 0, 0)
    assert choose_targets(["rpc://h:05"], [info]) == [info]
    assert reference_for(info, "auto") == "CPU"


def test_a_free_port_and_one_where_nobody_listens() -> None:
    server = free_endpoint("localhost", 0)
    assert server.host == "127.0.0.1"
    with pytest.raises(LibraryError, match=r"the RPC server 127.0.0.1:\d+ does not answer \(Connection refused\)"):
        check_answers([server])
    with socket.create_server((server.host, server.port)):
        check_answers([server])
        with pytest.raises(UsageError, match=r"cannot serve on 127.0.0.1:\d+: Address already in use"):
            free_endpoint(server.host, server.port)
    with pytest.raises(LibraryError, match=r"the RPC server a..b:1 does not answer"):
        check_answers([Server("a..b", 1)])
