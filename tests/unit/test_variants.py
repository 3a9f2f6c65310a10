"""Variants: what each function makes of a case, and which of them a run has."""

from dataclasses import replace

import pytest

from gradcheck.cases import Selection, variants_by_id
from gradcheck.language import parse_graph
from gradcheck.model.case import Case, Init, KnownFailure, Picks
from gradcheck.model.errors import UsageError
from gradcheck.model.place import Place
from gradcheck.model.status import Status
from gradcheck.variants import DEFAULT_NAMES, VARIANTS, vary
from gradcheck.variants.choose import representatives, variants_of
from tests.builders import Typed, make_case

SILU = make_case("out = silu(a)", a=(6, 5, 4, 3))
ADD = make_case("out = add(a, b)", a=(6, 5), b=(6, 5))


def no_resize(_case: Case, _size: int) -> Case | None:
    return None


def made(name: str, case: Case) -> list[Case]:
    return list(variants_of(case, [name], no_resize))


def one(name: str, case: Case) -> Case:
    (variant,) = made(name, case)
    return variant


def with_init(case: Case, init: Init) -> Case:
    return replace(case, inputs=(replace(case.inputs[0], init=init), *case.inputs[1:]))


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_named_after_its_function_and_can_be_read(name: str) -> None:
    for case in (SILU, ADD):
        for variant in made(name, case):
            assert variant.variant.split(":")[0] == name
            assert variant.id == f"{case.id}+{variant.variant}"
            assert (variant.op, variant.name, variant.place) == (case.op, case.name, case.place)
            assert variant != replace(case, variant=variant.variant), "nothing but the name has changed"
            parse_graph(variant.graph)


def test_sliced_is_a_view_with_an_offset_along_every_axis() -> None:
    variant = one("sliced", SILU)
    assert variant.inputs[0].ne == (7, 6, 5, 4)
    assert variant.graph.splitlines() == [
        "a = view_4d(a, 6, 5, 4, 3, a.nb[1], a.nb[2], a.nb[3], a.nb[0] + a.nb[1] + a.nb[2] + a.nb[3])",
        "out = silu(a)",
    ]


def test_padded_has_longer_rows() -> None:
    variant = one("padded", SILU)
    assert variant.inputs[0].ne == (7, 5, 4, 3)
    assert variant.graph.startswith("a = view_4d(a, 6, 5, 4, 3, a.nb[1], a.nb[2], a.nb[3], 0)\n")
    assert not made("padded", make_case("out = silu(a)", a=(6,)))


@pytest.mark.parametrize(
    ("name", "ne", "stored", "axes"),
    [
        ("permuted", (6, 5, 4, 3), (6, 4, 5, 3), "0, 2, 1, 3"),
        ("permuted", (6, 5, 1, 3), (6, 3, 1, 5), "0, 3, 2, 1"),
        ("permuted", (6, 1, 4, 3), (6, 1, 3, 4), "0, 1, 3, 2"),
        ("transposed", (6, 5, 4, 3), (5, 6, 4, 3), "1, 0, 2, 3"),
        ("transposed", (6, 1, 1, 3), (3, 1, 1, 6), "3, 1, 2, 0"),
    ],
)
def test_stored_in_another_order(name: str, ne: tuple[int, ...], stored: tuple[int, ...], axes: str) -> None:
    variant = one(name, make_case("out = silu(a)", a=ne))
    assert variant.inputs[0].ne == stored
    assert variant.graph == f"a = permute(a, {axes})\nout = silu(a)"


@pytest.mark.parametrize(("name", "ne"), [("permuted", (6, 5)), ("transposed", (6,)), ("transposed", (1, 5))])
def test_an_order_that_changes_nothing_is_no_variant(name: str, ne: tuple[int, ...]) -> None:
    assert not made(name, make_case("out = silu(a)", a=ne))


@pytest.mark.parametrize("name", ["sliced", "padded", "permuted", "transposed"])
def test_inputs_that_mean_something_by_their_shape_stay_as_they_are(name: str) -> None:
    case = make_case("out = get_rows(a, b)", a=(6, 5, 4, 3), b=Typed("i32", (5, 4, 3), param=False))
    assert one(name, case).inputs[1] == case.inputs[1]
    assert not made(name, with_init(SILU, Init("causal", (("past", 0),))))
    assert not made(name, replace(SILU, inputs=(replace(SILU.inputs[0], written=True),)))
    assert not made(name, replace(SILU, picks=Picks("a")))
    assert not made(name, make_case("out = silu(a)", a=(0, 5, 4, 3)))


def test_broadcast_shrinks_the_second_of_two_alike() -> None:
    found = made("broadcast", make_case("out = add(a, b)", a=(6, 5, 1, 3), b=(6, 5, 1, 3)))
    assert [v.variant for v in found] == ["broadcast:0", "broadcast:1", "broadcast:3"]
    assert [v.inputs[1].ne for v in found] == [(1, 5, 1, 3), (6, 1, 1, 3), (6, 5, 1, 1)]
    assert {v.inputs[0].ne for v in found} == {(6, 5, 1, 3)}
    assert not made("broadcast", make_case("out = add(a, b)", a=(6, 5), b=(6, 1)))


