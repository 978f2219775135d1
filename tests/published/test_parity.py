"""Golden numbers, and parity with the published closed-form package."""

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

# ESTIMANDS section 8: call, arguments, value to the digits printed there.
GOLDEN = [
    (bk.published.bayes, (GRADED, SCORES, [[0, 2], [1, 2]]), (0.575, 0.084275), 6),
    (bk.published.bayes, (GRADED, SCORES), (0.5625, 0.091998), 6),
    (bk.published.bayes_ci, (R,), (0.642857, 0.118451), 6),
    (bk.published.bayes_ci, (R,), (None, None, 0.4107, 0.875), 4),
    (bk.published.pass_at_k, (R, 1), 0.7, 12),
    (bk.published.pass_at_k, (R, 2), 0.95, 12),
    (bk.published.pass_hat_k, (R, 1), 0.7, 12),
    (bk.published.pass_hat_k, (R, 2), 0.45, 12),
    (bk.published.pass_at_k_ci, (R, 1), (0.642857, 0.118451), 6),
    (bk.published.pass_at_k_ci, (R, 1), (None, None, 0.4107, 0.875), 4),
    (bk.published.pass_at_k_ci, (R, 2), (0.839286, 0.097263), 6),
    (bk.published.pass_at_k_ci, (R, 2), (None, None, 0.6487, 1.0), 4),
    (bk.published.pass_hat_k_ci, (R, 2), (0.446429, 0.146167), 6),
    (bk.published.pass_hat_k_ci, (R, 2), (None, None, 0.1599, 0.7329), 4),
    (bk.published.maj_at_k, (R, 1), 0.7, 12),
    (bk.published.maj_at_k, (R, 2), 0.45, 12),
    (bk.published.maj_at_k, (R, 3), 0.85, 12),
    (bk.published.maj_at_k_ci, (R, 2), (0.446429, 0.146167), 6),
    (bk.published.maj_at_k_ci, (R, 2), (None, None, 0.1599, 0.7329), 4),
    (bk.published.maj_at_k_ci, (R, 3), (0.684524, 0.151958), 6),
    (bk.published.maj_at_k_ci, (R, 3), (None, None, 0.3867, 0.9824), 4),
    (bk.published.g_pass_at_k_tau, (R, 2, 0.5), 0.95, 12),
    (bk.published.g_pass_at_k_tau, (R, 2, 1.0), 0.45, 12),
    (bk.published.g_pass_at_k, (R, 2), 0.45, 12),
    (bk.published.mg_pass_at_k, (R, 2), 0.45, 12),
    (bk.published.mg_pass_at_k, (R, 3), 0.166667, 6),
    (bk.published.auc_at_k, (R, 1), 0.7, 12),
    (bk.published.auc_at_k, (R, 2), 0.825, 12),
    (bk.published.auc_at_k, (R, 3), 0.9, 12),
]


@pytest.mark.parametrize(
    ("function", "arguments", "expected", "digits"),
    GOLDEN,
    ids=[f"{row[0].__name__}-{i}" for i, row in enumerate(GOLDEN)],
)
def test_golden(function, arguments, expected, digits) -> None:
    found = np.atleast_1d(function(*arguments))
    for value, golden in zip(found, np.atleast_1d(np.array(expected, dtype=object)), strict=False):
        if golden is not None:
            assert round(float(value), digits) == golden


POINTS = ["pass_at_k", "pass_hat_k", "g_pass_at_k", "mg_pass_at_k", "maj_at_k", "auc_at_k"]


