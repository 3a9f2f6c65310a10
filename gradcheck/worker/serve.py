"""A worker's loop: a line of JSON in, a line of JSON out, until the channel closes.

A job with many seeds is told of before each seed, in a line of its own.
"""

import json
import os
import socket
import sys
import time
import traceback
from typing import Any

from gradcheck.model.codec import decode, encode
from gradcheck.model.errors import GradcheckError
from gradcheck.model.job import Job
from gradcheck.model.server import Server
from gradcheck.modes.trials import Tally
from gradcheck.worker.equipment import Equipment
from gradcheck.worker.perform import outcome_of, perform


def serve(channel: socket.socket, equipment: Equipment) -> int:
    """Answer requests until the parent closes the channel; returns the exit code.

    File descriptors 1 and 2 are the log: it is emptied when a request is taken.
    """
    me = os.getpid()
    with channel, channel.makefile("rb") as requests:
        for line in requests:
            os.ftruncate(2, 0)
            request = json.loads(line)
            reply = _reply(request, equipment, channel)
            sys.stdout.flush()
            if os.getpid() != me:
                # A process that the mode forked has come back out of it: it must not answer as well.
                return 1
            _send(channel, reply)
    return 0


def _reply(request: dict[str, Any], equipment: Equipment, channel: socket.socket) -> dict[str, Any]:
    if "inspect" in request:
        return _library(equipment, decode(tuple[Server, ...], request["inspect"]))
    if "serve" in request:
        return _rpc(request["serve"], channel)
    return _job(request["job"], equipment, channel)


def _job(data: dict[str, Any], equipment: Equipment, channel: socket.socket) -> dict[str, Any]:
    me = os.getpid()

    def tell(seed: int, tally: Tally) -> None:
        if os.getpid() != me:  # see `serve`
            raise SystemExit(1)
        last = encode(tally.runs[-1]) if tally.runs else None
        measures = encode(tally.measures)
        _send(channel, {"progress": {"index": data["index"], "seed": seed, "measures": measures, "trial": last}})

    started = time.perf_counter()
    outcome = perform(decode(Job, data), equipment, tell)
    elapsed_s = time.perf_counter() - started
    try:
        encoded = encode(outcome)
    except (TypeError, ValueError) as error:  # an array's scalar, say, where a float belongs
        encoded = encode(outcome_of(error))
    return {"index": data["index"], "elapsed_s": elapsed_s, "outcome": encoded}


def _rpc(order: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    """Serve a device over ggml's RPC, and say so; the answer is why that has failed."""
    from gradcheck.bindings.rpc import start_server  # only a server needs it

    server = decode(Server, order["server"])
    try:
        start_server(server, order["device"], order["threads"], lambda: _send(channel, {"listening": str(server)}))
    except GradcheckError as error:
        return {"error": str(error)}


def _send(channel: socket.socket, message: dict[str, Any]) -> None:
    channel.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")


def _library(equipment: Equipment, servers: tuple[Server, ...]) -> dict[str, Any]:
    try:
        return {"library": encode(equipment.inspect(servers))}
    except GradcheckError as error:
        return {"error": str(error)}
    except (ImportError, OSError, AttributeError, RuntimeError, ValueError) as error:
        traceback.print_exception(error)
        return {"error": f"ggml cannot list its devices ({type(error).__name__}: {error})"}