def test_alone_keeps_one_param() -> None:
    found = made("alone", ADD)
    assert [v.variant for v in found] == ["alone:a", "alone:b"]
    assert [[i.name for i in v.params] for v in found] == [["a"], ["b"]]
    assert found[0].inputs[1].reason == "alone"
    assert not made("alone", SILU)


def test_second_consumer_reads_every_param_before_and_after() -> None:
    before, after = made("second_consumer", replace(ADD, gradient="zero"))
    assert before.graph.splitlines()[1:] == [
        f"out = add(scale({name}, 0.5) if {name}.ne == out.ne else repeat(sum({name}), out), out)"
        ' if out.type == "f32" else out'
        for name in "ab"
    ]
    assert after.graph.splitlines()[1:] == [
        f'out = add(out, scale({name}, 0.5) if {name}.ne == out.ne else sum({name})) if out.type == "f32" else out'
        for name in "ab"
    ]
    assert {before.gradient, after.gradient} == {"nonzero"}
    assert not made("second_consumer", replace(SILU, op="DIAG_MASK_INF"))
    assert not made("second_consumer", make_case("a = sqr(a)\nout = silu(a)", a=(6,)))


def test_strided_cotangent_and_accumulator() -> None:
    assert [v.graph.splitlines()[-1] for v in made("strided_cotangent", SILU)] == [
        'out = cont(transpose(out)) if out.type in ["f32", "f16"] else out',
        'out = cont(permute(out, 0, 2, 1, 3)) if out.type in ["f32", "f16"] else out',
    ]
    assert one("accumulator", SILU).accumulate


def test_tails_are_what_the_family_makes_of_them() -> None:
    asked = []

    def resize(case: Case, size: int) -> Case | None:
        asked.append(size)
        if size > 40:
            return None
        return replace(case, name=f"n={size}", inputs=(replace(case.inputs[0], ne=(size, 5, 4, 3)),))

    case = make_case("out = silu(a)", a=(7, 5, 4, 3))
    found = list(variants_of(case, ["tails"], resize))
    assert asked == [1, 31, 33, 65, 129]
    assert [v.id for v in found] == [f"{case.id}+tails:{size}" for size in (1, 31, 33)]
    assert [v.inputs[0].ne[0] for v in found] == [1, 31, 33]


def test_a_row_of_one_element_is_no_variant_where_rows_are_normalised() -> None:
    for graph, sizes in (("out = silu(a)", [1, 7]), ("out = soft_max(a)", [7]), ("out = sqr(rms_norm(a, 0))", [7])):
        found = variants_of(make_case(graph, a=(12, 5)), ["tails"], lambda case, size: case if size < 9 else None)
        assert [v.variant for v in found] == [f"tails:{size}" for size in sizes]


def test_nothing_comes_through_a_relu_of_negative_numbers() -> None:
    assert one("negative", replace(SILU, op="RELU")).gradient == "zero"
    assert one("negative", SILU).gradient == "nonzero"


UNIFORM = Init()
POSITIVE = Init("positive", (("low", 0.5), ("high", 1.5)))
DISTINCT = Init("distinct", (("low", -1.0), ("high", 1.0)))
GAP = Init("uniform", (("low", -1.0), ("high", 1.0), ("grid", None), ("gap", 0.1)))
INTEGERS = Init("integers", (("low", 0), ("high", 9)))
PROBABILITIES = Init("probabilities", ())


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        (UNIFORM, {"special", "negative", "spike", "constant", "sorted"}),
        (POSITIVE, {"spike", "constant", "sorted"}),
        (DISTINCT, {"sorted"}),
        (GAP, {"negative", "sorted"}),
        (INTEGERS, set()),
        (PROBABILITIES, set()),
    ],
    ids=lambda value: value.kind if isinstance(value, Init) else "",
)
def test_data_stays_in_the_domain_that_the_init_declares(init: Init, expected: set[str]) -> None:
    names = ("special", "negative", "spike", "constant", "sorted")
    found = [v for name in names for v in made(name, with_init(SILU, init))]
    assert {v.variant for v in found} == expected
    assert all(v.inputs[0].init == replace(init, data=v.variant) for v in found)


def test_special_values_are_few() -> None:
    assert not made("special", make_case("out = silu(a)", a=(31,)))
    assert made("special", make_case("out = silu(a)", a=(32,)))


ABS = replace(make_case("out = abs(a)", a=(8, 8, 2)), op="ABS")