@settings(max_examples=60)
@given(
    matrix=st.tuples(st.integers(1, 12), st.integers(1, 20)).flatmap(
        lambda shape: arrays(np.int64, shape, elements=st.integers(0, 1))
    ),
    data=st.data(),
)
def test_parity_with_the_published_package(matrix, data) -> None:
    k = data.draw(st.integers(1, matrix.shape[1]))
    tau = data.draw(st.floats(0.0, 1.0))
    for name in POINTS:
        ours, theirs = getattr(bk.published, name), getattr(published, name)
        np.testing.assert_allclose(ours(matrix, k), theirs(matrix, k), rtol=1e-10, atol=1e-12)
        interval = getattr(bk.published, f"{name}_ci")(matrix, k, 0.9, (0.0, 1.0), 0.5, 2.0)
        expected = getattr(published, f"{name}_ci")(matrix, k, 0.9, (0.0, 1.0), 0.5, 2.0)
        np.testing.assert_allclose(interval, expected, rtol=1e-10, atol=2e-8)
    np.testing.assert_allclose(
        bk.published.g_pass_at_k_tau(matrix, k, tau),
        published.g_pass_at_k_tau(matrix, k, tau),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        bk.published.g_pass_at_k_tau_ci(matrix, k, tau),
        published.g_pass_at_k_tau_ci(matrix, k, tau),
        atol=2e-8,
    )
    np.testing.assert_allclose(bk.published.bayes(matrix), published.bayes(matrix), rtol=1e-10)
    np.testing.assert_allclose(bk.published.avg(matrix), published.avg(matrix), rtol=1e-10)
    np.testing.assert_allclose(
        bk.published.bayes_ci(matrix), published.bayes_ci(matrix, bounds=(0.0, 1.0)), rtol=1e-10
    )


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
            published.max_at_k_ci(graded, k, w, prior), rtol=1e-9,
        )  # fmt: skip


