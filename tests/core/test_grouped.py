"""Questions in groups: nested quadrature against enumeration, draws from the prior, and one level.

The sampler draws hyperparameters, group effects and success probabilities from the prior and weighs
them by binomial probabilities: it shares the definition of the model and no computation.
"""

from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

from bayesatk.core.numerics.quadrature import straight_weights
from bayesatk.core.pooling.count_histograms import CountHistograms
from bayesatk.core.pooling.hierarchy import hyper_posterior
from bayesatk.core.pooling.states import GroupedStates
from bayesatk.core.structure.grouped import grouped_posterior
from bayesatk.data.grouping import Grouping
from bayesatk.metrics.grid import parse
from bayesatk.posterior.grouped import GroupedModel
from bayesatk.priors import HyperPrior

METRICS = parse("pass@1,2 pass^2")
DEFAULT = HyperPrior(families="beta")
# Successes, trials and group of every question, the weights of groups, and a prior.
CASES = {
    "two groups": ([3, 3, 0, 1, 4], [4] * 5, [0, 0, 1, 1, 1], None, DEFAULT),
    "all right in one, ragged": ([2, 2, 1, 0, 0, 3], [2, 2, 1, 2, 1, 4], [0, 0, 0, 1, 2, 2],
                                 {0: 1, 1: 3, 2: 0.5}, DEFAULT),
    "single trials": ([1, 1, 0, 1, 0, 1], [1] * 6, [0, 0, 0, 1, 1, 1], "equal", DEFAULT),
    "questions without trials": ([2, 0, 0, 1], [3, 0, 2, 2], [0, 1, 2, 2], None,
                                 HyperPrior((2.0, 1.0), (1.0, 3.0), group_sd=0.5)),
}  # fmt: skip


def model(name: str) -> GroupedModel:
    c, n, group, weights, prior = CASES[name]
    counts = np.stack([np.array(n) - c, c], axis=1)
    return GroupedModel.of(prior, counts, Grouping.of(group, weights))


def worth(metric: int, p: np.ndarray) -> np.ndarray:
    """The three metrics, from their definitions."""
    return [p, 1.0 - (1.0 - p) ** 2, p**2][metric]


