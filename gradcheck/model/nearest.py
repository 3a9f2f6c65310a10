"""What a mistyped word was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str], count: int = 1, cutoff: float = 0.5) -> str:
    """A hint ` (did you mean A or B?)` for the end of a clause; empty where nothing is near.

    count: how many words are named at most, the nearest first
    cutoff: how alike a word must be, in any case of its letters: difflib's ratio, from 0 to 1
    """
    spelled = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), spelled, n=count, cutoff=cutoff)
    return f" (did you mean {' or '.join(spelled[name] for name in found)}?)" if found else ""
