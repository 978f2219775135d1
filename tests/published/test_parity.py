"""Golden numbers, and parity with the published closed-form package."""

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


class TestWhereWeDifferOnPurpose:
    """Every place where the published numbers are not reproduced, and why."""

    def test_intervals_of_the_mean_stay_within_the_scores(self) -> None:
        matrix = np.ones((5, 2), int)
        assert published.avg_ci(matrix)[3] > 1.3
        assert bk.published.avg_ci(matrix).hi == 1.0

    def test_variance_of_nearly_saturated_questions_keeps_its_digits(self) -> None:
        # One question, 243 of 256: the exact variance of maj@128 is 6.0e-34 (ESTIMANDS, B2).
        matrix = np.zeros((1, 256), int)
        matrix[0, :243] = 1
        ours, theirs = (
            bk.published.maj_at_k_ci(matrix, 128).sigma,
            published.maj_at_k_ci(matrix, 128)[1],
        )
        assert abs(ours**2 - 6.0e-34) < 0.1e-34
        assert abs(theirs**2 / 6.0e-34 - 1) > 1

    def test_results_are_named(self) -> None:
        assert bk.published.bayes(R)._fields == ("mu", "sigma")
        assert bk.published.pass_at_k_ci(R, 1)._fields == ("mu", "sigma", "lo", "hi")

    def test_lists_booleans_and_whole_floats_are_taken(self) -> None:
        values = {
            bk.published.pass_at_k(kind, 2) for kind in (R, np.array(R, bool), np.array(R, float))
        }
        assert values == {bk.published.pass_at_k(np.array(R), 2)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: bk.published.pass_at_k(R, 6),
            r"k must satisfy 1 <= k <= N = 5.*got k=6.*evaluate",
        ),
        (lambda: bk.published.pass_at_k(R, 0), "k must be an integer >= 1"),
        (lambda: bk.published.pass_at_k([[0, 2]], 1), "zeros and ones; got 2 at row 0, column 1"),
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
        (lambda: bk.published.pass_at_k_ci(R, 1, alpha0=0.0), "alpha0 must be a finite number > 0"),
        (lambda: bk.published.pass_at_k_ci(R, 1, bounds=(1.0, 0.0)), "bounds must be"),
        (lambda: bk.published.bayes(GRADED), "categories 0..1, one per score"),
        (lambda: bk.published.bayes(GRADED, SCORES, [[0]]), "one row per question"),
        (lambda: bk.published.bayes(R, [1.0]), "at least two finite scores"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int16, np.int64, np.float32])
@pytest.mark.parametrize("columns", [1, 7, 8, 64, 256, 2048])
def test_counting_is_the_same_for_every_layout(dtype, columns) -> None:
    from bayesatk.published.rows import count_ones

    matrix = (np.random.default_rng(columns).random((50, columns)) < 0.6).astype(dtype)
    expected = matrix.astype(int).sum(axis=1)
    for layout in (matrix, np.asfortranarray(matrix), matrix[::-1][::-1]):
        successes, trials = count_ones(layout)
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
