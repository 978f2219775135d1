"""From which k another system leads, pairs in one order, and results of some systems."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import betaln

import bayesatk as bk
from bayesatk.comparison.pairs.crossings import lead_probabilities
from tests.conftest import plan_table

KS = [1, 2, 4, 8]
ERROR = 0.035  # four standard errors of a share of 4000 draws


def _first_k(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Shares of the k from which the second of two curves (draws, k) leads, by the definition."""
    counts = np.zeros(first.shape[1] + 1)
    for difference in first - second:
        leads = [k for k in range(len(difference)) if (difference[k:] < 0).all()]
        counts[min(leads, default=len(difference))] += 1
    return counts / len(first)


def _pass_at(p: np.ndarray, weight: np.ndarray | float) -> np.ndarray:
    """Means of pass@k over questions (draws, k), of p (draws, questions)."""
    return np.stack([((1 - (1 - p) ** k) * weight).sum(axis=1) for k in KS], axis=1)


def _shares(found, target: str) -> np.ndarray:
    return found.probabilities.query("target == @target")["prob"].to_numpy()


def test_shares_of_draws_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, (2, 200, 4)).astype(float)
    signs = np.sign(first - second).astype(int).T
    assert lead_probabilities(signs) == pytest.approx(_first_k(first, second))


def test_on_these_questions_it_is_a_simulation_of_betas() -> None:
    successes = np.array([[8, 1, 3], [3, 4, 4]])
    data = bk.tally((successes, np.full((2, 3), 8)), systems=["steady", "varied"])
    fit = bk.evaluate(data, "pass@1,2,4,8", pooling="none", rng=1)
    found = bk.decide.crossing(fit, of="steady", against="varied", rng=1)
    rng = np.random.default_rng(2)
    p = [rng.beta(1 + s, 9 - s, (20_000, 3)) for s in successes]
    expected = _first_k(*(_pass_at(values, 1 / 3) for values in p))
    assert (expected[1:4] > 0.05).sum() >= 1  # the curves do cross
    assert _shares(found, "questions") == pytest.approx(expected, abs=ERROR)


def test_one_question_has_no_crossing_and_an_exact_probability() -> None:
    fit = bk.evaluate({"a": [[1, 1, 0]], "b": [[1, 0, 0]]}, "pass@1,2,4", pooling="none", rng=1)
    row = bk.decide.crossing(fit, rng=1).table.iloc[0]
    a, b, c, d = 2, 3, 3, 2  # P(Beta(a, b) > Beta(c, d)), the sum of Cook (2003)
    i = np.arange(a)
    ahead = np.exp(betaln(c + i, b + d) - np.log(b + i) - betaln(1 + i, b) - betaln(c, d)).sum()
    assert (row["system"], row["other"], row["prob_crosses"]) == ("a", "b", 0.0)
    assert row["prob_always"] == pytest.approx(ahead, abs=ERROR)


def test_on_questions_like_these_it_is_a_paired_bootstrap() -> None:
    rng, trials = np.random.default_rng(3), 100
    p = np.stack([np.full(40, 0.35), rng.beta(0.5, 0.75, 40)])
    successes = rng.binomial(trials, p)
    fit = bk.evaluate(
        bk.tally((successes, np.full(p.shape, trials)), systems=["a", "b"]),
        "pass@1,2,4,8", pooling="none", rng=1,
    )  # fmt: skip
    found = bk.decide.crossing(fit, of="b", against="a", rng=1)
    weight = rng.dirichlet(np.ones(40), 20_000)
    draws = [rng.beta(1 + s, 1 + trials - s, (20_000, 40)) for s in successes]
    expected = _first_k(*(_pass_at(draws[system], weight) for system in (1, 0)))
    assert (expected[1:4] > 0.05).sum() >= 1
    assert _shares(found, "population") == pytest.approx(expected, abs=2 * ERROR)


