"""A server of ggml's RPC backend, as a user names it: `rpc://HOST:PORT`, or with `/N` its device N.

ggml's protocol does not tell what a server has: `rpc://CPU@HOST:PORT` says so in its place.
"""

import re
from dataclasses import dataclass

from gradcheck.model.errors import UsageError

_SCHEME = "rpc://"
_ENDPOINT = re.compile(r"(?P<host>[^\s:/]+):(?P<port>\d{1,5})")
_DEVICE = re.compile(r"(?:(?P<serves>\w+)@)?(?P<endpoint>[^/@]*)(?:/(?P<device>\d{1,3}))?")
MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Server:
    """One device of a server; ggml's RPC knows IPv4 only.

    serves: the name that the device has over there, where the user says so
    """

    host: str
    port: int
    device: int = 0
    serves: str = ""

    @property
    def endpoint(self) -> str:
        """The address as ggml takes it."""
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        user = f"{self.serves}@" if self.serves else ""
        return f"{_SCHEME}{user}{self.endpoint}" + (f"/{self.device}" if self.device else "")


def is_server(word: str) -> bool:
    """Whether a target's name means a server rather than a device of this machine's ggml."""
    return word.lower().startswith(_SCHEME)


def parse_server(word: str) -> Server:
    """The server that a word beginning with rpc:// means. Raises UsageError."""
    match = _DEVICE.fullmatch(word[len(_SCHEME) :])
    try:
        host, port = parse_endpoint(match["endpoint"] if match else "")
    except UsageError:
        raise UsageError(f"{word} names no server; write rpc://HOST:PORT, as in rpc://127.0.0.1:50052") from None
    return Server(host, port, int(match["device"] or 0), match["serves"] or "") if match else Server(host, port)


def parse_endpoint(text: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT. Raises UsageError."""
    match = _ENDPOINT.fullmatch(text)
    if match is None or int(match["port"]) > MAX_PORT:
        raise UsageError(f"{text} is no address; write HOST:PORT, as in 127.0.0.1:50052")
    return match["host"], int(match["port"])
