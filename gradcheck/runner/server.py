"""A child process that serves a device over ggml's RPC, started again whenever it crashes."""

import json
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gradcheck.model.codec import encode
from gradcheck.model.errors import LibraryError, UsageError
from gradcheck.model.server import Server
from gradcheck.runner.crew import Answered, Crew, Died
from gradcheck.runner.options import PoolOptions

#: How long a server may take to accept a connection.
CONNECT_S = 5.0
#: Successors of a server that listened may die before they say so, since a client that waits crashes them at once; so
#: many in a row mean that something else is wrong.
MOST_SILENT = 10


@dataclass(frozen=True, slots=True)
class Listening:
    """Clients can connect."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process that served has ended, and another one is on its way."""

    reason: str


ServerEvent = Listening | Crashed


def check_answers(servers: Iterable[Server]) -> None:
    """Raises LibraryError for a server that nobody can connect to, before any other work is done."""
    for server in servers:
        try:
            socket.create_connection((server.host, server.port), CONNECT_S).close()
        except (OSError, UnicodeError) as error:
            raise LibraryError(f"the RPC server {server.endpoint} does not answer ({_why(error)})") from error


def free_endpoint(host: str, port: int) -> Server:
    """The address to listen on; port 0 is any that is free. Raises UsageError where it cannot be had."""
    try:
        address = socket.gethostbyname(host)
        with socket.socket(socket.AF_INET) as probe:
            # As ggml does: without it the connections of a server that has just ended keep the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
            probe.listen(1)
            return Server(address, probe.getsockname()[1])
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot serve on {host}:{port}: {_why(error)}") from error


def serve(options: PoolOptions, server: Server, device: str, threads: int) -> Iterator[ServerEvent]:
    """Serve a device until the caller goes away. Raises LibraryError where ggml cannot serve it."""
    crew = Crew(options)
    request = {"serve": {"server": encode(server), "device": device, "threads": threads}}
    ever, silent = False, 0
    try:
        while True:
            crew.hire().send(request)
            listening, crash = False, ""
            while not crash:
                for news in crew.watch():
                    if isinstance(news, Died):
                        crash = news.reason
                    elif isinstance(news, Answered):
                        _check(news.line)
                        listening = True
                        yield Listening()
            ever, silent = ever or listening, 0 if listening else silent + 1
            if not ever or silent > MOST_SILENT:
                raise LibraryError(f"the process that serves {device} ended: {crash}")
            yield Crashed(crash)
    finally:
        crew.stop()


def _check(line: bytes) -> None:
    """Raises LibraryError where a server says that it cannot serve, rather than that it listens."""
    error = json.loads(line).get("error")
    if error:
        raise LibraryError(error)


def _why(error: OSError | UnicodeError) -> str:
    """What is wrong with an address; a host with an empty label is a UnicodeError."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
