"""Values of options."""

import click
import pytest

from gradcheck.cli.parameters import FormFile, Limit, OpList, Pattern, Size


@pytest.mark.parametrize(
    ("text", "ops"),
    [
        ("SILU", ("SILU",)),
        ("SILU,MUL*", ("SILU", "MUL*")),
        (" SILU , ,MUL ", ("SILU", "MUL")),
        ("ADD(type=f16,ne=[1,1,8,1],nf=1),SILU", ("ADD(type=f16,ne=[1,1,8,1],nf=1)", "SILU")),
        ("A(x=[1,2]),B(y=(1,2))", ("A(x=[1,2])", "B(y=(1,2))")),
        ("A(x=1,B", ("A(x=1,B",)),
        ("A),B", ("A)", "B")),
    ],
)
def test_ops_split_outside_brackets(text: str, ops: tuple[str, ...]) -> None:
    assert OpList().convert(text, None, None) == ops


@pytest.mark.parametrize(
    ("text", "size"), [("512M", 2**29), ("4G", 2**32), ("1.5GiB", 3 * 2**29), ("100", 100), ("2kb", 2048)]
)
def test_sizes(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


def test_limits_and_forms() -> None:
    assert Limit().convert("maa=1e-4", None, None) == ("maa", 1e-4)
    assert FormFile().convert("json=a=b.json", None, None) == ("json", "a=b.json")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (OpList(), ","),
        (Size(), "4X"),
        (Size(), "0"),
        (Size(), "-1G"),
        (Limit(), "maa"),
        (Limit(), "maa=much"),
        (Limit(), "maa=nan"),
        (Limit(), "maa=-1"),
        (Limit(), "=1"),
        (FormFile(), "json"),
        (FormFile(), "json="),
        (FormFile(), "xml=a"),
        (Pattern(), "("),
    ],
)
def test_nonsense_is_refused(kind: OpList | Size | Limit | FormFile | Pattern, text: str) -> None:
    with pytest.raises(click.BadParameter):
        kind.convert(text, None, None)