def _studies():
    rng = np.random.default_rng(4)
    runs = {name: rng.binomial(1, 0.3 + 0.1 * i, (12, 4)).astype(float)
            for i, name in enumerate("abc")}  # fmt: skip
    beta = {"difficulty": "beta"}
    yield "plain", bk.tally(runs), "pass@1,2,4", beta
    yield "groups", bk.tally(runs, group=["u", "v", "w"] * 4), "pass@1,2,4", {"group": "group"}
    yield "weights", bk.tally(runs, weight=[1, 2, 3] * 4), "pass^1,2,4", beta
    gaps = {name: values.copy() for name, values in runs.items()}
    gaps["a"][:3], gaps["c"][6:] = np.nan, np.nan
    yield "gaps", bk.tally(gaps, missing="ignore"), "pass@1,2,4", beta
    scores = {name: values * rng.choice([0.5, 1.0], values.shape) for name, values in runs.items()}
    yield "scores", bk.tally(scores, scores={0: 0, 0.5: 0.5, 1: 1}), "max@1,2,4", {}
    judge = bk.JudgeError(tp=90, p=100, fp=5, n=100)
    yield "judge", bk.tally(runs), "pass@1,2,4", {"judge": judge, "pooling": "none"}
    answers = {name: rng.choice(["x", "y", "z"], (12, 4)).tolist() for name in "abc"}
    yield (
        "votes",
        bk.tally(None, answers=answers, reference=["x"] * 12),
        "plurality@1,3",
        {"pooling": "none"},
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "metrics", "options"),
    [
        pytest.param(*study, id=name, marks=[pytest.mark.long] * (name == "groups"))
        for name, *study in _studies()
    ],
)
def test_every_fit_of_two_systems_has_crossings(data, metrics, options) -> None:
    fit = bk.compare(bk.evaluate(data, metrics, rng=1, **options), rng=1)
    found = bk.decide.crossing(fit, metrics.rstrip("0123456789,"), rng=1)
    table = found.table
    assert len(table) == 3 * table["target"].nunique()
    total = table["prob_always"] + table["prob_crosses"] + table["prob_never"]
    assert total.to_numpy() == pytest.approx(1.0)
    assert str(found).count("\n") == len(table) - 1
    rows = bk.comparison_table(fit)
    last = rows[rows["metric"] == rows["metric"].iloc[-1]].set_index(["system", "other", "target"])
    for row in table.to_dict("records"):
        if row["questions"] < data.trials.shape[1]:
            continue
        key = row["system"], row["other"], row["target"]
        turned = row["other"], row["system"], row["target"]
        pair = last.loc[key if key in last.index else turned]
        ahead = pair["prob_greater"] if key in last.index else 1.0 - pair["prob_greater"]
        assert row["prob_never"] == pytest.approx(ahead, abs=ERROR + pair["prob_tie"])


def test_systems_alike_are_as_likely_to_lead() -> None:
    runs = [[1, 0, 0, 1], [0, 0, 1, 0]]
    fit = bk.evaluate({"a": runs, "b": runs}, "pass@1,2,4", rng=1)
    table = bk.decide.crossing(fit, rng=1).table
    assert (table["prob_always"] <= 0.5).all()
    assert table["prob_never"].to_numpy() == pytest.approx(0.5, abs=0.001)  # ties apart


def test_crossings_need_two_systems_a_curve_and_a_question() -> None:
    runs = {"a": [[1, 0]], "b": [[1, 1]]}
    fit = bk.evaluate(runs, "pass@1,2 bayes", rng=1)
    with pytest.raises(ValueError, match=r"these are: 'pass@'\. Got 'pass@2'"):
        bk.decide.crossing(fit, "pass@2")
    with pytest.raises(ValueError, match="at least two systems"):
        bk.decide.crossing(bk.evaluate([[1, 0]], "pass@1,2", rng=1))
    gaps = {"a": [[1, 0], [None, None]], "b": [[None, None], [1, 1]]}
    apart = bk.evaluate(bk.tally(gaps, missing="ignore"), "pass@1,2", rng=1)
    with pytest.raises(ValueError, match="tried the same question"):
        bk.decide.crossing(apart)


