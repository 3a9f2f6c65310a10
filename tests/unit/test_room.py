"""What a process may still take: asked before a case begins."""

import re
import subprocess
import sys

import pytest

from gradcheck.model.room import in_words

PROGRAM = """
import resource
from gradcheck.model.errors import NoRoom
from gradcheck.model.room import demand_room, room
before = room()
resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))
left = room()
taken = bytearray(2**28)
less = room()
demand_room(less // 2, "half of it")
try:
    demand_room(2**40, "the graph")
except NoRoom as error:
    print(before, left, less, error, sep="|")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much counts against the limit")
def test_a_limit_leaves_what_is_not_taken() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    _before, left, less, message = done.stdout.strip().split("|")
    assert 2**28 <= int(left) - int(less) <= 2**28 + 2**20
    assert int(left) < 2**30
    assert re.fullmatch(r"the graph takes about 1024\.0 GiB, and \d+ MiB of the case's memory is left", message)


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [(12, "12 bytes"), (3 * 2**20, "3 MiB"), (5 * 2**29, "2.5 GiB"), (2**20 - 1, "1,048,575 bytes")],
)
def test_sizes_in_words(nbytes: int, words: str) -> None:
    assert in_words(nbytes) == words
