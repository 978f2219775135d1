"""Best of k by a verifier: the finite and the latent law, and shapes that questions share."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import comb
from scipy.stats import kstest

from bayesatk.core.pooling.shapes import SHAPE_PRIOR, draw_shapes
from bayesatk.core.question.best_of import (
    MOST_BINS,
    best_of_finite,
    best_of_latent,
    comparable,
    score_bins,
)

TRIALS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=8)


def by_enumeration(trials: list[tuple[int, bool]], k: int) -> float:
    """Mean over all subsets of the share of right trials among those with the highest score."""
    credits = []
    for subset in combinations(trials, k):
        top = max(score for score, _ in subset)
        credits.append(np.mean([right for score, right in subset if score == top]))
    return float(np.mean(credits))


def grouped(trials: list[tuple[int, bool]]) -> tuple[np.ndarray, np.ndarray]:
    counts = np.zeros((4, 2), np.int64)
    for score, right in trials:
        counts[score, int(right)] += 1
    return counts[:, 0], counts[:, 1]


@given(TRIALS)
def test_finite_law_is_the_mean_over_all_subsets(trials: list[tuple[int, bool]]) -> None:
    ks = list(range(1, len(trials) + 3))
    found = best_of_finite(*grouped(trials), ks)
    expected = [by_enumeration(trials, k) for k in ks[:-2]]
    assert_allclose(found[:-2], expected, atol=1e-12)
    assert np.isnan(found[-2:]).all()


def test_finite_law_of_many_trials_does_not_cancel() -> None:
    wrong, right = np.array([0, 400_000, 0]), np.array([300_000, 0, 1])
    found = best_of_finite(wrong, right, [1, 50])
    n, middle = 700_001, 400_000
    top, low = 50 / n, np.prod([(300_000 - i) / (n - i) for i in range(50)])
    assert_allclose(found, [(n - middle) / n, top + low], rtol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_latent_law_is_the_mean_over_all_sequences(k: int) -> None:
    p, right, wrong = 0.3, np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.1, 0.3])
    mass = np.stack([(1 - p) * wrong, p * right])
    expected = 0.0
    for trials in product(product(range(2), range(3)), repeat=k):
        top = max(score for _, score in trials)
        share = np.mean([mark for mark, score in trials if score == top])
        expected += share * np.prod([mass[mark, score] for mark, score in trials])
    assert_allclose(best_of_latent(np.array(p), right, wrong, [k])[0], expected, rtol=1e-12)


@given(st.floats(0.0, 1.0), st.integers(1, 400))
def test_verifiers_that_know_nothing_and_all(p: float, k: int) -> None:
    shape, low, high = np.full(4, 0.25), np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.5, 0.5])
    value = np.array(p)
    assert_allclose(best_of_latent(value, shape, shape, [k]), [p], atol=1e-12)
    assert_allclose(best_of_latent(value, high, low, [k]), [1 - (1 - p) ** k], atol=1e-12)
    assert_allclose(best_of_latent(value, low, high, [k]), [p**k], atol=1e-12)


@given(TRIALS)
def test_finite_and_latent_law_agree_where_trials_are_replaced(
    trials: list[tuple[int, bool]],
) -> None:
    """Drawn with replacement, k = 2: n (n - 1) pairs of different trials, and n of the same."""
    wrong, right = grouped(trials)
    n, hits = len(trials), int(right.sum())
    finite = best_of_finite(wrong, right, [1, 2])
    if n < 2 or not 0 < hits < n:
        return
    latent = best_of_latent(np.array(hits / n), right / hits, wrong / (n - hits), [2])[0]
    pairs = comb(n, 2)
    assert_allclose(latent, (2 * pairs * finite[1] + n * finite[0]) / n**2, atol=1e-12)


def test_bins_keep_order_and_ties_and_are_finer_at_the_top() -> None:
    score = np.sort(np.random.default_rng(1).normal(size=1000).round(2))
    bins = score_bins(score, np.ones(1000, np.int64))
    assert (np.diff(bins) >= 0).all()
    assert all(len(set(bins[score == value])) == 1 for value in np.unique(score))
    size = np.bincount(bins)
    assert 6 <= size[-1] < 20 < size[0]
    few = np.arange(MOST_BINS)[::-1].astype(float)
    assert score_bins(few, np.ones(MOST_BINS, np.int64)).tolist() == few.tolist()


def test_shifts_of_questions_are_taken_away_and_the_rest_stays() -> None:
    rng = np.random.default_rng(2)
    question = np.repeat(np.arange(200), 10)
    right = rng.random(2000) < 0.5
    counts = np.stack([~right, right], axis=1).astype(np.int64)
    plain = rng.normal(size=2000) + right
    shift = 5.0 * rng.normal(size=200)
    moved = comparable(plain + shift[question], question, counts)
    assert np.var(moved) < 1.3 * np.var(plain)
    for q in range(200):  # the order within a question stays
        own = question == q
        assert (np.argsort(moved[own]) == np.argsort(plain[own])).all()
    grades = np.round(plain + shift[question], -1)
    assert (comparable(grades, question, counts) == grades).all()


def test_shapes_of_two_bins_are_those_of_an_integral() -> None:
    """With one question of 3 and 1 trials: log odds u of the bins' shape, x and t integrated."""
    position = np.array([-0.5, 0.5])
    rng = np.random.default_rng(3)
    drawn = draw_shapes(np.array([[3, 1]]), position, 40_000, rng)
    found = drawn.of_question(0)[:, 1].mean()
    normal = rng.standard_normal((2, 400_000))
    tilt = np.abs(normal[0]) * normal[1]  # t x

    def of_shape(g: float) -> tuple[float, float]:
        upper = g * np.exp(0.5 * tilt)
        f = upper / (upper + (1 - g) * np.exp(-0.5 * tilt))
        likelihood = f * (1 - f) ** 3
        return float(likelihood.mean()), float((likelihood * f).mean())

    grid = (np.arange(200) + 0.5) / 200  # levels of Beta(a, a) by its odds, evenly
    a = SHAPE_PRIOR
    whole = quad(lambda g: (g * (1 - g)) ** (a - 1), 0, 1)[0]
    edges = np.linspace(0, 1, 201)
    weight = [
        quad(lambda g: (g * (1 - g)) ** (a - 1), low, high)[0] / whole
        for low, high in pairwise(edges)
    ]
    values = np.array([of_shape(g) for g in grid])
    evidence, first = np.array(weight) @ values
    assert abs(found - first / evidence) < 0.012