def test_a_pair_has_one_order_at_all_k() -> None:
    runs = {"a": [[1] * 8, [0] * 8] * 10, "b": [[1, 0, 0, 0] * 2] * 20, "c": [[1, 0] * 4] * 20}
    fit = bk.compare(bk.evaluate(runs, "pass@1,8", pooling="none", rng=1), rng=1)
    rows = bk.comparison_table(fit)
    assert len(set(zip(rows["system"], rows["other"], strict=True))) == 3
    pair = rows.query("system == 'a' and other == 'b' and target == 'questions'")
    assert pair["verdict"].tolist() == ["ahead", "behind"]
    assert "b is ahead of a" in pair["sentence"].iloc[1]
    turned = bk.comparison_table(fit, of="b", against="a").query("target == 'questions'")
    assert turned["mean"].tolist() == (-pair["mean"]).tolist()
    assert turned["verdict"].tolist() == ["behind", "ahead"]
    assert turned["sentence"].tolist() == pair["sentence"].tolist()
    chosen = bk.comparison_table(fit, of=["b", "c"])
    orders = list(dict.fromkeys(zip(chosen["system"], chosen["other"], strict=True)))
    assert orders == [("b", "a"), ("b", "c"), ("c", "a")]
    with pytest.raises(ValueError, match="against must be among"):
        bk.comparison_table(fit, of="a", against="z")


@pytest.mark.parametrize("seed", range(8))
def test_ordinary_data_give_tables_without_a_warning(seed) -> None:
    rng = np.random.default_rng([5, seed])
    questions, trials = rng.integers(1, 9, 2)
    p = rng.beta(*rng.choice([0.1, 1.0, 3.0], 2), (3, questions))
    data = bk.tally((rng.binomial(trials, p), np.full(p.shape, trials)), systems=list("abc"))
    pooling = ["partial", "none", "complete"][seed % 3]
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        families = "beta" if seed and pooling == "partial" else None
        fit = bk.evaluate(data, "pass@1,3 pass^3", pooling=pooling, difficulty=families, rng=seed)
        fit = bk.compare(fit, rope=0.05 * (seed % 2), rng=seed)
        rows = bk.comparison_table(fit)
        bk.decide.crossing(fit, rng=seed)
    numbers = rows[["mean", "sd", "prob_greater", "monte_carlo_error"]].to_numpy()
    assert np.isfinite(numbers).all()
    assert (rows["monte_carlo_error"] >= 0).all()


def test_a_result_of_some_systems_compares_as_their_data() -> None:
    rng = np.random.default_rng(6)
    runs = {name: rng.binomial(1, 0.3 + 0.1 * i, (12, 4)) for i, name in enumerate("abc")}
    data = bk.tally(runs)
    fit = bk.compare(bk.evaluate(data, "pass@1,2", rng=1), rng=1)
    some = bk.select_systems(fit, ["c", "a"])
    assert bk.Result.of(some).systems == ["a", "c"]
    assert "comparison" not in some.children
    alone = bk.evaluate(data.sel(system=["a", "c"]), "pass@1,2", rng=1)
    tables = [bk.comparison_table(bk.compare(result, rng=1)) for result in (some, alone)]
    assert tables[0]["mean"].to_numpy() == pytest.approx(tables[1]["mean"].to_numpy(), abs=1e-9)
    assert some.attrs["input_sha256"] == data.sel(system=["a", "c"]).sha256()
    with pytest.raises(ValueError, match="system must be among"):
        bk.select_systems(fit, "z")


def test_plans_of_some_systems_of_a_fit_or_of_data() -> None:
    rng = np.random.default_rng(7)
    data = bk.tally({name: rng.binomial(1, 0.4, (30, 4)) for name in "abc"})
    fit, goal = bk.evaluate(data, "pass@1", rng=0), {"width": 0.1, "trials": [2]}
    alone = plan_table(bk.evaluate(data["b"], "pass@1", rng=0), "pass@1", **goal)
    assert plan_table(fit, "pass@1", system="b", **goal)["questions"].item() == pytest.approx(
        alone["questions"].item(), rel=0.05
    )
    assert plan_table(data, "pass@1", system="b", **goal).equals(alone)
    with pytest.raises(ValueError, match=r"choose them: system=\['a', 'b'\]"):
        plan_table(data, "pass@1", **goal)
    with pytest.raises(ValueError, match="system must be left out"):
        plan_table((0.6, 0.3), "pass@1", system="a", **goal)


@pytest.mark.parametrize(("first", "second"), [*pairwise(["a", "a ", "  a"]), ("é", "e\u0301")])
def test_names_that_nobody_can_tell_apart_are_refused(first, second) -> None:
    with pytest.raises(ValueError, match="names that can be told apart"):
        bk.tally({first: [[1, 0]], second: [[1, 1]]})
