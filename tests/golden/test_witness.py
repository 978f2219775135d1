"""The witness of the golden results against draws of the prior, weighted by the likelihood.

The model is written here once more, as it would be simulated: parameters, then p of every question,
then marks. Small studies only: most draws of the prior weigh next to nothing.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.golden.make_golden import metrics_of, model_of, scored_model
from tests.golden.witness import answers

Array = NDArray[np.float64]
DRAWS, BATCHES = 400_000, 20
MOST = 4.5  # standard errors of the difference
SMALL = {"right": [3, 0, 2, 1], "trials": [3, 3, 3, 2]}
IN_GROUPS = SMALL | {"group": ["x", "x", "y", "y"]}
SLOPED = {"covariates": {"length": [1.0, 2.0, 4.0, 8.0]}}
JUDGED = {"judge": {"tp": 18, "p": 20, "fp": 2, "n": 20}}
WEIGHED = {"weight": [1.0, 3.0, 0.5, 2.0]}
BOTH, ALL = ["questions", "population"], ["questions", "population", "new_groups"]
STUDIES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "beta": (SMALL, BOTH),
    "inflated": (SMALL, BOTH),
    "mixture": (SMALL, BOTH),
    "none": (SMALL | WEIGHED, BOTH),
    "complete": (SMALL, BOTH),
    "beta, groups": (IN_GROUPS, ALL),
    "beta, covariate": (SMALL | SLOPED, BOTH),
    "beta, judge": (SMALL | JUDGED, BOTH),
    "none, judge": (SMALL | JUDGED, BOTH),
    "complete, judge": (SMALL | JUDGED, BOTH),
    "beta, weights": (SMALL | WEIGHED, BOTH),
    "beta, prior trials": (
        SMALL | {"prior_trials": {"right": [1, 0, 2, 2], "trials": [2] * 4, "weight": 0.5}}, BOTH,
    ),
    "inflated, groups, covariate, judge, weights": (
        IN_GROUPS | SLOPED | JUDGED | WEIGHED, BOTH,
    ),
    "mixture, groups, judge": (IN_GROUPS | JUDGED, ALL),
}  # fmt: skip


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _logit(p: Array) -> Array:
    return np.log(p / (1 - p))


class Simulated:
    """Parameters of the prior, and success probabilities given them."""

    def __init__(self, law: str, study: dict[str, Any], rng: np.random.Generator) -> None:
        self.law, self.rng = law, rng
        size = 2 if law == "mixture" else 1
        mean, icc = rng.random((2, DRAWS, size))
        if law == "mixture":  # labelled by their means
            mean = np.sort(mean, axis=1)
        self.eta, self.weight = _logit(mean), (1 - icc) / icc
        self.lower = rng.random(DRAWS)
        never, always, between = rng.dirichlet([1.0, 1.0, 8.0], DRAWS).T
        self.ends = np.stack([never, never + always], 1)
        del between
        self.x = np.zeros(len(study["trials"]))
        if "covariates" in study:
            (column,) = study["covariates"].values()
            self.x = (np.array(column) - np.mean(column)) / np.std(column)
        self.slope = rng.normal(0, 2.5, DRAWS)
        self.tau = np.abs(rng.normal(0, 1, DRAWS))
        self.same = rng.random(DRAWS)  # one p for all

    def p(self, shift: Array) -> Array:
        """Success probability of a question at an offset of the logit."""
        rng = self.rng
        if self.law == "none":
            return rng.random(DRAWS)
        if self.law == "complete":
            return self.same
        which = np.zeros(DRAWS, int)
        if self.law == "mixture":
            which = (rng.random(DRAWS) >= self.lower).astype(int)
        row = np.arange(DRAWS)
        mean, weight = _logistic(self.eta[row, which] + shift), self.weight[row, which]
        a, b = np.maximum(mean * weight, 1e-12), np.maximum((1 - mean) * weight, 1e-12)
        p = rng.beta(a, b)
        if self.law == "inflated":
            u = rng.random(DRAWS)
            p = np.where(u < self.ends[:, 0], 0.0, np.where(u < self.ends[:, 1], 1.0, p))
        return p


def brute_force(
    name: str, study: dict[str, Any], targets: list[str], seed: int
) -> tuple[Array, dict[str, Array]]:
    """Likelihood of every draw; and by target draws with the right posterior mean of pass@2."""
    rng = np.random.default_rng(seed)
    own = Simulated(name.partition(",")[0], study, rng)
    questions = len(study["trials"])
    labels = study.get("group", ["all"] * questions)
    effect = {label: own.tau * rng.normal(size=DRAWS) * ("group" in study) for label in labels}
    shifts = [own.slope * own.x[q] + effect[labels[q]] for q in range(questions)]
    p = np.stack([own.p(shift) for shift in shifts], 1)
    rate = p
    if "judge" in study:
        tp, right, fp, wrong = (study["judge"][key] for key in ("tp", "p", "fp", "n"))
        sensitive = rng.beta(tp + 1, right - tp + 1, (DRAWS, 1))
        lenient = rng.beta(fp + 1, wrong - fp + 1, (DRAWS, 1))
        rate = lenient + (sensitive - lenient) * p
    c, n = np.array(study["right"]), np.array(study["trials"])
    likelihood = (rate**c * (1 - rate) ** (n - c)).prod(1)
    if "prior_trials" in study:
        earlier = study["prior_trials"]
        c0, n0 = np.array(earlier["right"]), np.array(earlier["trials"])
        likelihood = likelihood * (p**c0 * (1 - p) ** (n0 - c0)).prod(1) ** earlier["weight"]
    share = np.array(study.get("weight", np.ones(questions)), float)
    share /= share.sum()
    value = 1 - (1 - p) ** 2
    found = {"questions": value @ share}
    if own.law == "none" or ("weight" in study and "covariates" not in study):
        drawn = rng.standard_exponential(p.shape) * share
        found["population"] = (value * drawn).sum(1) / drawn.sum(1)
    else:
        fresh = np.stack([1 - (1 - own.p(shift)) ** 2 for shift in shifts], 1)
        found["population"] = fresh @ share
    found["new_groups"] = 1 - (1 - own.p(own.tau * rng.normal(size=DRAWS))) ** 2
    return likelihood, {target: found[target] for target in targets}


def by_batch(weights: Array, values: Array) -> tuple[float, float]:
    """Weighted mean, and its standard error over batches."""
    tops = (weights * values).reshape(BATCHES, -1).sum(1)
    bottoms = weights.reshape(BATCHES, -1).sum(1)
    mean = tops.sum() / bottoms.sum()
    residual = tops - mean * bottoms
    return float(mean), float(np.sqrt(BATCHES * residual.var(ddof=1)) / bottoms.sum())


CASES = [
    pytest.param(name, marks=pytest.mark.long if " groups" in name else ()) for name in STUDIES
]


@pytest.mark.parametrize("name", CASES)
def test_the_witness_agrees_with_weighted_draws_of_the_prior(name: str) -> None:
    study, targets = STUDIES[name]
    law = name.partition(",")[0]
    options = {"pooling": law} if law in ("none", "complete") else {"difficulty": law}
    model = model_of(study | {"options": options}, law)
    grouped = "group" in study and law not in ("none", "complete")
    table, evidence, _ = answers([model], ["pass@2"], targets, 1, 8 if grouped else 11, 4000, 4)
    weights, drawn = brute_force(name, study, targets, 5)
    mean, error = by_batch(np.ones(DRAWS), weights)
    most = MOST * np.hypot(error / mean, evidence.errors)
    assert abs(np.log(mean) - evidence.values) < most + 1e-9
    for target, values in drawn.items():
        answer = table["pass@2", target]
        mean, error = by_batch(weights, values)
        assert abs(mean - answer.values[0]) < MOST * np.hypot(error, answer.errors[0]), target
        if target == "questions":
            square, error = by_batch(weights, (values - mean) ** 2)
            spread = 2 * answer.values[1] * answer.errors[1]
            assert abs(square - answer.values[1] ** 2) < MOST * np.hypot(error, spread)


SCORED: dict[str, dict[str, Any]] = {
    "partial": {},
    "none": {},
    "complete": {},
    "partial, weights": {"weight": [1.0, 3.0, 0.5]},
    "partial, covariate": {"covariates": {"length": [1.0, 2.0, 4.0]}},
    "partial, groups, covariate": {
        "covariates": {"length": [1.0, 2.0, 4.0]}, "group": ["x", "x", "y"],
    },
}  # fmt: skip


SCORED_CASES = [
    pytest.param(name, marks=pytest.mark.long if "groups" in name else ()) for name in SCORED
]


@pytest.mark.parametrize("name", SCORED_CASES)
def test_scores_agree_with_weighted_draws_of_the_prior(name: str) -> None:
    pooling = name.partition(",")[0]
    marks, scores = [["low", "high"], ["mid", "mid", "high"], ["low"]], np.array([0.0, 0.3, 1.0])
    names = ["low", "mid", "high"]
    study = {"marks": marks, "scores": dict(zip(names, scores, strict=True))} | SCORED[name]
    model = scored_model(study | {"options": {"pooling": pooling}})
    power = 8 if "group" in study else 11
    table, evidence, _ = answers([model], metrics_of("max@2"), ["questions"], 1, power, 4000, 4)
    rng = np.random.default_rng(3)
    mean, icc = rng.dirichlet(np.ones(3), DRAWS), rng.random((DRAWS, 1))
    same, likelihood = rng.dirichlet(np.ones(3), DRAWS), np.ones(DRAWS)
    (x,) = study.get("covariates", {"none": [0.0, 0.0, 0.0]}).values()
    x = (np.array(x) - np.mean(x)) / max(float(np.std(x)), 1e-9)
    slope, tau = rng.normal(0, 2.5, DRAWS), np.abs(rng.normal(0, 1, DRAWS))
    labels = study.get("group", ["", "", ""])
    effect = {label: tau * rng.normal(size=DRAWS) * ("group" in study) for label in labels}
    share = np.array(study.get("weight", np.ones(3))) / np.sum(study.get("weight", np.ones(3)))
    values = np.zeros(DRAWS)
    for question, row in enumerate(marks):
        moved = mean * np.exp((slope * x[question] + effect[labels[question]])[:, None] * scores)
        moved = moved / moved.sum(1, keepdims=True)
        a = np.ones((DRAWS, 3)) if pooling == "none" else moved * (1 - icc) / icc
        gamma = rng.standard_gamma(np.maximum(a, 1e-3))  # such icc are next to 1
        p = gamma / np.maximum(gamma.sum(1, keepdims=True), 1e-300)
        p = same if pooling == "complete" else p
        for mark in row:
            likelihood *= p[:, names.index(mark)]
        below = np.cumsum(p, 1)
        values += (1.0 - 0.3 * below[:, 0] ** 2 - 0.7 * below[:, 1] ** 2) * share[question]
    average, error = by_batch(np.ones(DRAWS), likelihood)
    most = MOST * np.hypot(error / average, evidence.errors) + 2e-3  # of the smallest parameters
    assert abs(np.log(average) - evidence.values) < most
    expected, error = by_batch(likelihood, values)
    answer = table["max@2", "questions"]
    assert abs(expected - answer.values[0]) < MOST * np.hypot(error, answer.errors[0]) + 1e-3