def drawn_from_prior(name: str, size: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Weights of draws from the prior, and the values of quantities in each."""
    c, n, group, _, prior = CASES[name]
    rng = np.random.default_rng(77)
    typical, icc = rng.beta(*prior.mean, size), rng.beta(*prior.icc, size)
    sd = abs(rng.normal(0.0, prior.group_sd, size))
    groups = max(group) + 1
    share = model(name).grouping.shares()
    ratio = (1.0 - icc) / icc

    def question(mean: np.ndarray) -> np.ndarray:
        return rng.beta(np.maximum(mean * ratio, 1e-200), np.maximum((1.0 - mean) * ratio, 1e-200))

    def new_group() -> np.ndarray:
        return expit(logit(typical) + sd * rng.normal(size=size))

    means = [new_group() for _ in range(groups)]
    weight, values = np.ones(size), [np.zeros((groups, size)) for _ in METRICS]
    for successes, trials, g in zip(c, n, group, strict=True):
        p = question(means[g])
        weight = weight * p**successes * (1.0 - p) ** (trials - successes)
        for i, own in enumerate(values):
            own[g] += worth(i, p) / group.count(g)
    found = {"typical_p": typical, "group_sd": sd, "icc": icc}
    for i in range(len(METRICS)):
        anew = np.stack([worth(i, question(mean)) for mean in means])
        again = np.stack([worth(i, question(mean)) for mean in means])
        one, other = (worth(i, question(new_group())) for _ in range(2))
        found |= {f"questions {i}": share @ values[i], f"population {i}": share @ anew}
        found |= {f"new_groups {i}": one, f"new_groups {i} squared": one * other}
        found |= {f"population {i} squared": (share @ anew) * (share @ again)}
        found |= {f"questions {i} squared": (share @ values[i]) ** 2}
        for g in range(groups):
            found |= {
                f"group {g} questions {i}": values[i][g],
                f"group {g} population {i}": anew[g],
            }
            found |= {f"group {g} population {i} squared": anew[g] * again[g]}
    return weight, found


def exact(name: str) -> tuple[float, dict[str, float]]:
    """Return what the closed form says of the same quantities, and the log evidence."""
    own = model(name)
    fit = own.fit(METRICS)
    found = {key: one.mean for key, one in fit.hyper.items() if not isinstance(one, list)}
    for i in range(len(METRICS)):
        for place, target in enumerate(("questions", "population", "new_groups")):
            mean = fit.mean[i, place]
            found[f"{target} {i}"] = mean
            found[f"{target} {i} squared"] = mean**2 + fit.sd[i, place] ** 2
        for g, of_group in enumerate(fit.groups):
            found[f"group {g} questions {i}"] = of_group.mean[i, 0]
            found[f"group {g} population {i}"] = of_group.mean[i, 1]
            square = of_group.mean[i, 1] ** 2 + of_group.sd[i, 1] ** 2
            found[f"group {g} population {i} squared"] = square
    return own.log_evidence(), found


@pytest.mark.parametrize("name", CASES)
def test_quadrature_finds_what_draws_from_the_prior_find(name: str) -> None:
    size = 100_000
    weight, drawn = drawn_from_prior(name, size)
    log_evidence, found = exact(name)
    error = weight.std() / weight.mean() / np.sqrt(size)
    assert abs(np.log(weight.mean()) - log_evidence) < 4.5 * error + 2e-3
    share = weight / weight.sum()
    for key, value in found.items():
        mean = share @ drawn[key]
        error = np.sqrt(share**2 @ (drawn[key] - mean) ** 2)
        assert abs(mean - value) < 4.5 * error + 1e-3, key


def test_new_questions_have_the_variance_of_their_mean_and_no_more() -> None:
    """The targets of new questions are means over infinitely many: products of two draws."""
    fit = model("two groups").fit(METRICS)
    assert (fit.sd[:, 1] < fit.sd[:, 2]).all()


def test_evidence_of_all_outcomes_adds_up_to_one() -> None:
    total = 0.0
    for c in product(range(3), range(2)):
        data = GroupedStates.of(np.array(c), np.array([2, 1]), np.array([0, 1]), 2)
        total += comb(2, c[0]) * np.exp(grouped_posterior(data, DEFAULT).log_evidence)
    assert total == pytest.approx(1.0, abs=2e-3)


def test_groups_that_cannot_differ_are_one_level() -> None:
    rng = np.random.default_rng(5)
    n = rng.integers(1, 6, 40)
    c = rng.binomial(n, rng.beta(1.2, 0.8, 40))
    counts, group = np.stack([n - c, c], axis=1), np.repeat(np.arange(8), 5)
    own = GroupedModel.of(HyperPrior(group_sd=1e-4), counts, Grouping.of(group))
    fit = own.fit(METRICS)
    single = hyper_posterior(CountHistograms.of(c, n, np.ones(40)), HyperPrior())
    # Straight lines between points of a quarter of an sd: 8 groups' likelihoods err by 3e-4 each.
    assert own.log_evidence() == pytest.approx(single.log_evidence, abs=5e-3)
    for name, values in (("typical_p", single.mean), ("icc", single.icc)):
        mean = single.weight @ values
        sd = np.sqrt(single.weight @ (values - mean) ** 2)
        one = fit.hyper[name]
        assert not isinstance(one, list)
        assert one.mean == pytest.approx(mean, abs=2e-3 * sd)
        assert one.sd == pytest.approx(sd, rel=2e-3)
    assert fit.mean[:, 2] == pytest.approx(fit.mean[:, 1], abs=1e-4)
    assert fit.sd[:, 2] == pytest.approx(fit.sd[:, 1], rel=1e-2)


def test_leaving_out_a_question_is_leaving_it_out() -> None:
    c, n, group, _, prior = CASES["all right in one, ragged"]
    own = model("all right in one, ragged")
    found = own.predictive()
    for question in (0, 3):
        rest = [i for i in range(len(c)) if i != question]
        counts = np.stack([np.array(n) - c, c], axis=1)[rest]
        grouping = Grouping.of(group).among(np.arange(len(c)) != question)
        without = GroupedModel.of(prior, counts, grouping).log_evidence()
        ways = np.log(comb(n[question], c[question]))
        left_out = found.left_out[own.states.which[question]]
        assert left_out == pytest.approx(found.log_evidence - without + ways, abs=3e-3)


@settings(max_examples=25)
@given(
    st.lists(st.floats(0.05, 2.0), min_size=3, max_size=12),
    st.floats(0.0, 1.0), st.floats(0.0, 3.0), st.integers(0, 10_000),
)  # fmt: skip
def test_weights_integrate_straight_lines_exactly(steps, place, tau, seed) -> None:
    x = np.cumsum(steps) - 3.0
    values = np.random.default_rng(seed).normal(size=len(x))
    mu = x[0] + place * (x[-1] - x[0])
    weight = straight_weights(x, np.array([mu]), np.array([tau]))[0]
    assert weight.sum() == pytest.approx(1.0, abs=1e-9)
    if tau < 1e-2:
        expected = np.interp(mu, x, values) if tau == 0.0 else None
    else:
        parts = [
            quad(lambda t: np.interp(t, x, values) * norm.pdf(t, mu, tau), low, high)[0]
            for low, high in pairwise(x)
        ]
        outer = values[0] * norm.cdf(x[0], mu, tau) + values[-1] * norm.sf(x[-1], mu, tau)
        expected = sum(parts) + outer
    if expected is not None:
        assert weight @ values == pytest.approx(expected, abs=1e-6)


@settings(max_examples=5)
@given(st.data())
def test_any_counts_have_a_posterior(data) -> None:
    questions = data.draw(st.integers(1, 12))
    groups = data.draw(st.integers(1, 4))
    most = data.draw(st.sampled_from([1, 3, 200_000]))
    n = np.array(data.draw(st.lists(st.integers(0, most), min_size=questions, max_size=questions)))
    share = np.array(data.draw(st.lists(
        st.sampled_from([0.0, 0.3, 1.0]), min_size=questions, max_size=questions)))  # fmt: skip
    c = np.floor(share * n).astype(np.int64)
    group = np.array(data.draw(st.lists(
        st.integers(0, groups - 1), min_size=questions, max_size=questions)))  # fmt: skip
    own = GroupedModel.of(DEFAULT, np.stack([n - c, c], axis=1), Grouping.of(group))
    fit = own.fit(METRICS)
    assert ((fit.mean > -1e-9) & (fit.mean < 1.0 + 1e-9)).all()
    assert np.isfinite(fit.sd).all()
    assert own.posterior.error < 0.05
    drawn = fit.draw(200, np.random.default_rng(1), True)
    assert np.isfinite(drawn.metrics).all()
    assert drawn.p is not None
    assert ((drawn.p >= 0.0) & (drawn.p <= 1.0)).all()


@pytest.mark.long
def test_ranks_of_the_truth_are_uniform() -> None:
    """Simulation-based calibration: truths drawn from the prior, ranks among posterior draws."""
    rng, ranks = np.random.default_rng(404), []
    for _ in range(64):
        typical, icc, sd = rng.beta(1, 1), rng.beta(1, 1), abs(rng.normal())
        mean = expit(logit(typical) + sd * rng.normal(size=8))
        ratio, group = (1.0 - icc) / icc, np.repeat(np.arange(8), 5)
        p = rng.beta(np.maximum(mean[group] * ratio, 1e-200),
                     np.maximum((1.0 - mean[group]) * ratio, 1e-200))  # fmt: skip
        c = rng.binomial(3, p)
        own = GroupedModel.of(DEFAULT, np.stack([3 - c, c], axis=1), Grouping.of(group))
        drawn = own.fit(METRICS[:1]).draw(1000, rng, False)
        z = np.random.default_rng(1).normal(size=20_000)
        truth = [typical, icc, sd, p.mean(), mean.mean(), expit(logit(typical) + sd * z).mean()]
        draws = [drawn.hyper[name] for name in ("typical_p", "icc", "group_sd")]
        draws += list(drawn.metrics[:, 0].T)
        ranks.append([(own < value).mean() for own, value in zip(draws, truth, strict=True)])
    ranks = np.array(ranks)
    for column in ranks.T:
        counts = np.histogram(column, bins=8, range=(0.0, 1.0))[0]
        assert ((counts - 8.0) ** 2 / 8.0).sum() < 29.0  # chi-square of 7: one in 7,000
