"""Joint order of draws: margins kept, correlations those of an inverse Wishart by SciPy."""

import numpy as np
import pytest
from scipy.stats import invwishart, norm

from bayesatk.core.engine import coupling
from bayesatk.core.engine.coupling import Influence, couple, overlap_of_errors, with_mean


def _values(seed: int, systems: int = 3, questions: int = 30) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(questions) + 0.7 * rng.standard_normal((1, systems, questions))


def test_what_a_question_moves_a_mean_by() -> None:
    values = _values(1)
    even = Influence.of(values, np.ones(30))
    gap = values - values.mean(axis=2, keepdims=True)
    np.testing.assert_allclose(even.rows, gap / 30, atol=1e-12)
    np.testing.assert_allclose(even.overlap, 1.0)
    assert even.degrees_of_freedom == pytest.approx(29.0)
    weight = np.arange(1.0, 31.0)
    uneven = Influence.of(values, weight)
    share = weight / weight.sum()
    gap = values - (values @ share)[..., None]
    np.testing.assert_allclose(uneven.rows, share * gap, atol=1e-12)
    assert uneven.degrees_of_freedom == pytest.approx(1.0 / (share @ share) - 1.0)
    member = np.arange(30)[:, None] % 3 == np.arange(3)
    within = Influence.of(values, np.ones(30), member.astype(float)).rows
    np.testing.assert_allclose(within @ member, 0.0, atol=1e-12)


def test_systems_are_alike_as_far_as_they_share_questions() -> None:
    values = _values(2, questions=40)
    values[0, 0, 30:], values[0, 1, :10] = np.nan, np.nan
    found = Influence.of(values, np.ones(40))
    np.testing.assert_allclose(found.overlap[0, 1], 20.0 / 30.0)
    np.testing.assert_allclose(found.overlap[0, 2], 30.0 / np.sqrt(30.0 * 40.0))
    assert (found.rows[0, 0, 30:] == 0.0).all()
    apart = np.full((1, 2, 6), np.nan)
    apart[0, 0, :3], apart[0, 1, 3:] = [1.0, 0.0, 0.5], [0.2, 0.4, 1.0]
    roots = Influence.of(apart, np.ones(6)).roots(np.ones((1, 2)), np.random.default_rng(1))
    correlation = np.einsum("mi,mi->m", roots[0, :, 0], roots[0, :, 1])
    assert abs(correlation.mean()) < 0.1


def test_errors_of_systems_that_lack_what_the_other_tried_are_opposite() -> None:
    """35 of 60 questions each, 10 of them shared: s / (n n) - 1 / M, and 1 / n - 1 / M alone.

    Of equal values with variance v the difference has 2 (1 / n - s / (n n)) v, the variance of the
    mean of 25 values over 35 less that of 25 others.
    """
    values = np.tile(np.random.default_rng(3).random(60), (1, 2, 1))
    values[0, 0, 35:], values[0, 1, :25] = np.nan, np.nan
    found = Influence.of(values, np.ones(60))
    alone, both = 1 - 35 / 60, 10 / 35 - 35 / 60
    np.testing.assert_allclose(found.error_overlap, [[alone, both], [both, alone]])
    assert alone - both == pytest.approx(35 * 25 / 35**2)
    root = found.roots_of_errors(np.array([[2.0, 0.5]]))[0, 0]
    unit = found.rows[0] / np.linalg.norm(found.rows[0], axis=1, keepdims=True)
    shared = unit[:, 25:35]
    average = shared[0] @ shared[1] / np.prod(np.linalg.norm(shared, axis=1))
    assert (root @ root.T)[0, 1] == pytest.approx(average * both)  # sqrt(2 * 0.5) is 1
    np.testing.assert_allclose(np.linalg.norm(root, axis=1), 1.0)
    all_tried = Influence.of(_values(1), np.ones(30))
    assert all_tried.roots_of_errors(np.ones((1, 3))) is None


