"""Servers of ggml's RPC backend: reaching one, and being one."""

import ctypes
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from gradcheck.bindings.abort import Abort
from gradcheck.bindings.library import Library, device_info, load
from gradcheck.model.errors import LibraryError
from gradcheck.model.run import DeviceInfo
from gradcheck.model.server import Server

#: A server that greets nobody for so long before a run is serving somebody else: it takes one client at a time.
GREETING_S = 5.0
#: In a run it may still be at the work of a worker that was killed.
RUN_GREETING_S = 30.0
#: One that crashed and is started again is there within this time.
RESTART_S = 2.0
_PAUSE_S = 0.02
_ANY_ADDRESS = "0.0.0.0"

#: What this process knows of servers: those that were waited for in vain, and why others are hopeless.
_absent: set[str] = set()
_hopeless: dict[str, str] = {}


def connect(library: Library, server: Server, *, in_run: bool = True) -> Any:
    """The handle of a server's device. Raises LibraryError where it does not answer.

    in_run: a server that was there may be away for a moment, which this process waits for once
    """
    ggml = _with_rpc(library)
    until = time.monotonic() + (RESTART_S if in_run and server.endpoint not in _absent else 0.0)
    while not (registry := _registry(library, server, RUN_GREETING_S if in_run else GREETING_S)):
        if time.monotonic() >= until:
            _absent.add(server.endpoint)
            raise LibraryError(f"the RPC server {server.endpoint} {_why_not(server)}")
        time.sleep(_PAUSE_S)
    count = ggml.ggml_backend_reg_dev_count(registry)
    if server.device >= count:
        devices = "1 device" if count == 1 else f"{count} devices"
        raise LibraryError(f"the RPC server {server.endpoint} has {devices}, and so no device {server.device}")
    return ggml.ggml_backend_reg_dev_get(registry, server.device)


def server_info(server: Server) -> DeviceInfo:
    """A server's device, under the name that -b takes. Raises LibraryError where the server does not answer."""
    library = load()
    handle = connect(library, server, in_run=False)
    return device_info(library.ggml, handle, name=str(server))


def start_server(server: Server, device: str, threads: int, on_listening: Callable[[], None]) -> NoReturn:
    """Serve a device of this ggml for as long as this process lives. Raises LibraryError where that fails.

    on_listening: called on another thread as soon as clients can connect
    """
    library = load()
    ggml = _with_rpc(library)
    handles = [h for h in library.devices() if ggml.ggml_backend_dev_name(h).decode() == device]
    if not handles:
        raise LibraryError(f"this ggml has no device {device}")
    listener = threading.Thread(target=_await_listening, args=(server, on_listening), daemon=True)
    listener.start()
    array = (ctypes.c_void_p * 1)(handles[0])
    ggml.ggml_backend_rpc_start_server(server.endpoint.encode(), None, threads, 1, array)
    raise LibraryError(f"ggml could not serve {device} on {server.endpoint}")


def _with_rpc(library: Library) -> Any:
    if not getattr(library.ggml, "GGML_USE_RPC", False):
        raise LibraryError("this ggml was built without RPC; `make backends` builds one that has it")
    return library.ggml


def _registry(library: Library, server: Server, greeting_s: float) -> Any:
    """What ggml knows a server by, None where nobody listens. Raises LibraryError where it is no use to go on."""
    endpoint = server.endpoint
    if endpoint in _hopeless:
        raise LibraryError(_hopeless[endpoint])
    add = library.ggml.ggml_backend_rpc_add_server
    try:
        return library.builder.run(lambda: add(endpoint.encode()), patience_s=greeting_s)
    except TimeoutError:
        # ggml holds a lock while it waits, so that every later call would wait too.
        says = f"does not answer within {greeting_s:.0f} s; does it serve another client? It takes one at a time"
    except Abort as abort:
        says = f"does not speak ggml's RPC protocol ({abort.message})"
    _hopeless[endpoint] = f"the RPC server {endpoint} {says}"
    raise LibraryError(_hopeless[endpoint])


def _why_not(server: Server) -> str:
    try:
        socket.create_connection((server.host, server.port), timeout=1.0).close()
    except OSError as error:
        return f"does not answer ({error.strerror or error})"
    return "speaks another version of ggml's RPC protocol"


def _await_listening(server: Server, on_listening: Callable[[], None]) -> None:
    host = "127.0.0.1" if server.host == _ANY_ADDRESS else server.host
    while True:
        try:
            socket.create_connection((host, server.port), timeout=1.0).close()
        except OSError:
            time.sleep(_PAUSE_S)
        else:
            on_listening()
            return
