"""Marks of several judges, and grades, where what is asked is right and wrong."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

import bayesatk as bk
from bayesatk.core.pooling.judges import pattern_chances
from bayesatk.core.pooling.marks import log_marked
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.data.outcomes import Outcomes

NAMES = ("alpha", "beta", "gamma")
QUICK = {"difficulty": "beta", "rng": 1}


def simulated(seed, questions=60, trials=4, labels=80, correlation=0.3):
    """Marks of three judges (judge, question, trial), truths with gaps, and p."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 1.0, questions)
    truth = rng.random((questions, trials)) < p[:, None]
    shared, apart = rng.standard_normal((1, *truth.shape)), rng.standard_normal((3, *truth.shape))
    z = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * apart
    rates = np.where(truth, np.array([0.9, 0.85, 0.8])[:, None, None], 0.2)
    known = np.full(truth.size, np.nan)
    places = rng.choice(truth.size, labels, replace=False)
    known[places] = truth.ravel()[places]
    return (z < norm.ppf(rates)).astype(int), known.reshape(truth.shape), truth, p


def panel_of(marks, truth=None) -> Outcomes:
    by_judge = {name: of_judge.tolist() for name, of_judge in zip(NAMES, marks, strict=True)}
    return bk.tally(None, marks=by_judge, truth=None if truth is None else truth.tolist())


