"""Parity with the published closed-form package, and what is refused."""

import inspect

import numpy as np
import pytest
import scorio.eval as published
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import bayesatk as bk

R = [[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]]
GRADED = [[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]]
SCORES = (0.0, 0.5, 1.0)

POINTS = [
    "pass_at_k", "pass_hat_k", "g_pass_at_k", "g_pass_at_k_tau", "mg_pass_at_k", "maj_at_k",
    "unanimous_at_k", "auc_at_k",
]  # fmt: skip


@settings(max_examples=60)
@given(
    matrix=st.tuples(st.integers(1, 12), st.integers(1, 20)).flatmap(
        lambda shape: arrays(np.int64, shape, elements=st.integers(0, 1))
    ),
    data=st.data(),
)
def test_parity_with_the_published_package(matrix, data) -> None:
    k, tau = data.draw(st.integers(1, matrix.shape[1])), data.draw(st.floats(0.0, 1.0))
    for name in POINTS:
        arguments = (matrix, k, tau) if "tau" in name else (matrix, k)
        ours, theirs = (getattr(room, name)(*arguments) for room in (bk.published, published))
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
        prior = (0.9, (0.0, 1.0), 0.5, 2.0)
        ours, theirs = (
            getattr(room, f"{name}_ci")(*arguments, *prior) for room in (bk.published, published)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=2e-8)


@settings(max_examples=40)
@given(
    graded=arrays(np.int64, (4, 6), elements=st.integers(0, 3)),
    prior=arrays(np.int64, (4, 3), elements=st.integers(0, 3)),
)
def test_parity_of_graded_scores(graded, prior) -> None:
    w = np.array([-1.0, 0.0, 0.25, 2.0])
    np.testing.assert_allclose(
        bk.published.bayes(graded, w, prior), published.bayes(graded, w, prior), rtol=1e-10
    )
    np.testing.assert_allclose(bk.published.avg(graded, w), published.avg(graded, w), rtol=1e-10)
    for k in (1, 2, 6):
        ours, theirs = bk.published.max_at_k(graded, k, w), published.max_at_k(graded, k, w)
        assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-12)
    for k in (1, 3, 9):
        np.testing.assert_allclose(
            bk.published.max_at_k_ci(graded, k, w, prior),
            published.max_at_k_ci(graded, k, w, prior),
            rtol=1e-9,
        )


SHAPES = {
    "matrix": R,
    "one question as a row": [0, 1, 1, 0, 1],
    "one trial each": [[0], [1], [1]],
    "booleans": np.array(R, bool),
    "bytes": np.array(R, np.uint8),
    "whole floats": np.array(R, float),
    "tuples": tuple(map(tuple, R)),
}


