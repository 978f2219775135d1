"""Fast witnesses of small things that other tests passed over, each from its definition."""

from itertools import permutations

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.comparison.joint.contrasts import separated
from bayesatk.comparison.plans.designs import Simulated
from bayesatk.core.numerics.elliptical import independent_draws
from bayesatk.data.answers import AnswerRules
from bayesatk.results.result import Result


@pytest.mark.parametrize("means", list(permutations([0.0, 10.0, 20.0, 30.0])))
def test_systems_far_apart_are_all_declared_in_their_order(means: tuple[float, ...]) -> None:
    draws = np.random.default_rng(2).standard_normal((1000, 4)) + means
    better = [[above > below for below in means] for above in means]
    assert separated(draws, 0.05).tolist() == better


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_effective_draws_of_correlated_chains_do_not_depend_on_units(scale: float) -> None:
    """Of first-order autoregressions with correlation c there are (1 - c)/(1 + c) as many."""
    rng, correlation = np.random.default_rng(3), 0.8
    chains = rng.standard_normal((500, 100, 20))
    for now in range(1, len(chains)):
        chains[now] = correlation * chains[now - 1] + 0.6 * chains[now]
    expected = 500 * 100 * (1 - correlation) / (1 + correlation)
    assert independent_draws(scale * chains) == pytest.approx(expected, rel=0.12)


def test_trials_answer_as_often_as_a_uniform_prior_says() -> None:
    """By Laplace's rule of succession: each with (answered + 1)/(trials + 2)."""
    answers = [["a", "b", "a", None], ["b", "b", "a", "a"]]
    rules = AnswerRules(unanswered="exclude")
    pilot = bk.tally(None, answers=answers, reference=["a", "b"], answer_rules=rules)
    fit = Result.of(bk.evaluate(pilot, "plurality@1", draws=50, rng=1))
    simulated, rng = Simulated(fit, 0, fit.metrics[0]), np.random.default_rng(4)
    answered = [simulated._answered(np.arange(2), 200, rng) for _ in range(4000)]
    lossy, whole = np.transpose(answered)
    assert (whole == 200).all()
    assert np.mean(lossy) == pytest.approx(200 * 4 / 6, abs=3.0)
    assert np.std(lossy) == pytest.approx(np.sqrt(200 * 206 * 4 * 2 / (6**2 * 7)), rel=0.1)