# What marks say


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.03, 0.97), min_size=3, max_size=3), st.floats(0.0, 0.95),
    st.integers(0, 6),
)  # fmt: skip
def test_patterns_have_the_probabilities_of_normal_variates(rates, correlation, number) -> None:
    covariance = np.full((3, 3), correlation) + (1.0 - correlation) * np.eye(3)
    pattern = np.array(list(product([0, 1], repeat=3)))[number]
    sign = np.where(pattern == 1, 1.0, -1.0)  # z below its bound, or -z below the negative one
    mirrored = covariance * np.outer(sign, sign)
    expected = multivariate_normal.cdf(
        sign * norm.ppf(rates), np.zeros(3), mirrored, abseps=1e-7, releps=1e-7,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    found = pattern_chances(np.array([rates]), np.array([correlation]), pattern[None])
    assert found.item() == pytest.approx(expected, abs=2e-3 if correlation > 0.8 else 1e-4)


def test_patterns_sum_to_one_and_a_missing_mark_is_summed_over() -> None:
    rates, correlation = np.array([[0.9, 0.6, 0.2]]), np.array([0.5])
    every = np.array(list(product([0, 1], repeat=3)))
    chances = pattern_chances(rates, correlation, every)[0]
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    without = pattern_chances(rates, correlation, np.array([[1, -1, 0]])).item()
    assert without == pytest.approx(chances[(every[:, 0] == 1) & (every[:, 2] == 0)].sum())


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=11, max_size=11), st.integers(0, 10_000),
    st.floats(0.3, 4.0), st.floats(0.3, 4.0),
)  # fmt: skip
def test_the_likelihood_is_that_of_enumerated_truths(counts, seed, alpha, beta) -> None:
    """Three levels: of every trial without a label both truths are tried, p is integrated."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(3), 2)  # given wrong, and given right
    hidden = np.repeat(np.arange(3), counts[:3])
    wrong, right = sum(counts[3:7]), sum(counts[7:])
    labels = np.prod(chances[0] ** counts[4:7]) * np.prod(chances[1] ** counts[8:])
    rises = lambda a, n: np.prod(a + np.arange(n))  # noqa: E731
    total = 0.0
    for truths in product([0, 1], repeat=len(hidden)):
        up, down = right + sum(truths), wrong + len(truths) - sum(truths)
        marked = np.prod(chances[list(truths), hidden])
        total += marked * rises(alpha, up) * rises(beta, down) / rises(alpha + beta, up + down)
    nodes = Nodes.betas(np.array([alpha]), np.array([beta]), np.ones(1))
    states = States.of_counts(np.array([counts]))
    rates = Nodes(**{**nodes.__dict__, "rates": chances.reshape(1, -1)})
    logs = log_marked(rates, states) - states.log_ways
    assert np.exp(logs.item()) == pytest.approx(total * labels, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("pooling", ["partial", "none"])
def test_the_posterior_is_that_of_draws_from_the_prior(pooling) -> None:
    """Two judges, five questions; prior draws of everything weighted by enumerated truths."""
    marks = np.array([[[1, 1], [1, 0], [0, 0], [1, 1], [0, 1]], [[1, 1], [0, 0], [0, 1], [1, 1],
                                                                [1, 1]]])  # fmt: skip
    truth = np.array([[1, np.nan], [np.nan, 0], [0, np.nan], [1, np.nan], [np.nan, 1]])
    data = bk.tally(None, marks={"a": marks[0], "b": marks[1]}, truth=truth)
    options = QUICK if pooling == "partial" else {"pooling": "none", "rng": 1}
    fit = bk.evaluate(data, "pass@1", **options)
    size, rng = 400_000, np.random.default_rng(2)
    mean, icc = rng.random((2, size))
    alpha, beta = mean * (1.0 / icc - 1.0), (1.0 - mean) * (1.0 / icc - 1.0)
    if pooling == "none":
        alpha = beta = np.ones(size)  # uniform p, each by itself
    f = rng.beta(1.0, 2.0, (size, 2))
    s = f + (1.0 - f) * rng.random((size, 2))
    correlation = rng.beta(1.0, 2.0, (size, 2))
    patterns = np.array(list(product([0, 1], repeat=2)))
    given_wrong = pattern_chances(f, correlation[:, 0], patterns)
    given_right = pattern_chances(s, correlation[:, 1], patterns)
    weight, expected = np.ones(size), np.zeros(size)
    for question in range(5):
        numbers = 2 * marks[0, question] + marks[1, question]
        likelihood, first = np.zeros(size), np.zeros(size)
        for truths in product([0, 1], repeat=2):
            if any(not np.isnan(t) and t != x for t, x in zip(truth[question], truths,
                                                               strict=True)):  # fmt: skip
                continue
            up = sum(truths)
            chance = {
                0: beta * (beta + 1), 1: alpha * beta, 2: alpha * (alpha + 1)
            }[up] / ((alpha + beta) * (alpha + beta + 1))  # fmt: skip
            for right, number in zip(truths, numbers, strict=True):
                chance = chance * (given_right if right else given_wrong)[:, number]
            likelihood += chance
            first += chance * (alpha + up) / (alpha + beta + 2)
        expected = expected + first / likelihood / 5.0
        weight = weight * likelihood
    weight /= weight.sum()
    estimate = weight @ expected
    error = np.sqrt(weight**2 @ (expected - estimate) ** 2)
    mean_of_fit = fit["closed_form"]["pass_at_k"].sel(statistic="mean", target="questions").item()
    assert abs(mean_of_fit - estimate) < 4.0 * error + 2e-3
    assert error < 2e-3


# Laws


def test_the_order_of_judges_does_not_matter() -> None:
    marks, known, _, _ = simulated(1)
    means = []
    for order in list(permutations(range(3)))[::3]:
        data = panel_of(marks[list(order)], known)
        table = bk.table(bk.evaluate(data, "pass@1,4", **QUICK))
        means.append(table[["mean", "sd"]].to_numpy())
    assert np.abs(means[1][:, 0] - means[0][:, 0]).max() < 0.05 * means[0][:, 1].min()


def test_a_truth_of_every_trial_leaves_nothing_to_the_judges() -> None:
    marks, _, truth, _ = simulated(2, questions=10, labels=0)
    judged = bk.table(bk.evaluate(panel_of(marks, truth.astype(float)), "pass@1,4", **QUICK))
    plain = bk.table(bk.evaluate(truth.astype(int), "pass@1,4", **QUICK))
    assert np.allclose(judged["mean"], plain["mean"], atol=1e-6)


def test_judges_without_error_are_none() -> None:
    """Three who always agree with what is true: the answer of the truth alone, nearly."""
    _, _, truth, _ = simulated(3)
    exact = np.stack([truth.astype(int)] * 3)
    judged = bk.table(bk.evaluate(panel_of(exact), "pass@1", **QUICK))
    plain = bk.table(bk.evaluate(truth.astype(int), "pass@1", **QUICK))
    assert np.abs(judged["mean"] - plain["mean"]).max() < 0.5 * plain["sd"].min()


def test_several_judges_tell_more_than_one() -> None:
    marks, known, _, p = simulated(4)
    fit = bk.evaluate(panel_of(marks, known), "pass@1", **QUICK)
    alone = bk.evaluate(bk.tally(marks[0], truth=known), "pass@1", **QUICK)
    sd, sd_alone = (bk.table(one)["sd"].iloc[0] for one in (fit, alone))
    assert sd < sd_alone
    row = bk.table(fit).iloc[0]
    assert abs(row["mean"] - p.mean()) < 3.0 * row["sd"]
    judges = fit["posterior"]["sensitivity"]
    assert judges["judge"].values.tolist() == list(NAMES)
    truths = fit["posterior"]["mark_correlation"]["truth"].values.tolist()
    assert truths == ["wrong", "right"]


# Reading


@pytest.mark.long
def test_columns_of_a_table_are_read_like_arrays(tmp_path) -> None:
    marks, known, _, _ = simulated(5, questions=12, labels=20)
    rows = pd.DataFrame(
        {"question": question, "trial": trial, "gold": known[question, trial],
         **{name: marks[j, question, trial] for j, name in enumerate(NAMES)}}
        for question in range(12) for trial in range(4)
    )  # fmt: skip
    rows.loc[0, "gamma"] = np.nan
    table = bk.tally(rows, marks=list(NAMES), truth="gold")
    given_marks = marks.astype(object)
    given_marks[2, 0, 0] = None
    arrays = panel_of(given_marks, known)
    assert table.judges == NAMES == arrays.judges
    assert np.array_equal(table.kinds, arrays.kinds)
    assert "alpha marked" in str(table)
    assert "left out" not in str(table)
    fit = bk.evaluate(table, "pass@1", **QUICK)
    path = bk.save(fit, tmp_path / "fit.nc")
    again = bk.load_result(path)
    assert bk.table(again).equals(bk.table(fit))


def test_marks_that_judges_did_not_give_are_replicated_as_such() -> None:
    """What most of those say who marked a trial, over all that they may say."""
    marks, known, _, _ = simulated(10, questions=30)
    marks = marks.astype(object)
    marks[2, :15] = None
    marks[1, 10:20, :2] = None
    data = panel_of(marks, known)
    fit = bk.evaluate(data, "pass@1", keep=["predictive"], **QUICK)
    replicated = fit["posterior_predictive"]["successes"].mean().item() / 4
    assert abs(replicated - data.successes.values.mean() / 4) < 0.1


def test_grades_of_many_levels_are_put_together() -> None:
    rng = np.random.default_rng(6)
    truth = rng.random((40, 3)) < 0.6
    grade = np.round(expit(rng.normal(np.where(truth, 1.0, -1.0))), 2)
    known = np.where(rng.random(truth.shape) < 0.5, truth, np.nan)
    data = bk.tally(grade, scores=(0, 1), truth=known)
    fit = bk.evaluate(data, "pass@1,2", **QUICK)
    row = bk.table(fit).iloc[0]
    assert abs(row["mean"] - truth.mean()) < 4.0 * row["sd"]
    assert 2 < fit["posterior"].sizes["grade"] <= 6
    labels = bk.tally(known, missing="ignore")
    assert row["sd"] < bk.table(bk.evaluate(labels, "pass@1", **QUICK))["sd"].iloc[0]


def test_trials_to_mark_by_hand_are_those_on_which_judges_disagree() -> None:
    marks, known, _, _ = simulated(7)
    tree = bk.decide.next_labels(bk.evaluate(panel_of(marks, known), "pass@1", **QUICK), 20)
    widths = bk.table(tree, "labels").set_index("design")["width"]
    assert widths["chosen"] <= widths["at random"]
    assert "judges disagree" in widths.index
    trials = bk.table(tree, "labels_trials").set_index("mark")["prob_right"]
    assert trials["111"].min() > trials["000"].max()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bk.tally(None, marks={"a": [[1]]}), ["marks", "2 to 6"]),
        (lambda: bk.tally(None, marks={"a": [[1, 2]], "b": [[1, 1]]}), ["2", "a", "question 0"]),
        (lambda: bk.tally(None, marks={"a": [[1]], "b": [[1, 1]]}), ["marks of b", "[[2]]"]),
        (lambda: bk.tally([[1]], marks={"a": [[1]], "b": [[1]]}), ["data", "None"]),
        (lambda: bk.tally(pd.DataFrame({"question": [1], "a": [1]}), marks=["a", "x"]),
         ["marks", "'x'"]),
        (lambda: bk.evaluate(bk.tally(None, marks={"a": [[1, 0]], "b": [[1, 1]]}), "pass@1"),
         ["truth", "3 judges"]),
        (lambda: bk.evaluate(panel_of(*simulated(1)[:2]), "pass@1", judge="shared"), ["judge"]),
        (lambda: bk.evaluate(panel_of(*simulated(1)[:2]), "pass@1", prior_trials=[[1, 0]] * 60),
         ["prior_trials", "judges"]),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(call, words) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        call()
    assert all(word in str(refusal.value) for word in words)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["panel", "grades"])
def test_nuts_agrees(kind) -> None:
    marks, known, truth, _ = simulated(8, questions=20, trials=3, labels=30)
    data = panel_of(marks, known)
    if kind == "grades":
        noise = np.random.default_rng(9).normal(size=truth.shape)
        grade = np.clip(np.round(3.0 + np.where(truth, 0.8, -0.8) + noise), 1, 5).astype(int)
        data = bk.tally(grade, scores={level: level for level in range(1, 6)}, truth=known)
    fit = bk.evaluate(data, "pass@1,3", **QUICK)
    sampled = bk.sample(
        data, "pass@1,3", difficulty="beta", rng=2, draws=1500, tune=1500, progress=False,
        sample_kwargs={"target_accept": 0.95},
    )  # fmt: skip
    assert bk.verify(fit, sampled).verdict != "DISAGREE"
    means, sds = (fit["closed_form"]["pass_at_k"].sel(statistic=name) for name in ("mean", "sd"))
    gap = np.abs(sampled["posterior"]["pass_at_k"].mean(("chain", "draw")) - means)
    assert (gap < 0.25 * sds).all()


@pytest.fixture(scope="module", params=["judges", "grades"])
def of_levels(request):
    """A result of marks of several levels, of judges or of one who gives grades."""
    marks, truth, right, _ = simulated(6, questions=50, trials=3, labels=60)
    data = panel_of(marks, truth)
    if request.param == "grades":
        grades = 1 + (marks.sum(axis=0) > 1) + right  # of three
        data = bk.tally(grades, scores={1: 1, 2: 2, 3: 3}, truth=truth)
    return bk.evaluate(data, "pass@1", keep=["p"], draws=1000, **QUICK)


def test_single_questions_of_several_levels_add_up(of_levels) -> None:
    table = bk.checks.question_table(of_levels)
    mean = of_levels["closed_form"]["pass_at_k"].sel(statistic="mean", target="questions").item()
    assert table["mean"].mean() == pytest.approx(mean, abs=1e-3)  # laws are at some of the points
    assert table["prob_flip"].isna().all()


def test_a_rerun_is_of_marks_as_they_are(of_levels) -> None:
    """Flags of two runs differ by their binomial variances."""
    result = bk.Result.of(of_levels)
    p = result.posterior["p"].isel(system=0).values.reshape(-1, 50)
    names = result.study.judge_rates(0).names
    values = {name: result.posterior[name].isel(system=0).values for name in names}
    flat = {name: rates.reshape(len(p), *rates.shape[2:]) for name, rates in values.items()}
    s, f = result.study.flag_rates(0, flat).T[:, :, None]
    marked = f + (s - f) * p
    expected = np.sqrt(2.0 * (marked * (1.0 - marked)).mean() / 50)
    row = bk.decide.noise_floor(of_levels).iloc[0]
    assert row["sd"] == pytest.approx(expected, rel=0.05)


@pytest.mark.long
def test_marks_of_several_levels_from_the_model_fit_it(of_levels) -> None:
    table = bk.checks.criticise(of_levels, rng=1)
    # The judges' errors on one trial are alike, those on one question are not.
    assert not table["flagged"].any()
    rows = table[table["p_value"].notna()]
    assert (abs(rows["observed"] - rows["expected"]) < 4.0 * rows["sd"]).all()


# From files


def table_of_marks() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    columns = {"task": np.repeat([*"abcdef"], 3), "trial": np.tile([1, 2, 3], 6)}
    marks = {f"judge {name}": rng.choice([1.0, 0.0, np.nan], 18, p=[0.6, 0.3, 0.1])
             for name in "ab"}  # fmt: skip
    return pd.DataFrame({**columns, **marks, "human": rng.choice([1.0, 0.0, np.nan], 18)})


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_files_are_read_as_tables_in_memory_are(tmp_path, ending) -> None:
    table, path = table_of_marks(), tmp_path / f"runs.{ending}"
    if ending == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        (table.to_csv if ending == "csv" else table.to_parquet)(path, index=False)
    options = {"marks": {"a": "judge a", "b": "judge b"}, "truth": "human", "missing": "ignore"}
    in_memory, from_file = bk.tally(table, **options), bk.load(path, **options)
    assert from_file.judges == in_memory.judges == ("a", "b")
    assert from_file.dataset.drop_attrs().equals(in_memory.dataset.drop_attrs())
    assert bk.load(table, **options).dataset.equals(in_memory.dataset)
    by_column = bk.load(table, **options | {"marks": ["judge a", "judge b"]})
    assert by_column.judges == ("judge a", "judge b")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"marks": ["judge a", "x"]}, ["marks", "'x' is none", "judge b"]),
        ({"marks": "judge a,judge b"}, ["marks", "names of columns", "'judge a,judge b'"]),
        ({"columns": {"outcome": "human"}}, ["columns must name no outcome", "'human'"]),
        ({"scores": {0: 0, 1: 1}}, ["scores must be left out", "several judges"]),
        ({"wide": True}, ["wide must be left out", "several judges"]),
    ],
)
def test_files_of_marks_are_refused_by_name(tmp_path, options, words) -> None:
    table_of_marks().to_csv(path := tmp_path / "runs.csv", index=False)
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 its words are looked at
        bk.load(path, **{"marks": ["judge a", "judge b"], "truth": "human", **options})
    assert all(word in str(refusal.value) for word in words)
