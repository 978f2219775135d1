"""Simulation-based calibration: right posteriors pass, planted bugs do not, of any model."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.stats import norm

import bayesatk as bk
from tests.conftest import FALSE_ALARM

QUIET = {"progress": False}
SCORES = {0: 0.0, 1: 0.5, 2: 1.0}


def template(questions: int, trials: int, scored: bool = False):
    marks = [[0] * trials] * questions
    return bk.tally(marks, scores=SCORES) if scored else bk.tally(marks)


def closed_form(questions, trials, scored=False, without=(), **options):
    """The model of the library, and the draws that `evaluate` gives of other data."""
    metric = "bayes" if scored else "pass@1"
    model = bk.models.build(template(questions, trials, scored), metric, form="full", **options)

    def posterior(data, rng):
        outcomes = (data["successes"], trials) if not scored else None
        if scored:
            dims = ("system", "question", "category")
            coords = {"score": ("category", list(SCORES.values()))}
            outcomes = xr.Dataset({"count": (dims, data["count"])}, coords=coords)
        fit = bk.evaluate(outcomes, metric, keep=["p"], draws=50, rng=rng, **options)
        return {"posterior": fit["posterior"].to_dataset().drop_vars(without)}

    return model, posterior


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"difficulty": "beta"}, {"pooling": "none"}, {"pooling": "complete"},
        # mean_p and icc of results are of the whole law, of the model of each Beta
        {"difficulty": "inflated", "without": ["mean_p", "icc"]},
        {"difficulty": "mixture", "without": ["mean_p", "icc"]},
        {"prior": bk.priors.HyperPrior((3.0, 1.5), (1.0, 4.0), families="beta")},
        {"prior": bk.priors.DirichletHyperPrior(), "scored": True},
        {"prior": bk.priors.DirichletPrior((3.0, 1.0, 1.0)), "pooling": "none", "scored": True},
        {"pooling": "complete", "scored": True},
        {  # mean_p of results is of levels, and of the model the mean expected score
            "prior": bk.priors.HyperPrior(icc=(2.0, 6.0), families="beta"), "scored": True,
            "without": ["mean_p"],
        },
    ],
    ids=[
        "beta", "none", "complete", "atoms", "two Betas", "prior", "categories", "Dirichlet",
        "categories alike", "levels",
    ],
)  # fmt: skip
def test_closed_forms_are_calibrated(options) -> None:
    found = bk.checks.calibrate(*closed_form(6, 3, **options), replications=120, rng=3, **QUIET)
    assert found.verdict == "calibrated", found.table.to_string()
    assert (found.table["detectable_bias"] < 0.45).all()  # what 120 are enough for
    assert {"p first", "p mean"} <= set(found.table.index) or options.get("pooling") == "complete"


def conjugate(bug: float = 0.0):
    """A normal mean of which the posterior is known; its sd or its mean may be wrong."""
    with pm.Model() as model:
        data = pm.Data("y_data", np.zeros(4))
        mean = pm.Normal("mean", 0.0, 1.0)
        pm.Deterministic("pair", pm.math.stack([mean, -mean]))
        pm.Normal("y", mean, 1.0, observed=data)

    def posterior(drawn, rng):
        centre, sd = drawn["y"].sum() / 5.0, 5.0**-0.5
        draws = norm(centre + bug * sd, sd).rvs((4, 50), random_state=rng)
        return {"posterior": xr.Dataset({"mean": (("chain", "draw"), draws)})}

    return model, posterior


def test_a_posterior_known_by_hand_passes_and_one_that_is_off_does_not() -> None:
    right = bk.checks.calibrate(*conjugate(), replications=300, rng=1, **QUIET)
    assert right.verdict == "calibrated"
    assert str(right).startswith("CALIBRATED: 1 quantities in 300 data sets; ")
    group = right.tree["prior_sbc"].to_dataset()
    assert dict(group.sizes) == {"chain": 1, "draw": 300}
    wrong = bk.checks.calibrate(*conjugate(bug=0.4), replications=300, rng=1, **QUIET)
    assert str(wrong).startswith("WRONG (mean): ")
    # Ranks of a posterior that is too high by .4 sd have normal scores of that mean.
    assert wrong.table["bias"]["mean"] == pytest.approx(-0.4, abs=0.18)
    again = bk.checks.calibrate(*conjugate(), replications=300, rng=1, **QUIET)
    xr.testing.assert_identical(group, again.tree["prior_sbc"].to_dataset())


@pytest.mark.long
@pytest.mark.slow
def test_models_of_users_and_of_the_library_are_sampled_by_nuts() -> None:
    mine, _ = conjugate()
    ours = bk.models.build(template(5, 4), difficulty="beta")
    for model, names in ((mine, {"mean", "pair first", "pair mean"}), (ours, {"mean_p", "icc"})):
        found = bk.checks.calibrate(model, replications=60, rng=5, alpha=FALSE_ALARM, **QUIET)
        assert found.verdict == "calibrated", found.table.to_string()
        assert set(found.table.index) == names


@pytest.mark.parametrize("bug", ["prior", "counts"])
def test_a_planted_bug_is_caught(bug) -> None:
    model, _ = closed_form(8, 2, pooling="none")

    def wrong(data, rng):
        counts = data["successes"] - (data["successes"] > 0) * (bug == "counts")
        prior = bk.priors.BetaPrior(2.0 if bug == "prior" else 1.0, 1.0)
        options = {"pooling": "none", "keep": ["p"], "draws": 50, "rng": rng}
        return bk.evaluate((counts, 2), "pass@1", prior=prior, **options)

    found = bk.checks.calibrate(model, wrong, replications=60, rng=6, **QUIET)
    assert found.verdict == "wrong"


def test_what_cannot_be_simulated_is_refused() -> None:
    model, posterior = conjugate()
    with pytest.raises(ValueError, match=r"model must be a pymc.Model; got list\. Pass your own"):
        bk.checks.calibrate([[1, 0]])
    with pytest.raises(ValueError, match="replications must be an integer >= 1"):
        bk.checks.calibrate(model, posterior, replications=0)
    with pytest.raises(ValueError, match="must have a variable of the model, mean, pair; got p"):
        bk.checks.calibrate(model, lambda *_: {"posterior": xr.Dataset({"p": 1})}, **QUIET)
    shaped = xr.Dataset({"mean": (("chain", "draw", "question"), np.zeros((2, 5, 3)))})
    with pytest.raises(ValueError, match=r"'mean' has 3 entries in a draw, and 1 in the model"):
        bk.checks.calibrate(model, lambda *_: {"posterior": shaped}, **QUIET)
    with pm.Model() as fixed:
        pm.Normal("y", pm.Normal("m"), 1.0, observed=[1.0])
    with pytest.raises(ValueError, match=r"observed=pm\.Data\('y_data', \.\.\.\)"):
        bk.checks.calibrate(fixed, **QUIET)
    with fixed:
        pm.Potential("more", fixed["m"])
    with pytest.raises(ValueError, match=r"must have no potentials.*got more"):
        bk.checks.calibrate(fixed, **QUIET)