@pytest.mark.parametrize(("k", "message"), [(0, "1 <= k"), (6, "here N = 5"), (2.0, "1 <= k")])
def test_numbers_of_trials_that_are_none_are_refused(k, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.published.max_at_k(R, k)


INTERVALS = [f"{name}_ci" for name in POINTS]
OTHERS = ["g_pass_at_k_tau", "g_pass_at_k_tau_ci", "unanimous_at_k", "unanimous_at_k_ci"]
SHAPES = {
    "matrix": R,
    "one question as a row": [0, 1, 1, 0, 1],
    "one question as a matrix": [[0, 1, 1, 0, 1]],
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


@pytest.mark.parametrize("name", [*POINTS, *INTERVALS, *OTHERS])
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


class TestWhereWeDifferOnPurpose:
    """Every place where the published numbers are not reproduced, and why."""

    def test_intervals_of_the_mean_stay_within_the_scores(self) -> None:
        matrix = np.ones((5, 2), int)
        assert published.avg_ci(matrix)[3] > 1.3
        assert bk.published.avg_ci(matrix)[3] == 1.0

    def test_variance_of_nearly_saturated_questions_keeps_its_digits(self) -> None:
        # One question, 243 of 256: the exact variance of maj@128 is 6.0e-34 (ESTIMANDS, B2).
        matrix = np.zeros((1, 256), int)
        matrix[0, :243] = 1
        ours, theirs = (
            bk.published.maj_at_k_ci(matrix, 128)[1],
            published.maj_at_k_ci(matrix, 128)[1],
        )
        assert abs(ours**2 - 6.0e-34) < 0.1e-34
        assert abs(theirs**2 / 6.0e-34 - 1) > 1

    def test_lists_booleans_and_whole_floats_are_taken(self) -> None:
        values = {
            bk.published.pass_at_k(kind, 2) for kind in (R, np.array(R, bool), np.array(R, float))
        }
        assert values == {bk.published.pass_at_k(np.array(R), 2)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bk.published.pass_at_k(R, 6), r"1 <= k <= N, .*here N = 5; got k=6.*evaluate"),
        (lambda: bk.published.pass_at_k(R, 0), r"1 <= k <= N, .*got k=0. Try k=1"),
        (lambda: bk.published.g_pass_at_k_tau(R, 2, 1.1), r"tau must be in \[0, 1\].*got 1.1"),
        (lambda: bk.published.pass_at_k([[0, 2]], 1), "zeros and ones; got 2 at row 0, column 1"),
        (lambda: bk.published.pass_at_k([0, 2], 1), "zeros and ones; got 2 at row 0, column 1"),
        (lambda: bk.published.pass_at_k([[0, -1]], 1), "zeros and ones; got -1 at row 0, column 1"),
        (
            lambda: bk.published.pass_at_k(np.array([[0, -1]], np.int8), 1),
            "got -1 at row 0, column 1",
        ),
        (
            lambda: bk.published.pass_at_k([[0.5, 1]], 1),
            "whole numbers; got 0.5 at row 0, column 0",
        ),
        (lambda: bk.published.pass_at_k([[float("nan"), 1]], 1), "whole numbers; got nan"),
        (lambda: bk.published.pass_at_k([[0, 1], [1]], 1), "rectangle.*unequal length"),
        (lambda: bk.published.pass_at_k([], 1), "non-empty matrix"),
        (lambda: bk.published.pass_at_k([["a"]], 1), "whole numbers; got type"),
        (lambda: bk.published.pass_at_k_ci(R, 1, confidence=1.0), "confidence must lie strictly"),
        (lambda: bk.published.pass_at_k_ci(R, 1, alpha0=0.0), "alpha0 must be finite and > 0"),
        (
            lambda: bk.published.pass_at_k_ci(R, 1, alpha0="one"),
            "alpha0 must be a number; got 'one'",
        ),
        (lambda: bk.published.pass_at_k_ci(R, 1, bounds=(1.0, 0.0)), "bounds must be"),
        (
            lambda: bk.published.bayes(GRADED),
            r"in \[0, 1\], categories with a score.*must be provided",
        ),
        (
            lambda: bk.published.bayes(GRADED, SCORES, [[0]]),
            r"same number of rows as R, 2.*shape \(1, 1\)",
        ),
        (lambda: bk.published.bayes(GRADED, SCORES, [0, 1, 2]), r"flat with as many.*shape \(3,\)"),
        (lambda: bk.published.bayes(GRADED, SCORES, [[0], [1, 2]]), "R0 must be a rectangle"),
        (
            lambda: bk.published.bayes(GRADED, SCORES, [[0], [3]]),
            r"of R0 must be integers in \[0, 2\]",
        ),
        (lambda: bk.published.bayes(R, [1.0]), r"in \[0, 0\], categories with a score"),
        (lambda: bk.published.bayes(R, []), "vector of numbers"),
        (lambda: bk.published.bayes(R, ["0", "1"]), "vector of numbers"),
        (lambda: bk.published.bayes(R, [0.0, np.inf]), "finite scores"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int16, np.int64, np.float32])
@pytest.mark.parametrize("columns", [1, 7, 8, 64, 256, 2048])
def test_counting_is_the_same_for_every_layout(dtype, columns) -> None:
    from bayesatk.published._shared import count_successes

    matrix = (np.random.default_rng(columns).random((50, columns)) < 0.6).astype(dtype)
    expected = matrix.astype(int).sum(axis=1)
    for layout in (matrix, np.asfortranarray(matrix), matrix[::-1][::-1]):
        successes, trials = count_successes(layout)
        np.testing.assert_array_equal(successes, expected)
        assert trials == columns


@pytest.mark.parametrize("size", [1e-200, 1e155, 1e308])
def test_scores_of_any_size_are_only_units(size) -> None:
    matrix, w = [[0, 1, 2], [2, 2, 1]], np.array([-1.0, 0.25, 0.5])
    for function in (bk.published.bayes, bk.published.avg):
        with np.errstate(all="raise"):
            found = function(matrix, w * size)
        np.testing.assert_allclose(found, np.array(function(matrix, w)) * size, rtol=1e-14)
    assert bk.published.bayes([[0, 1]], [0.0, 0.0]) == (0.0, 0.0)
