"""A change between days: quadrature against draws from the prior; the alarm by enumeration."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, betaln, expit, logit
from scipy.stats import hypergeom, kstest, norm

from bayesatk.core.runs.change import Changes, mixed_shift
from bayesatk.core.runs.trial_order import alarm_evidence, day_scores, total_pmf
from bayesatk.priors import HyperPrior

BETA = HyperPrior(families="beta")


def by_plain_quadrature(successes, trials, first: int, sd: float, points: int = 60):
    """Evidence and mean shift: midpoints of m, r and the shift's quantiles; p by its quantiles."""
    grid = (np.arange(points) + 0.5) / points
    fine = (np.arange(400) + 0.5) / 400
    total, moment = 0.0, 0.0
    shift = sd * norm.ppf(grid)
    edges = logit(fine)
    failures = trials - successes
    parts = [own[:, part].sum(axis=1) for part in (slice(first), slice(first, None))
             for own in (successes, failures)]  # fmt: skip
    late = expit(edges[:, None] + shift)
    likelihood = np.ones((len(successes), 400, points))
    for q, (c, f, c2, f2) in enumerate(zip(*parts, strict=True)):
        likelihood[q] = (fine**c * (1 - fine) ** f)[:, None] * late**c2 * (1 - late) ** f2
    for m, r in product(grid, grid):
        a, b = m * (1 - r) / r, (1 - m) * (1 - r) / r
        mass = np.diff(betainc(a, b, np.linspace(0, 1, 401)))  # of every cell of p
        at = np.einsum("j,qjs->qs", mass, likelihood).prod(axis=0)
        total += at.mean() / points**2
        moment += (at * shift).mean() / points**2
    return np.log(total), moment / total


def test_evidence_and_shift_against_plain_sums() -> None:
    successes = np.array([[2, 1, 0], [1, 1, 1], [2, 2, 0]])
    trials = np.array([[2, 2, 1], [2, 1, 1], [2, 2, 2]])
    changes = Changes(successes, trials, BETA, 1.0)
    for first in (1, 2):
        found = changes.at(first)
        expected, mean = by_plain_quadrature(successes, trials, first, 1.0)
        assert found.log_evidence == pytest.approx(expected, abs=0.01)
        got = mixed_shift([found], np.ones(1), (0.025, 0.975))
        assert got[0] == pytest.approx(mean, abs=0.01)
        assert got[2] < got[0] < got[3]


def test_without_trials_after_it_a_change_is_no_change() -> None:
    """The evidence is that of one Beta, and the shift has its prior."""
    successes = np.array([[3, 0], [1, 0], [0, 0], [4, 0]])
    trials = np.array([[4, 0], [4, 0], [3, 0], [4, 0]])
    changes = Changes(successes, trials, BETA, 0.7)
    found = changes.at(1)
    assert found.log_evidence == pytest.approx(changes.same.log_evidence, abs=2e-5)
    mean, sd, low, high = mixed_shift([found], np.ones(1), (0.025, 0.975))
    assert (mean, sd) == (pytest.approx(0.0, abs=1e-4), pytest.approx(0.7, abs=1e-3))
    assert (low, high) == (pytest.approx(-1.372, abs=2e-3), pytest.approx(1.372, abs=2e-3))


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        ([3, 3, 4], [5, 4, 6], -12.445189913200657),
        ([3, 1, 0, 4], [4, 4, 3, 4], -10.27408442149499),
        ([12] * 20, [12] * 20, -3.970218630608109),  # all right
        ([2], [2], -0.8754687372476004),
    ],
)
def test_evidence_without_a_change(successes, trials, expected) -> None:
    """The values are those of the adaptive grid of partial pooling."""
    days = (np.stack([counts, np.zeros_like(counts)], axis=1) for counts in (successes, trials))
    assert Changes(*days, BETA, 1.0).same.log_evidence == pytest.approx(expected, abs=1e-6)


def test_wrong_for_right_turns_the_shift_around() -> None:
    rng = np.random.default_rng(1)
    trials = rng.integers(0, 4, (12, 4))
    successes = rng.binomial(trials, 0.6)
    one = Changes(successes, trials, BETA, 1.0).at(2)
    other = Changes(trials - successes, trials, BETA, 1.0).at(2)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=2e-5)
    assert one.before == pytest.approx(1.0 - other.before, abs=2e-5)
    assert one.after == pytest.approx(1.0 - other.after, abs=2e-5)
    levels = (0.1, 0.9)
    low, high = mixed_shift([one], np.ones(1), levels)[2:]
    np.testing.assert_allclose(
        mixed_shift([other], np.ones(1), levels)[2:], (-high, -low), atol=1e-3
    )


