"""The hint for a mistyped word."""

import pytest

from gradcheck.model.nearest import did_you_mean


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("SILUU", " (did you mean SILU?)"),
        ("silu", " (did you mean SILU?)"),
        ("q4k", " (did you mean q4_K?)"),
        ("xyzzy", ""),
    ],
)
def test_the_nearest_word_in_any_case(word: str, said: str) -> None:
    assert did_you_mean(word, ["SILU", "MUL_MAT", "q4_K"]) == said


def test_several_words_nearest_first() -> None:
    assert did_you_mean("MULT", ["MUL_MAT", "SUB", "MUL"], count=2) == " (did you mean MUL or MUL_MAT?)"


def test_how_alike_they_must_be() -> None:
    assert did_you_mean("ab", ["abxyz"], cutoff=0.9) == ""
    assert did_you_mean("ab", ["abxyz"]) == " (did you mean abxyz?)"
