"""Rates of a gate: a case whose rates are known, new questions, and what is refused."""

from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom

import bayesatk as bk
from bayesatk.comparison.gates import rates
from bayesatk.comparison.gates.rates import draw_success_probabilities, shifted
from bayesatk.metrics.grid import parse
from bayesatk.results.result import Result

VERDICTS = ("pass", "fail", "inconclusive")


EFFECT, GATES = -0.3, 2000
ONE = bk.decide.GatePolicy("pass@1", 0.1, ci_prob=0.7, pooling="none", effect=EFFECT)


def test_rates_of_one_question_are_those_of_enumeration(monkeypatch) -> None:
    """Three trials of one question: 16 gates, whose probabilities are an integral over p."""
    law, verdicts = beta(16, 6), {}
    for new, old in product(range(4), repeat=2):
        runs = ([[1] * c + [0] * (3 - c)] for c in (new, old))
        verdicts[new, old] = bk.decide.gate(*runs, ONE)["gate"].attrs["verdict"]
    simulated, decide = {}, rates._verdict

    def once(template, policy, right, trials, index):
        key = tuple(right[index].ravel().tolist())
        if key not in simulated:
            simulated[key] = decide(template, policy, right, trials, index)
        return simulated[key]

    monkeypatch.setattr(rates, "_verdict", once)
    fit = bk.evaluate([[1] * 15 + [0] * 5], "pass@1", pooling="none", keep=["p"], rng=1)
    frame = bk.decide.gate_rates(fit, ONE, trials=3, gates=GATES, rng=1, progress=False)
    assert simulated.items() <= verdicts.items()
    for row, effect in zip(frame.to_dict("records"), (0.0, EFFECT), strict=True):
        assert (row["difference"], row["questions"], row["trials"]) == (effect, 1, 3.0)
        exact = dict.fromkeys(VERDICTS, 0.0)
        for (new, old), verdict in verdicts.items():

            def density(p: float, new: int = new, old: int = old, effect: float = effect) -> float:
                moved = max(p + effect, 0.0)
                return float(law.pdf(p) * binom.pmf(new, 3, moved) * binom.pmf(old, 3, p))

            exact[verdict] += quad(density, 0.3, 1.0)[0]
        assert sum(exact.values()) == pytest.approx(1.0, abs=1e-3)
        assert sorted(exact.values())[1] > 0.1  # at least two verdicts are frequent
        for name in VERDICTS:
            error = np.sqrt(exact[name] * (1.0 - exact[name]) / GATES)
            assert abs(row[f"prob_{name}"] - exact[name]) < 4.0 * error
            assert row[f"prob_{name}_error"] == pytest.approx(error, rel=0.2)


def test_new_questions_are_those_of_the_law() -> None:
    rng = np.random.default_rng(3)
    runs = rng.binomial(1, rng.beta(2, 1, 60)[:, None], (60, 4))
    result = Result.of(bk.evaluate(runs, "pass@1", difficulty="beta", rng=1))
    means = draw_success_probabilities(result, "population", 4000, rng).mean(axis=1)
    row = bk.table(result.tree).set_index("target").loc["population"]
    icc = float(result.tree["posterior"]["icc"].mean())
    drawn = row["mean"] * (1.0 - row["mean"]) * icc / 60  # which questions are drawn
    assert means.mean() == pytest.approx(row["mean"], abs=4.0 * means.std() / np.sqrt(4000))
    assert means.std() == pytest.approx(np.sqrt(row["sd"] ** 2 + drawn), rel=0.05)


@pytest.mark.parametrize("metric", ["pass@1", "pass^3", "maj@3"])
def test_shifted_probabilities_differ_by_the_effect(metric) -> None:
    p = np.random.default_rng(1).beta(2, 1, (5, 30))
    share = np.random.default_rng(2).dirichlet(np.ones(30))
    (estimand,) = parse(metric)
    moved = shifted(p, -0.2, estimand, share)
    assert (estimand.latent(moved) - estimand.latent(p)) @ share == pytest.approx(-0.2, abs=1e-9)
    odds = moved / (1.0 - moved) / (p / (1.0 - p))
    assert np.ptp(odds, axis=1) == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(ValueError, match="effect must leave the metric between its ends; got -1"):
        shifted(p, -1.0, estimand, share)


def test_weights_and_floors_are_those_of_the_gate() -> None:
    """A floor that no run can keep passes nothing; weights are those of the baseline."""
    runs = np.random.default_rng(4).binomial(1, 0.6, (12, 3))
    data = bk.tally(runs, questions=[f"q{i}" for i in range(12)], weight=np.arange(1, 13))
    fit = bk.evaluate(data, "pass@1", keep=["p"], rng=1)
    policy = bk.decide.GatePolicy("pass@1", 0.5, floors={"q3": 0.99}, pooling="complete")
    frame = bk.decide.gate_rates(fit, policy, gates=10, progress=False)
    assert frame.loc[0, "prob_pass"] == 0.0
    assert frame.loc[0, "sentence"].startswith("12 questions, 3 trials each: a system that is the")
    again = bk.decide.gate_rates(fit, policy, gates=10, progress=False)
    assert frame.equals(again)


FIT = bk.evaluate([[1, 0], [1, 1]], "pass@1", pooling="none", rng=1, draws=10)
BOTH = bk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "pass@1", rng=1, draws=10)
SCORED = bk.evaluate(bk.tally([[0, 1, 2]], scores={0: 0, 1: 0.5, 2: 1}), "bayes", rng=1, draws=10)
POLICY = bk.decide.GatePolicy("pass@1", 0.1)


@pytest.mark.parametrize(
    ("fit", "policy", "options", "words"),
    [
        (FIT, "pass@1", {}, "policy must be a GatePolicy; got 'pass@1'"),
        (FIT, POLICY, {}, r"fit must have the draws of p .* with keep=\['p'\]\.$"),
        (FIT, bk.decide.GatePolicy("plurality@2", 0.1), {}, "policy must have a metric of right"),
        (FIT, POLICY, {"target": "population"}, "got pooling='none'. Evaluate with pooling="),
        (FIT, POLICY, {"gates": 0}, "gates must be an integer >= 1"),
        (FIT, POLICY, {"target": "new"}, "target must be"),
        (BOTH, POLICY, {}, "must be a result of the baseline alone; it has 2"),
        (SCORED, POLICY, {}, "fit must be without scored categories for rates of"),
    ],
)
def test_what_cannot_be_simulated_is_refused(fit, policy, options, words) -> None:
    with pytest.raises(ValueError, match=words):
        bk.decide.gate_rates(fit, policy, **options)
