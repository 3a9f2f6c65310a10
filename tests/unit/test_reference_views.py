"""Views, copies and regions of the NumPy reference."""

import numpy as np
import pytest

from tests.unit.test_reference_device import compute, program

A = np.arange(24).reshape(2, 3, 4)  # ne = 4, 3, 2


def test_views_take_strides_and_offsets_in_bytes() -> None:
    assert compute("out = view_1d(a, 3, 5 * a.nb[0])", a=A).ravel().tolist() == [5, 6, 7]
    rows = compute("out = view_2d(a, 2, 2, a.nb[2], a.nb[1] + a.nb[0])", a=A)
    assert rows[0, 0].tolist() == [[5, 6], [17, 18]]
    half = compute("out = view_2d(a, 2, 2, a.nb[2], a.nb[1] + a.nb[0])", a=("f16", A))
    assert np.array_equal(half, rows)
    box = compute("out = view_3d(a, 2, 2, 2, a.nb[1], a.nb[2], a.nb[0])", a=A)
    assert np.array_equal(box[0], A[:, :2, 1:3])


def test_a_view_of_a_view_adds_up() -> None:
    text = "v = view_2d(a, 4, 2, a.nb[1], a.nb[2])\nout = view_2d(v, 2, 2, v.nb[1], 2 * v.nb[0])"
    assert np.array_equal(compute(text, a=A)[0, 0], A[1, :2, 2:])


def test_permute_names_the_place_each_dimension_goes_to() -> None:
    opened = program("out = permute(a, 1, 2, 0, 3)", a=A)
    assert opened.ne == (2, 4, 3, 1)
    # out[i0=z, i1=x, i2=y] = a[x, y, z]
    assert np.array_equal(opened.forward()[0], A.transpose(1, 2, 0))
    assert np.array_equal(compute("out = transpose(a)", a=A)[0], A.transpose(0, 2, 1))


def test_cont_and_reshape_keep_the_order_of_elements() -> None:
    assert np.array_equal(compute("out = cont_2d(transpose(a), 6, 4)", a=A)[0, 0], A.transpose(0, 2, 1).reshape(4, 6))
    assert np.array_equal(compute("out = reshape_2d(a, 6, 4)", a=A)[0, 0], A.reshape(4, 6))


def test_cpy_writes_into_the_window_and_returns_it() -> None:
    text = "w = view_2d(t, 2, 2, t.nb[1], t.nb[0])\nout = cpy(a, w)"
    assert compute(text, a=[1, 2, 3, 4], t=np.zeros((2, 3)))[0, 0].tolist() == [[1, 2], [3, 4]]
    # The target itself holds the copy where it is read after it.
    text = "w = view_2d(t, 2, 2, t.nb[1], t.nb[0])\nout = add(repeat_4d(sum(cpy(a, w)), 3, 2, 1, 1), t)"
    assert compute(text, a=[1, 2, 3, 4], t=np.zeros((2, 3)))[0, 0].tolist() == [[10, 11, 12], [10, 13, 14]]


def test_casts_round_and_truncate() -> None:
    assert compute('out = cast(a, "i32")', a=[-1.5, 2.9]).ravel().tolist() == [-1, 2]
    assert compute('out = cast(cast(a, "f16"), "f32")', a=[1 + 2.0**-12]).item() == 1


def test_set_and_acc_leave_the_rest() -> None:
    a, b = np.arange(12).reshape(3, 4), [[10, 20], [30, 40]]
    for name, inside in (("set", [[10, 20], [30, 40]]), ("acc", [[15, 26], [39, 50]])):
        want = a.copy()
        want[1:, 1:3] = inside
        call = f"{name}(a, b, a.nb[1], a.nb[2], a.nb[3], a.nb[1] + a.nb[0])"
        assert np.array_equal(compute(f"out = {call}", a=a, b=b)[0, 0], want)
        call = f"{name}_inplace(a, b, a.nb[1], a.nb[2], a.nb[3], a.nb[1] + a.nb[0])"
        assert np.array_equal(compute(f"x = {call}\nout = add(scale(x, 0.0), a)", a=a, b=b)[0, 0], want)


def test_acc_adds_up_where_its_rows_overlap() -> None:
    out = compute("out = acc(a, b, a.nb[0], a.nb[2], a.nb[3], 0)", a=[0, 0, 0], b=[[1, 2], [10, 20]])
    assert out.ravel().tolist() == [1, 12, 20]


def test_regions_may_have_strides_of_their_own() -> None:
    out = compute("out = set(a, b, 2 * a.nb[1], a.nb[2], a.nb[3], 0)", a=np.zeros((3, 2)), b=[[1], [2]])
    assert out[0, 0].tolist() == [[1, 0], [0, 0], [2, 0]]


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_concat(dim: int) -> None:
    want = np.concatenate((A, -A), axis=2 - dim)
    assert np.array_equal(compute(f"out = concat(a, b, {dim})", a=A, b=-A)[0], want)


def test_the_second_operand_is_repeated_as_a_whole() -> None:
    out = compute("out = add(a, b)", a=np.zeros((4, 6)), b=[[1, 2, 3], [4, 5, 6]])
    assert out[0, 0].tolist() == [[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]] * 2
    assert compute("out = repeat_4d(a, 4, 1, 1, 1)", a=[1, 2]).ravel().tolist() == [1, 2, 1, 2]
    assert compute("out = repeat_back(a, b)", a=[1, 2, 10, 20], b=[0, 0]).ravel().tolist() == [11, 22]


def test_rows_by_number() -> None:
    a = np.arange(12).reshape(2, 3, 2)
    out = compute("out = get_rows(a, i)", a=a, i=("i32", [[2, 0, 2], [1, 1, 0]]))
    assert out[0].tolist() == [[[4, 5], [0, 1], [4, 5]], [[8, 9], [8, 9], [6, 7]]]
    back = compute("out = get_rows_back(g, i, c)", g=[[1, 2], [3, 4], [5, 6]], i=("i32", [1, 0, 1]), c=np.zeros((3, 2)))
    assert back[0, 0].tolist() == [[3, 4], [6, 8], [0, 0]]
    put = compute("out = set_rows(a, b, i)", a=np.zeros((3, 2)), b=[[1, 2], [3, 4]], i=("i32", [2, 0]))
    assert put[0, 0].tolist() == [[3, 4], [0, 0], [1, 2]]