def same(ours: object, theirs: object) -> None:
    """Equal in type, all the way down, and in value."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, tuple):
        assert [type(value) for value in ours] == [type(value) for value in theirs]
    assert ours == pytest.approx(theirs, rel=1e-10, abs=2e-8)


@pytest.mark.parametrize("name", [*POINTS, *(f"{name}_ci" for name in POINTS)])
@pytest.mark.parametrize("shape", SHAPES)
def test_calls_of_the_published_package_run_here(name, shape) -> None:
    """The same arguments, by position and by name, give the same kind of answer."""
    named = {"R": SHAPES[shape], "k": np.int64(1)} | ({"tau": 0.5} if "tau" in name else {})
    ours, theirs = getattr(bk.published, name), getattr(published, name)
    if name.endswith("_ci"):
        same(ours(**named), theirs(**named))
        named |= {"confidence": 0.8, "bounds": (0.1, 0.9), "alpha0": 0.5, "beta0": 2}
    same(ours(**named), theirs(**named))
    same(ours(*named.values()), theirs(*named.values()))
    assert inspect.signature(ours).parameters.keys() == inspect.signature(theirs).parameters.keys()
    assert [p.default for p in inspect.signature(ours).parameters.values()] == [
        p.default for p in inspect.signature(theirs).parameters.values()
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        (R,),
        ([0, 1, 1, 0],),
        (GRADED, SCORES),
        (GRADED, SCORES, [[0, 2], [1, 2]]),
        (GRADED, SCORES, [0, 2, 1, 2]),  # flat: two for each question
        (GRADED, SCORES, np.empty((2, 0), int)),
        (GRADED, SCORES, []),
        ([0, 1, 2], SCORES, [2, 2]),
        ([0, 1, 2], SCORES, [[2, 2]]),
        (R, (False, True)),
        (R, (3, -2)),
        ([[0, 0], [0, 0]], [0.25]),
        (GRADED, (2.0, 2.0, 2.0)),
    ],
)
def test_scored_calls_of_the_published_package_run_here(arguments) -> None:
    inside = {"confidence": 0.8, "bounds": (0.3, 0.6)}
    same(bk.published.bayes(*arguments), published.bayes(*arguments))
    same(bk.published.bayes_ci(*arguments, **inside), published.bayes_ci(*arguments, **inside))
    same(bk.published.avg(*arguments[:2]), published.avg(*arguments[:2]))
    same(bk.published.avg_ci(*arguments[:2], **inside), published.avg_ci(*arguments[:2], **inside))


def test_a_number_of_trials_is_a_whole_number() -> None:
    for k in (1.0, 1.5, True, "1"):
        for package in (published, bk.published):
            with pytest.raises((TypeError, ValueError), match="k"):
                package.pass_at_k(R, k)


def test_variance_of_nearly_saturated_questions_keeps_the_digits_that_the_package_loses() -> None:
    """One question, 243 of 256: the exact variance of maj@128 is 6.0e-34."""
    matrix = np.zeros((1, 256), int)
    matrix[0, :243] = 1
    ours, theirs = (room.maj_at_k_ci(matrix, 128)[1] for room in (bk.published, published))
    assert abs(ours**2 - 6.0e-34) < 0.1e-34
    assert abs(theirs**2 / 6.0e-34 - 1) > 1


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("pass_at_k", (R, 6), r"1 <= k <= N, .*here N = 5; got k=6.*evaluate"),
        ("pass_at_k", (R, 0), r"1 <= k <= N, .*got k=0. Try k=1"),
        ("max_at_k", (R, 6), "here N = 5"),
        ("max_at_k", (R, 0), "1 <= k"),
        ("g_pass_at_k_tau", (R, 2, 1.1), r"tau must be in \[0, 1\].*got 1.1"),
        ("pass_at_k", ([[0, 2]], 1), "zeros and ones; got 2 at row 0, column 1"),
        ("pass_at_k", (np.array([0, -1], np.int8), 1), "got -1 at row 0, column 1"),
        ("pass_at_k", ([[0.5, 1]], 1), "whole numbers; got 0.5 at row 0, column 0"),
        ("pass_at_k", ([[np.nan, 1]], 1), "whole numbers; got nan"),
        ("pass_at_k", ([[0, 1], [1]], 1), "rectangle.*unequal length"),
        ("pass_at_k", ([], 1), "non-empty matrix"),
        ("pass_at_k", ([["a"]], 1), "whole numbers; got type"),
        ("pass_at_k_ci", (R, 1, 1.0), "confidence must lie strictly"),
        ("pass_at_k_ci", (R, 1, 0.9, (1.0, 0.0)), "bounds must be"),
        ("pass_at_k_ci", (R, 1, 0.9, (0.0, 1.0), 0.0), "alpha0 must be finite and > 0"),
        ("pass_at_k_ci", (R, 1, 0.9, (0.0, 1.0), "one"), "alpha0 must be a number; got 'one'"),
        ("bayes", (GRADED,), r"in \[0, 1\], categories with a score.*must be provided"),
        ("bayes", (GRADED, SCORES, [[0]]), r"same number of rows as R, 2.*shape \(1, 1\)"),
        ("bayes", (GRADED, SCORES, [0, 1, 2]), r"flat with as many.*shape \(3,\)"),
        ("bayes", (GRADED, SCORES, [[0], [1, 2]]), "R0 must be a rectangle"),
        ("bayes", (GRADED, SCORES, [[0], [3]]), r"of R0 must be integers in \[0, 2\]"),
        ("bayes", (R, []), "vector of numbers"),
        ("bayes", (R, ["0", "1"]), "vector of numbers"),
        ("bayes", (R, [0.0, np.inf]), "finite scores"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(name, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(bk.published, name)(*arguments)


@pytest.mark.parametrize("size", [1e-200, 1e155, 1e308])
def test_scores_of_any_size_are_only_units(size) -> None:
    matrix, w = [[0, 1, 2], [2, 2, 1]], np.array([-1.0, 0.25, 0.5])
    for function in (bk.published.bayes, bk.published.avg):
        with np.errstate(all="raise"):
            scaled = function(matrix, w * size)
        np.testing.assert_allclose(scaled, np.array(function(matrix, w)) * size, rtol=1e-14)
    assert bk.published.bayes([[0, 1]], [0.0, 0.0]) == (0.0, 0.0)