def test_shapes_are_calibrated() -> None:
    """Ranks of the true best of four among draws, of data from the prior (Talts et al. 2018)."""
    rng, position, ranks = np.random.default_rng(5), np.linspace(-1.2, 1.2, 4), []
    for _ in range(100):
        shapes, drawn = [], []
        for _ in range(2):
            mass = rng.standard_gamma(SHAPE_PRIOR, 4) + 1e-200
            tilt = abs(rng.standard_normal()) * rng.standard_normal((6, 1))
            f = mass * np.exp(tilt * position)
            f /= f.sum(axis=1, keepdims=True)
            counts = np.stack([rng.multinomial(4, row) for row in f])
            shapes.append(f[0])
            drawn.append(draw_shapes(counts, position, 39, rng).of_question(0))
        true = best_of_latent(np.array(0.5), *shapes, [4])[0]
        values = best_of_latent(np.full(39, 0.5), *drawn, [4])[:, 0]
        below, same = (values < true - 1e-12).sum(), (abs(values - true) <= 1e-12).sum()
        ranks.append((below + rng.random() * (same + 1)) / 40)
    assert (
        kstest(ranks, "uniform").pvalue > 1e-4
    )  # sees a bias of half an sd, or spreads off by half


def test_spread_of_tilts_is_found() -> None:
    rng = np.random.default_rng(4)
    position = np.linspace(-1.5, 1.5, 7)
    for true in (0.0, 1.0):
        tilt = true * rng.standard_normal((300, 1))
        p = np.exp(tilt * position - position**2 / 2)
        p /= p.sum(axis=1, keepdims=True)
        counts = np.stack([rng.multinomial(12, row) for row in p])
        drawn = draw_shapes(counts, position, 1000, rng)
        assert abs(drawn.spread.mean() - true) < 0.2
        new = drawn.of_new(slice(0, 1000), 3, rng).mean(axis=(0, 1))
        assert_allclose(new, p.mean(axis=0), atol=0.03)