def test_one_question_with_known_difficulty_law() -> None:
    """A nearly certain prior of m and r: one integral over p for every shift."""
    prior = HyperPrior(mean=(4e6, 6e6), icc=(2e6, 8e6), families="beta")
    found = Changes(np.array([[3, 1]]), np.array([[4, 5]]), prior, 1.0).at(1)
    a, b = 0.4 * 4.0, 0.6 * 4.0
    p = (np.arange(4000) + 0.5) / 4000
    shift = norm.ppf((np.arange(2000) + 0.5) / 2000)
    late = expit(logit(p)[:, None] + shift)
    density = np.exp((a - 1) * np.log(p) + (b - 1) * np.log1p(-p) - betaln(a, b))
    values = (density * p**3 * (1 - p))[:, None] * late * (1 - late) ** 4
    assert found.log_evidence == pytest.approx(np.log(values.mean()), abs=1e-3)


# --- the alarm ---


def test_a_total_is_a_sum_of_hypergeometric_ones() -> None:
    new, past, total = np.array([3, 2, 2]), np.array([4, 1, 1]), np.array([5, 2, 2])
    laws = [hypergeom(n + m, t, n) for n, m, t in zip(new, past, total, strict=True)]
    expected = np.zeros(8)
    for drawn in product(range(4), range(3), range(3)):
        expected[sum(drawn)] += np.prod([law.pmf(k) for law, k in zip(laws, drawn, strict=True)])
    least = int(np.maximum(0, total - past).sum())
    found = total_pmf(new, past, total)
    np.testing.assert_allclose(found, expected[least : least + len(found)], atol=1e-14)
    assert expected[:least].sum() == 0.0


def test_p_values_of_days_are_uniform_and_independent_by_enumeration() -> None:
    """Two questions of unequal difficulty, three days: the joint law of the smoothed p-values."""
    trials, p = np.array([[1, 2, 1], [1, 1, 1]]), np.array([0.8, 0.3])
    weight, boxes = [], []
    for flat in product(*(range(n + 1) for n in trials.ravel())):
        c = np.array(flat).reshape(2, 3)
        ways = np.prod([comb(n, k) for n, k in zip(trials.ravel().tolist(), flat, strict=True)])
        law = np.prod(p[:, None] ** c * (1 - p[:, None]) ** (trials - c))
        weight.append(ways * law)
        ends = [norm.cdf(day_scores(c, trials, np.full(3, u))[1:]) for u in (0.0, 1.0)]
        boxes.append(np.stack(ends))  # where the p-values lie as the uniform numbers vary
    for x, y in product((0.15, 0.4, 0.5, 0.85), repeat=2):
        joint = sum(
            w * np.prod(np.clip((np.array([x, y]) - low) / (high - low), 0, 1))
            for w, (low, high) in zip(weight, boxes, strict=True)
        )
        assert joint == pytest.approx(x * y, abs=1e-9)


def test_evidence_of_the_alarm_is_a_martingale_of_normal_numbers() -> None:
    """Two steps by quadrature; then errors over 60 days."""
    trials = np.array([[3, 2, 4, 1]])
    node, weight = np.polynomial.hermite_e.hermegauss(60)
    weight = weight / weight.sum()
    fixed = np.array([0.0, 1.3])
    before = np.exp(alarm_evidence(np.append(fixed, [0, 0]), trials, 1.0)[1])
    third = [np.exp(alarm_evidence(np.append(fixed, [z, 0]), trials, 1.0)[2]) for z in node]
    assert weight @ third == pytest.approx(before, rel=1e-9)
    fourth = [np.exp(alarm_evidence(np.array([*fixed, -2.0, z]), trials, 1.0)[3]) for z in node]
    after = np.exp(alarm_evidence(np.array([*fixed, -2.0, 0.0]), trials, 1.0)[2])
    assert weight @ fourth == pytest.approx(after, rel=1e-9)
    rng = np.random.default_rng(5)
    many = np.full((30, 60), 4)
    top = [alarm_evidence(rng.standard_normal(60), many, 1.0).max() for _ in range(1000)]
    assert 0.001 < np.mean(np.array(top) >= np.log(20.0)) <= 0.05


def test_scores_of_an_unchanged_system_are_standard_normal() -> None:
    rng = np.random.default_rng(6)
    p = rng.beta(0.5, 0.5, 15)
    trials = rng.integers(0, 3, (15, 4))
    scores = np.array([
        day_scores(rng.binomial(trials, p[:, None]), trials, rng.random(4))[1:]
        for _ in range(400)
    ])  # fmt: skip
    assert kstest(scores.ravel(), "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(scores.T)[np.triu_indices(3, 1)]).max() < 4 / np.sqrt(400)


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=3),
                min_size=1, max_size=5))  # fmt: skip
def test_any_counts_have_scores_and_evidence(cells) -> None:
    table = np.array(cells)
    successes, trials = table[:, :, 0], table.sum(axis=2)
    scores = day_scores(successes, trials, np.array([0.3, 0.6, 0.9]))
    assert np.isfinite(scores).all()
    assert np.isfinite(alarm_evidence(scores, trials, 1.0)).all()