def test_an_op_that_has_a_value_there_is_taken_to_infinity() -> None:
    assert one("infinite", ABS).inputs[0].init.data == "infinite"
    assert one("infinite", replace(ABS, op="SOFT_MAX")).inputs[0].init.data == "negative_infinite"
    # The difference of two infinities is none, and what b changes in an infinite output is not seen.
    found = one("infinite", replace(make_case("out = add(a, b)", a=(8, 8, 2), b=(8, 8, 2)), op="ADD"))
    assert [(i.init.data, i.param) for i in found.inputs] == [("infinite", True), ("", False)]


@pytest.mark.parametrize(
    "case",
    [
        replace(ABS, op="SIN"),
        replace(ABS, graph="out = mul(abs(a), a)"),
        replace(make_case("out = abs(a)", a=(63,)), op="ABS"),
        replace(make_case("out = soft_max(a)", a=(1, 64)), op="SOFT_MAX"),
    ],
    ids=["an op with none", "another op besides", "a small tensor", "rows of one element"],
)
def test_others_are_not_taken_to_infinity(case: Case) -> None:
    assert not made("infinite", case)


def test_no_constant_where_the_exact_result_is_zero_or_none() -> None:
    norm = replace(make_case("out = norm(a, eps)", {"eps": 0.0}, a=(8, 8)), op="NORM")
    assert not made("constant", replace(norm, vars=(("eps", 0.0),)))
    assert made("constant", replace(norm, vars=(("eps", 1e-6),)))
    assert not made("constant", replace(ABS, op="SOFT_MAX_BACK"))


def test_a_case_that_is_skipped_has_no_variants() -> None:
    assert not list(variants_of(replace(SILU, skip="why"), VARIANTS, no_resize))


FIRST = replace(make_case("out = silu(a)", a=(9, 2, 2)), place=Place("x.yaml", 1), op="X")
SMALL = replace(make_case("out = silu(a)", a=(4, 2, 2)), place=Place("x.yaml", 1), op="X")
FLAT = replace(make_case("out = silu(a)", a=(4,)), place=Place("x.yaml", 1), op="X")
OTHER = replace(make_case("out = silu(a)", a=(3,)), place=Place("x.yaml", 9), op="Y")
CASES = (FLAT, FIRST, SMALL, OTHER)


def test_the_smallest_case_with_three_axes_and_two_params_stands_for_its_op() -> None:
    assert representatives(CASES) == [SMALL, OTHER]
    two = replace(make_case("out = add(a, b)", a=(9, 9, 9), b=(9, 9, 9)), op="X")
    assert representatives([*CASES, two]) == [two, OTHER]
    known = KnownFailure("grad", Status.FAIL, "upstream", "0.15.3")
    assert representatives([*CASES, replace(two, known=(known,))]) == [SMALL, OTHER]


def ids(*arguments: object, ops: tuple[str, ...] = (), default: bool = False) -> list[str]:
    wanted, *_ = arguments or (None,)
    assert wanted is None or isinstance(wanted, tuple)
    cases = [c for c in CASES if not ops or any(op.startswith(c.id) or op == c.op for op in ops)]
    return [c.id for c in vary(cases, wanted, variants_by_id(Selection(ops)), no_resize, default=default)]


def test_without_variants_the_cases_are_plain() -> None:
    assert ids() == ids(("none",)) == [c.id for c in CASES]


def test_names_give_variants_of_every_case_and_default_of_one_an_op() -> None:
    assert ids(("sliced",)) == [text for c in CASES for text in (c.id, f"{c.id}+sliced")]
    chosen = ids(("default",))
    assert chosen == ids(default=True)
    assert [text for text in chosen if text.startswith(FIRST.id)] == [FIRST.id]
    assert {text.rpartition("+")[2].split(":")[0] for text in chosen if "+" in text} <= set(DEFAULT_NAMES)
    assert f"{SMALL.id}+sliced" in chosen
    impossible = {"broadcast", "alone", "tails", "infinite"}
    assert {v.partition("+")[2].split(":")[0] for v in ids(("all",))} - {""} == set(VARIANTS) - impossible


def test_a_full_id_means_that_case_alone_and_with_a_variant_that_variant_alone() -> None:
    assert ids(ops=(SMALL.id,), default=True) == [SMALL.id]
    assert ids(("sliced",), ops=(SMALL.id,)) == [SMALL.id, f"{SMALL.id}+sliced"]
    assert f"{SMALL.id}+sliced" in ids(("default",), ops=(SMALL.id,))
    for asked in ("+sliced", "+strided_cotangent:permuted"):
        assert ids(ops=(SMALL.id + asked,), default=True) == [SMALL.id + asked]
    assert ids(ops=(f"{SMALL.id}+sliced", SMALL.id)) == [SMALL.id, f"{SMALL.id}+sliced"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("slised", "has no variant slised (did you mean sliced?)"),
        ("strided_cotangent:diagonal", "(did you mean strided_cotangent:transposed?)"),
        ("alone:a", "has no variant alone:a"),
    ],
)
def test_an_unknown_variant_of_an_id_is_told_with_what_there_is(asked: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        ids(ops=(f"{SMALL.id}+{asked}",))
    assert words in str(caught.value)
