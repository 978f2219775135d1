"""Plans for the difference of two systems: the pilot's correlation, and what is assumed."""

import numpy as np
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.comparison.plans.assumptions import pilot_correlation
from bayesatk.metrics.grid import parse

PASS = parse("pass@1")[0]


def _pilot(shared: float, questions: int = 150, trials: int = 6):
    rng = np.random.default_rng(1)
    common, own = rng.standard_normal(questions), rng.standard_normal((2, questions))
    z = shared**0.5 * common + (1.0 - shared) ** 0.5 * own
    right = rng.binomial(trials, expit(np.array([[0.6], [0.2]]) + 1.5 * z))
    data = bk.tally((right, np.full(right.shape, trials)), systems=["new", "old"])
    return bk.evaluate(data, "pass@1", difficulty="beta", rng=1)


def test_the_correlation_of_a_pilot_is_that_of_its_difficulties() -> None:
    """Trial noise is in the values of the questions, and not in what the draw of them adds."""
    high, none = (pilot_correlation(_pilot(shared), PASS) for shared in (0.8, 0.0))
    assert high == pytest.approx(0.8, abs=0.15)
    assert none < 0.25
    assert pilot_correlation((0.6, 0.3), PASS) == 0.0


def test_a_pilot_of_both_needs_fewer_questions_than_its_two_systems_apart() -> None:
    pilot = _pilot(0.8)
    paired, apart = (
        bk.table(bk.plan(pilot, "pass@1", trials=[6], **options), "plan")
        for options in ({}, {"correlation": 0.0})
    )
    assert paired["questions"].item() < 0.8 * apart["questions"].item()


def test_a_plan_says_what_it_assumes_and_has_a_goal_of_its_own() -> None:
    two = {"a": (0.6, 0.3), "b": (0.65, 0.3)}
    plan = bk.table(bk.plan(two, "pass@2", trials=[4], correlation=0.5), "plan")
    # pass@2 of Beta(mean, icc) is 1 - q (q + (1 - q) icc), q = 1 - mean.
    first, second = (1.0 - q * (q + (1.0 - q) * 0.3) for q in (0.4, 0.35))
    said = " ".join(plan.sentences)
    assert "the 95% interval of the difference in pass@2 on questions like these" in said
    assert f"pass@2 {first:.3g} of a and {second:.3g} of b, a difference of -0.0" in said
    assert "correlation of their difficulties 0.50" in said
    assert plan["prob_correct"].item() == pytest.approx(0.9, abs=0.01)
    alone = bk.table(bk.plan((0.6, 0.3), "pass@1", trials=[4]), "plan")
    assert alone["width"].item() == pytest.approx(0.1, rel=0.01)
    assert "95% interval of pass@1 on questions like these" in " ".join(alone.sentences)