def test_untried_questions_are_judged_by_their_group_with_their_own_weights() -> None:
    """Written out: each untried question has the mean of the tried ones of its group."""
    rng = np.random.default_rng(4)
    values, these, member = rng.random((1, 4, 24)), rng.random(24), np.arange(24) % 3
    values[0][rng.random((4, 24)) < 0.4] = np.nan
    tried = ~np.isnan(values[0])
    fixed = (member[:, None] == np.arange(3)).astype(float)
    found = Influence.of(values, np.ones(24), fixed, these)
    error = np.zeros((4, 24))
    for system in range(4):
        for question in np.flatnonzero(~tried[system]):
            like = tried[system] & (member == member[question])
            error[system] += these[question] / these.sum() * like / like.sum()
            error[system, question] -= these[question] / these.sum()
    size = 1.0 / np.sqrt(tried.sum(axis=1))
    np.testing.assert_allclose(found.error_overlap, error @ error.T / np.outer(size, size))
    roots = found.roots_of_errors(np.full((1, 4), 1e9))  # the errors are all of the variance
    np.testing.assert_allclose(np.linalg.norm(roots[0, 0], axis=1), 1.0)
    for group in range(3):  # a mean over a group has the errors of its own questions
        own = member == group
        alone = overlap_of_errors(tried[:, own], np.ones(8), np.ones((8, 1)), these[own])
        errors = error[:, own] * these.sum() / these[own].sum()
        size = 1.0 / np.sqrt(tried[:, own].sum(axis=1))
        np.testing.assert_allclose(alone, errors @ errors.T / np.outer(size, size))


def test_a_group_that_a_system_did_not_try_says_nothing_of_its_errors() -> None:
    tried = np.array([[False] * 4, [True, True, False, False], [True] * 4])
    found = overlap_of_errors(tried, np.ones(4), np.ones((4, 1)), np.ones(4))
    np.testing.assert_allclose(found, np.diag([0.0, 0.5, 0.0]))


@pytest.mark.parametrize("systems", [2, 4])
def test_correlations_are_drawn_from_the_inverse_wishart(systems: int, monkeypatch) -> None:
    """The same scale matrix in SciPy's generator, whose algorithm is another one."""
    monkeypatch.setattr(coupling, "_MATRICES_MAX", 8000)
    monkeypatch.setattr(coupling, "_MATRIX_FLOATS", 1e9)
    influence = Influence.of(_values(3, systems), np.ones(30))
    roots = influence.roots(np.ones((1, systems)), np.random.default_rng(1))[0]
    seen = np.corrcoef(influence.rows[0])
    pairs = systems * (systems - 1) / 2
    average = (seen.sum() - systems) / (2 * pairs)
    prior = coupling._PRIOR_QUESTIONS / pairs
    rho = np.tanh((30 * np.arctanh(average) + prior * np.arctanh(0.5)) / (30 + prior))
    before = coupling._FREEDOM_PER_SYSTEM * systems - coupling._FREEDOM_OFFSET
    scale = before * ((1 - rho) * np.eye(systems) + rho) + influence.degrees_of_freedom * seen
    drawn = invwishart.rvs(
        before + influence.degrees_of_freedom, scale, 8000, np.random.default_rng(2)
    )
    sd = np.sqrt(np.einsum("kii->ki", drawn))
    theirs = (drawn / sd[:, :, None] / sd[:, None, :])[:, 0, 1]
    ours = np.einsum("mi,mi->m", roots[:, 0], roots[:, 1])
    np.testing.assert_allclose(np.linalg.norm(roots, axis=2), 1.0)
    for level in (0.05, 0.5, 0.95):
        slack = 4.0 * np.sqrt(2 * level * (1 - level) / 8000)
        assert abs((theirs <= np.quantile(ours, level)).mean() - level) < slack


def test_systems_that_agree_on_every_question_may_differ_on_others() -> None:
    """Forty of forty agree; Jeffreys' prior of a share adds half a question that does not."""
    solved = np.repeat([1.0, 0.0], [28, 12])
    roots = Influence.of(np.stack([solved, solved])[None], np.ones(40)).roots(
        np.ones((1, 2)), np.random.default_rng(1)
    )[0]
    correlation = np.einsum("mi,mi->m", roots[:, 0], roots[:, 1])
    jeffreys = 0.5 / 41 / (2 * 0.21)  # .5 of 41 differ, by 1, over the variance of two
    assert 0.4 * jeffreys < 1.0 - correlation.mean() < jeffreys


def test_margins_are_kept_and_the_order_has_the_correlation() -> None:
    rng = np.random.default_rng(4)
    margins = np.stack([rng.beta(2, 5, (4000, 2)), rng.gamma(3.0, size=(4000, 2))], axis=2)
    draws = rng.standard_normal((4000, 2, 2))
    root = np.array([[1.0, 0.0], [0.8, 0.6]])
    roots = np.broadcast_to(root, (2, 300, 2, 2))
    found = couple(margins, draws, roots)
    np.testing.assert_array_equal(np.sort(found, axis=0), np.sort(margins, axis=0))
    scores = norm.ppf((found.argsort(axis=0).argsort(axis=0) + 0.5) / 4000)
    for metric in range(2):
        assert np.corrcoef(scores[:, metric].T)[0, 1] == pytest.approx(0.8, abs=0.03)
    alone = couple(margins, draws, None)
    np.testing.assert_array_equal(np.sort(alone, axis=0), np.sort(margins, axis=0))
    assert (alone.argsort(axis=0) == draws.argsort(axis=0)).all()


def test_what_a_judge_adds_is_not_shared() -> None:
    influence = Influence.of(_values(5, 2, 400), np.ones(400))
    whole, half = (
        influence.roots(np.full((1, 2), own), np.random.default_rng(1))[0] for own in (1.0, 0.5)
    )
    shared = [np.einsum("mi,mi->m", root[:, 0], root[:, 1]).mean() for root in (whole, half)]
    assert shared[1] == pytest.approx(0.5 * shared[0], abs=0.02)


def test_equal_values_are_no_correlation() -> None:
    """Systems that solve everything are not alike by rounding errors of their residuals."""
    perfect = np.ones((1, 2, 60)) * 0.7
    weight = np.random.default_rng(1).random(60)
    influence = Influence.of(perfect, weight, np.ones((60, 1)))
    assert not influence.rows.any()
    roots = influence.roots(np.ones((1, 2)), np.random.default_rng(2))[0]
    correlation = np.einsum("mi,mi->m", roots[:, 0], roots[:, 1])
    assert correlation.mean() < 0.3  # a priori one half, of 24 questions


def test_systems_without_spread_have_an_order_too() -> None:
    values = np.ones((1, 3, 8))
    values[0, 2] = np.arange(8) / 8.0
    roots = Influence.of(values, np.ones(8)).roots(np.ones((1, 3)), np.random.default_rng(1))
    assert np.isfinite(roots).all()


def test_draws_have_the_mean_and_keep_their_values() -> None:
    rng = np.random.default_rng(6)
    values = np.sort(rng.beta(3, 4, (2000, 2)), axis=0)
    mean = values.mean(axis=0) + np.array([0.005, -0.005])
    moved = with_mean(values, mean)
    np.testing.assert_allclose(moved.mean(axis=0), mean, atol=1e-8)
    assert (np.diff(moved, axis=0) >= 0.0).all()
    assert (moved.min(axis=0) >= values[0]).all()
    assert (moved.max(axis=0) <= values[-1]).all()

    # Of three questions none, one or two are solved but for the last digits.
    solved = np.sort(rng.choice([0.0, 1 / 3, 2 / 3], 2000) + 1e-9 * rng.random(2000))
    moved = with_mean(solved, solved.mean() + np.array(0.01))
    assert moved.mean() == pytest.approx(solved.mean() + 0.01)
    assert (np.abs(3.0 * moved - np.rint(3.0 * moved)) > 1e-8).sum() <= 3


def test_draws_stay_where_a_tail_beyond_them_makes_the_mean() -> None:
    values = np.sort(1.0 - 1e-12 * np.random.default_rng(1).random(1000))
    np.testing.assert_array_equal(with_mean(values, np.array(0.999)), values)
    np.testing.assert_array_equal(with_mean(np.ones((5, 1)), np.ones(1)), np.ones((5, 1)))
