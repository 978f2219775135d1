"""Marks of a judge where the truth of some of the trials is known."""

import re
from collections import Counter
from itertools import product
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, expit, logit, roots_jacobi
from scipy.stats import kstest

import bayesatk as bk
from bayesatk.core.pooling.judges import JudgeRates
from bayesatk.core.pooling.states import States
from bayesatk.core.program.laws import CommonP, DifficultyLaw
from bayesatk.core.program.observations import CompletelyPooled, Marked, MarkedOnRule
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.grid import one_metric
from bayesatk.priors import HyperPrior
from bayesatk.priors.fields import Beta, Field, Fields

SAME = bk.JudgeError(0, 0, 0, 0, by_question=False)  # rates are the same for all questions
# What is known of a trial: its truth, or None, and its mark, or None.
KINDS = [(None, 0), (None, 1), *((truth, mark) for truth in (False, True) for mark in (None, 0, 1))]
RATES = tuple(Field(name, Beta(1.0, 1.0)) for name in ("sensitivity", "false_positive_rate"))


def simulated(rng, questions=60, trials=4, labels=80, rates=(0.95, 0.3), p=None):
    """Marks, and truth of some trials chosen at random (NaN elsewhere)."""
    p = rng.beta(2.0, 1.0, questions) if p is None else p
    right = rng.random((questions, trials)) < p[:, None]
    marks = (rng.random(right.shape) < np.where(right, *rates)).astype(int)
    known = np.zeros(right.size, bool)
    known[rng.choice(right.size, labels, replace=False)] = True
    return marks, np.where(known.reshape(right.shape), right, np.nan), right.astype(int)


def chance_without_p(counts, a, b, s, f):
    """Probability of trials in their order for p ~ Beta(a, b): hidden truths are enumerated."""
    (rejected, accepted), labelled = counts[:2], counts[2:]
    wrong, right = sum(labelled[:3]), sum(labelled[3:])
    rates = (1.0 - f) ** labelled[1] * f ** labelled[2]
    rates *= (1.0 - s) ** labelled[4] * s ** labelled[5]
    total = 0.0
    for i, j in product(range(accepted + 1), range(rejected + 1)):  # right ones among the marks
        ways = comb(accepted, i) * s**i * f ** (accepted - i)
        ways *= comb(rejected, j) * (1.0 - s) ** j * (1.0 - f) ** (rejected - j)
        up, down = right + i + j, wrong + accepted + rejected - i - j
        total += ways * np.exp(betaln(a + up, b + down) - betaln(a, b))
    return total * rates


def chance_of(counts, p, s, f):
    """Probability of trials in their order at p, from the definition alone."""
    total = 1.0
    for (truth, mark), count in zip(KINDS, counts, strict=True):
        chance = 0.0
        for right in (True, False):
            if truth is None or truth is right:
                marked = s if right else f
                given_right = 1.0 if mark is None else marked if mark else 1.0 - marked
                chance += (p if right else 1.0 - p) * given_right
        total *= chance**count
    return total


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=8, max_size=8), st.floats(0.1, 0.9), st.floats(0.05, 0.9),
    st.floats(0.05, 0.95), st.floats(0.05, 0.95),
)  # fmt: skip
def test_the_likelihood_is_the_integral_over_p(counts, mean, icc, s, f) -> None:
    total = (1.0 - icc) / icc
    a, b = mean * total, (1.0 - mean) * total
    one = chance_without_p(counts, a, b, s, f)
    states = States.of_counts(np.array([counts]))
    fields = HyperPrior().fields("beta", 0, False, 0)
    judge = JudgeRates(JudgeError(0, 0, 0, 0))
    fields = Fields((*fields, *judge.fields))
    values = {"mean": mean, "icc": icc, "sensitivity": s, "false_positive_rate": f}
    theta = np.array([[np.log(value / (1.0 - value)) for value in values.values()]])
    for kind in (Marked, MarkedOnRule):
        observation = kind(DifficultyLaw(fields), states, judge)
        logs = observation.log_states(theta, np.zeros((1, 1)))
        assert np.exp(logs.item()) == pytest.approx(one, rel=2e-5)
    alike = Fields((Field("mean", Beta(1.0, 1.0)), *judge.fields))
    observation = CompletelyPooled(CommonP(alike, False), states, judge)
    logs = observation.log_states(theta[:, [0, 2, 3]], np.zeros((1, 1)))
    assert np.exp(logs.item()) == pytest.approx(chance_of(counts, mean, s, f), rel=1e-9)


def mark_chance(marks, s, f, icc):
    """Probability of marks of trials, each with its truth; rates are drawn once, then used up."""
    chance, total = np.ones_like(s), (1.0 - icc) / icc
    seen = {True: np.zeros(2), False: np.zeros(2)}
    for mark, right in marks:
        rate, before = (s if right else f), seen[right]
        marked = (rate * total + before[1]) / (total + before.sum())  # Polya's urn
        chance = chance * (marked if mark else 1.0 - marked)
        before[int(mark)] += 1.0
    return chance


def quadrature_of(a, b, number, low=0.0, high=1.0):
    """Nodes and weights of a rule for a Beta density; of a uniform one on a part of its range."""
    x, weight = roots_jacobi(number, b - 1.0, a - 1.0)
    return low + (high - low) * 0.5 * (1.0 + x), weight / weight.sum()


def ends_by_dense_quadrature(questions, rates, low, high):
    """Mean, sd and 95% interval of the mean difficulty, which is uniform, as is the icc.

    Of questions (marked right of two trials, truth of a third one or None, its mark), counted, and
    of rules for sensitivity, false positive rate and rate_icc. Hidden truths are enumerated. Logits
    of the mean lie between `low` and `high`.
    """
    x, y = np.linspace(low, high, 91), np.linspace(-5.0, 5.0, 40)
    mean, icc = np.meshgrid(expit(x), expit(y), indexing="ij")
    a, b = mean * (1.0 - icc) / icc, (1.0 - mean) * (1.0 - icc) / icc
    nodes = [each.ravel() for each in np.meshgrid(*(nodes for nodes, _ in rates), indexing="ij")]
    logs = np.log(mean * (1.0 - mean) * icc * (1.0 - icc))[..., None]
    for (marked, truth, mark), count in questions.items():
        marks, chance = [1] * marked + [0] * (2 - marked), 0.0
        known = [] if truth is None else [(mark, truth)]
        for hidden in product((False, True), repeat=2):
            right, trials = sum(hidden) + bool(truth), 2 + len(known)
            of_p = np.exp(betaln(a + right, b + trials - right) - betaln(a, b))
            of_marks = mark_chance([*known, *zip(marks, hidden, strict=True)], *nodes)
            chance = chance + np.multiply.outer(of_p, of_marks)
        logs = logs + count * np.log(chance)
    weight = np.exp(logs - logs.max()).reshape(*mean.shape, *(len(w) for _, w in rates))
    weight = np.einsum("mistc,s,t,c->m", weight, *(w for _, w in rates), optimize=True)
    weight /= weight.sum()
    centre = weight @ expit(x)
    sd = np.sqrt(weight @ (expit(x) - centre) ** 2)
    upto = expit(x + 0.5 * (x[1] - x[0]))
    return centre, sd, np.interp([0.025, 0.975], np.cumsum(weight), upto)


@pytest.mark.parametrize("labelled", [False, True])
def test_interval_ends_are_those_of_dense_quadrature(labelled) -> None:
    """Of questions like these, whose pass@1 is the mean difficulty: to 2% of the width."""
    rng, size = np.random.default_rng(1), 250
    right = rng.random((size, 2 + labelled)) < rng.beta(1.2, 0.8, size)[:, None]
    marks = (rng.random(right.shape) < np.where(right, 0.9, 0.1)).astype(int)
    options = {"difficulty": "beta", "rng": 1, "draws": 100}
    if labelled:  # a third trial, and rates that differ between questions
        truth = np.full(right.shape, np.nan)
        truth[:, 2] = right[:, 2]
        fit = bk.evaluate(bk.tally(marks, truth=truth), "pass@1", **options)
        rates = [quadrature_of(1.0, 1.0, 14, 0.75, 1.0), quadrature_of(1.0, 1.0, 14, 0.0, 0.3)]
        rates.append(quadrature_of(0.5, 4.0, 12))
        rows = zip(
            marks[:, :2].sum(axis=1).tolist(),
            right[:, 2].tolist(),
            marks[:, 2].tolist(),
            strict=True,
        )
    else:
        judge = bk.JudgeError(27, 30, 4, 32)
        fit = bk.evaluate(marks, "pass@1", judge=judge, **options)
        rates = [quadrature_of(*shape, 16) for shape in judge.shapes]
        rates.append((np.array([1e-9]), np.ones(1)))
        rows = zip(marks.sum(axis=1).tolist(), [None] * size, [None] * size, strict=True)
    reach = (-0.5, 1.5) if labelled else (-2.0, 4.0)
    mean, sd, ends = ends_by_dense_quadrature(Counter(rows), rates, *reach)
    found = fit["closed_form"]["pass_at_k"].sel(target="population").squeeze()
    assert float(found.sel(statistic="mean")) == pytest.approx(mean, abs=0.03 * sd)
    assert float(found.sel(statistic="sd")) == pytest.approx(sd, rel=0.03)
    for name, end in zip(("ci_lower", "ci_upper"), ends, strict=True):
        assert float(found.sel(statistic=name)) == pytest.approx(end, abs=0.02 * np.ptp(ends))


def test_cumulants_on_a_rule_are_those_of_sums_over_right_trials() -> None:
    rng = np.random.default_rng(3)
    states = States.of_counts(rng.integers(0, 4, (5, 8)))
    judge = JudgeRates(JudgeError(0, 0, 0, 0))
    fields = Fields((*HyperPrior().fields("inflated", 0, False, 0), *judge.fields))
    law, metrics = DifficultyLaw(fields), [one_metric("pass@3"), one_metric("maj@3")]
    theta, offset = rng.normal(0.0, 0.8, (4, fields.size)), rng.normal(0.0, 1.0, (4, 3))
    summed, on_rule = (
        kind(law, states, judge).cumulants(metrics, theta, offset)
        for kind in (Marked, MarkedOnRule)
    )
    for cumulant in range(3):
        scale = np.abs(summed[..., cumulant]).max()
        np.testing.assert_allclose(
            on_rule[..., cumulant], summed[..., cumulant], rtol=1e-5, atol=1e-6 * scale
        )


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=8, max_size=8), st.floats(0.05, 0.95),
    st.floats(0.05, 0.95), st.floats(0.02, 0.9),
)  # fmt: skip
def test_rates_of_a_question_are_integrated(counts, s, f, rate_icc) -> None:
    """Uniform p; the marks of a question by Polya's urn, its hidden truths enumerated."""
    states = States.of_counts(np.array([counts]))
    judge = JudgeRates(SAME, varying=True)
    law = DifficultyLaw(Fields(judge.fields), (1.0, 1.0))
    theta = logit(np.array([[s, f, rate_icc]]))
    logs = Marked(law, states, judge).log_states(theta, np.zeros((1, 1)))
    known = [
        (mark, right)
        for (right, mark), n in zip(KINDS, counts, strict=True)
        for _ in range(n)
        if right is not None and mark is not None
    ]
    wrong, right = sum(counts[2:5]), sum(counts[5:])
    rejected, accepted = counts[:2]
    total, rates = 0.0, np.array([[s], [f], [rate_icc]])
    for i, j in product(range(accepted + 1), range(rejected + 1)):
        hidden = [(1, True)] * i + [(1, False)] * (accepted - i)
        hidden += [(0, True)] * j + [(0, False)] * (rejected - j)
        ways = comb(accepted, i) * comb(rejected, j)
        up, down = right + i + j, wrong + accepted + rejected - i - j
        chance = mark_chance([*known, *hidden], *rates).item()
        total += ways * chance * np.exp(betaln(1 + up, 1 + down))
    assert np.exp(logs.item()) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("judge", [None, SAME])
def test_the_posterior_is_that_of_an_enumeration_of_what_is_hidden(judge) -> None:
    """Hyperparameters from their prior, hidden truths enumerated, nothing shared but the model."""
    marks = [[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 0]]
    truth = [[1, None, None], [None, 0, None], [1, None, 0], [None, None, 0]]
    fit = bk.evaluate(
        bk.tally(marks, truth=truth), "pass@1,2", difficulty="beta", rng=1, draws=4000, judge=judge
    )
    rng = np.random.default_rng(5)
    size = 200_000
    mean, icc, s, f = rng.random((4, size))
    rate_icc = np.maximum(rng.beta(0.5, 4.0, size), 1e-9) if judge is None else np.full(size, 1e-9)
    total = (1.0 - icc) / icc
    a, b = np.maximum(mean * total, 1e-12), np.maximum((1.0 - mean) * total, 1e-12)
    weight, values, variance = np.ones(size), np.zeros((2, size)), np.zeros(size)
    for row, known in zip(marks, truth, strict=True):
        chance, credit, square = np.zeros(size), np.zeros((2, size)), np.zeros(size)
        for right in product((False, True), repeat=3):
            if any(t is not None and t != r for t, r in zip(known, right, strict=True)):
                continue
            number = sum(right)
            ways = np.exp(betaln(a + number, b + 3 - number) - betaln(a, b))
            ways = ways * mark_chance(zip(row, right, strict=True), s, f, rate_icc)
            chance += ways
            up, down, n = a + number, b + 3 - number, total + 3.0
            credit += ways * np.stack([up / n, 1.0 - down * (down + 1.0) / (n * (n + 1.0))])
            square += ways * up * (up + 1.0) / (n * (n + 1.0))
        weight *= chance
        values += credit / chance / len(marks)
        variance += (square / chance - (credit[0] / chance) ** 2) / len(marks) ** 2
    weight /= weight.sum()
    gap = values - (values @ weight)[:, None]
    error = np.sqrt((weight**2 * gap**2).sum(axis=1))
    table = bk.table(fit)
    table = table[table["target"] == "questions"]
    assert np.all(np.abs(table["mean"] - values @ weight) < 5.0 * error + 0.02 * table["sd"])
    expected = np.sqrt(weight @ (variance + gap[0] ** 2))
    assert table["sd"].iloc[0] == pytest.approx(expected, rel=0.03)


def test_the_truth_of_all_trials_is_the_answer_without_marks() -> None:
    rng = np.random.default_rng(1)
    marks, _, right = simulated(rng)
    fit = bk.evaluate(bk.tally(marks, truth=right), "pass@1,4", difficulty="beta", rng=1)
    alone = bk.evaluate(right, "pass@1,4", difficulty="beta", rng=1)
    pd.testing.assert_frame_equal(bk.table(fit), bk.table(alone))
    assert any("truth of every trial is known" in note for note in fit_notes(fit))


def fit_notes(fit):
    """Return all that is said of the data and of the result."""
    return [*fit.notes, fit.attrs["assumptions"]]


def test_a_judge_known_to_be_perfect_adds_nothing() -> None:
    rng = np.random.default_rng(2)
    marks, truth, right = simulated(rng, rates=(1.0, 0.0))
    perfect = JudgeError(10**11, 10**11, 0, 10**11)
    fit = bk.evaluate(
        bk.tally(marks, truth=truth), "pass@1,4", judge=perfect, difficulty="beta", rng=1
    )
    alone = bk.evaluate(right, "pass@1,4", difficulty="beta", rng=1)
    names = ["mean", "sd", "ci_lower", "ci_upper"]
    np.testing.assert_allclose(bk.table(fit)[names], bk.table(alone)[names], atol=2e-3)
    np.testing.assert_allclose(bk.table(fit)["mean"], bk.table(alone)["mean"], atol=1e-5)


def test_the_interval_is_narrower_than_those_of_labels_alone_and_of_a_set_from_elsewhere() -> None:
    rng = np.random.default_rng(3)
    marks, truth, _ = simulated(rng, 250, 4, 150, (0.95, 0.4))
    known = ~np.isnan(truth)
    right, said = truth[known] == 1.0, marks[known] == 1
    elsewhere = JudgeError(
        int((right & said).sum()), int(right.sum()), int((~right & said).sum()), int((~right).sum())
    )

    def width(data, **options):
        row = bk.table(bk.evaluate(data, "pass@1", difficulty="beta", rng=1, **options)).iloc[0]
        return row["ci_upper"] - row["ci_lower"]

    own = width(bk.tally(marks, truth=truth))
    share = right.mean()
    alone = 2.0 * 1.96 * np.sqrt(share * (1.0 - share) / known.sum())
    assert own < 0.85 * alone
    assert own < 0.6 * width(marks, judge=elsewhere)


def test_the_claim_says_how_many_labels_it_takes() -> None:
    rng = np.random.default_rng(7)
    marks, truth, right = simulated(rng, 250, 4, 80, (0.95, 0.4))
    shares, wanted = [], []
    for labels in (80, 400):
        known = np.flatnonzero(~np.isnan(truth))
        more = rng.choice(np.flatnonzero(np.isnan(truth)), labels - len(known), replace=False)
        truth.flat[more] = right.flat[more]
        fit = bk.evaluate(bk.tally(marks, truth=truth), "pass@1", difficulty="beta", rng=1)
        shares.append(float(fit["judge"]["pass_at_k"].sel(target="questions").squeeze()))
        found = re.search(
            r"known from 80 trials; with about (\d+)", bk.claim(fit, target="questions")
        )
        wanted += [] if found is None else [int(found[1])]
    assert shares[0] > 0.5 > shares[1]
    assert len(wanted) == 1
    assert 100 < wanted[0] < 400


@pytest.mark.long
def test_each_system_has_rates_of_its_own() -> None:
    rng = np.random.default_rng(4)
    strict, lenient = (simulated(rng, rates=rates) for rates in ((0.9, 0.05), (0.95, 0.5)))
    data = bk.tally({"a": strict[0], "b": lenient[0]}, truth={"a": strict[1], "b": lenient[1]})
    fit = bk.evaluate(data, "pass@1", difficulty="beta", rng=1)
    rates = fit["posterior"]["false_positive_rate"].mean(("chain", "draw")).values
    assert rates[1] - rates[0] > 0.2
    assert not any("calibration set tells" in note for note in fit.notes)
    alone = bk.evaluate(data["b"], "pass@1", difficulty="beta", rng=1)
    own = (
        each["closed_form"]["pass_at_k"].sel(statistic=["mean", "sd"]).isel(system=-1).values
        for each in (fit, alone)
    )
    np.testing.assert_allclose(*own, rtol=1e-9)


@pytest.mark.long
def test_all_that_takes_a_result_takes_this_one(tmp_path) -> None:
    rng = np.random.default_rng(6)
    parts = [simulated(rng, 30, 4, 40) for _ in range(2)]
    data = bk.tally(
        {"a": parts[0][0], "b": parts[1][0]},
        truth={"a": parts[0][1], "b": parts[1][1]},
        group=["x", "y"] * 15,
        weight=[1.0, 2.0] * 15,
        covariates={"length": list(rng.random(30))},
    )
    fit = bk.evaluate(data, "pass@1,4", difficulty="beta", rng=1)
    bk.save(fit, tmp_path / "fit.nc")
    again = bk.load_result(tmp_path / "fit.nc")
    pd.testing.assert_frame_equal(bk.table(again), bk.table(fit))
    assert again["constant_data"]["truth_count"].sum() == 80
    ahead = bk.compare(again)
    board = bk.leaderboard(again)
    probability = bk.table(ahead, "comparison")["prob_greater"].iloc[0]
    assert 0.5 <= probability <= 1.0
    assert "corrected for the judge" in str(bk.table(board, "leaderboard"))
    assert np.isfinite(bk.checks.exact_loo(again).elpd)
    assert len(bk.checks.question_table(again)) == 60
    assert "of trials of known truth" in bk.claim(again, system="a")
    for options in ({"group": "group"}, {"covariates": ["length"]}, {"population": "bootstrap"}):
        more = bk.evaluate(data["a"], "pass@1", difficulty="beta", rng=1, **options)
        assert bk.table(more)["sd"].between(0.01, 0.3).all()
    with pytest.raises(ValueError, match=r"without trials of known truth .* without truth"):
        bk.decide.e_value(fit)


@pytest.mark.slow
def test_what_takes_marks_as_they_are_refuses_trials_of_known_truth() -> None:
    marks, truth, _ = simulated(np.random.default_rng(9), 12, 3, 20)
    data = bk.tally({"a": marks, "b": marks[::-1]}, truth={"a": truth, "b": truth[::-1]})
    for run in (
        lambda: bk.decide.e_value(data),
        lambda: bk.checks.extrapolation_range(data, "pass@8"),
    ):
        with pytest.raises(ValueError, match=r"must be without trials of known truth.*truth"):
            run()


# Data


def test_truth_is_read_from_columns_and_arrays_and_shown() -> None:
    table = pd.DataFrame(
        {"task": ["a", "a", "b", "b"], "passed": [1, 0, 1, 1], "human": [1, None, 0, None]}
    )
    data = bk.tally(table, truth="human")
    array = bk.tally([[1, 0], [1, 1]], truth=[[1, None], [0, None]])
    expected = [[1, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 1, 0, 0, 0]]
    assert data.kinds[0].tolist() == array.kinds[0].tolist() == expected
    card = str(data)
    assert "truth known of 2 trials: 1 of 1 right and 1 of 1 wrong ones marked right" in card
    texts = table.assign(human=["True", "", "0", " "])
    assert bk.tally(texts, truth="human").kinds[0].tolist() == expected
    with pytest.warns(bk.OutcomeWarning, match="marks are in 'human' as well"):
        assert data.sha256() != bk.tally(table).sha256()
    again = bk.tally(data, group=["x", "y"])
    assert again.kinds.tolist() == data.kinds.tolist()
    scored = bk.tally(
        [["C", "P"]], scores={"C": 1, "P": 0.5, "I": 0}, success="score >= 0.5", truth=[[1, 0]]
    )
    assert scored.kinds[0].tolist() == [[0, 0, 0, 0, 1, 0, 0, 1]]


def test_what_is_counted_by_marks_does_not_stay_beside_truth() -> None:
    rng = np.random.default_rng(1)
    marks, truth, right = simulated(rng, 12, 3, 20)
    whole = bk.tally(marks, truth=right, cost=1 + marks)
    settled = whole.settled()
    assert settled is not None
    assert "cost_sums" not in settled.dataset
    assert settled.answers is None
    with pytest.raises(ValueError, match=r"success must be given where marks"):
        bk.evaluate(bk.tally(marks, truth=truth), "pass@1", success="score <= 0")


def test_truth_of_a_trial_without_a_mark_counts() -> None:
    data = bk.tally([[1, None, 0]], truth=[[None, 1, 0]], missing="ignore")
    assert data.kinds[0].tolist() == [[0, 1, 0, 1, 0, 1, 0, 0]]
    assert "1 without a mark" in str(data)
    wrong = bk.tally([[1, None, 0]], truth=[[None, 1, 0]], missing="wrong")
    assert wrong.kinds[0].tolist() == [[0, 1, 0, 1, 0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ([[1, 0]], {"truth": [[2, None]]}, r"must be 0 or 1 .* got 2 in 'truth' at system"),
        ([[1, 0]], {"truth": [[1]]}, "must be arranged like data"),
        (([1], [2]), {"truth": [[1, 0]]}, "truth must be left out for counts"),
        (
            [[3, 1]],
            {"truth": [[1, 0]], "scores": {1: 1, 2: 2, 3: 3}},
            r"must go with marks that are right or wrong; got scores .* success='score >= NUMBER'",
        ),
    ],
)
def test_bad_truth_is_refused(data, options, words) -> None:
    with pytest.raises(ValueError, match=words):
        bk.tally(data, **options)


@pytest.mark.parametrize(
    ("truth", "judge", "words"),
    [
        (
            [[1, None], [1, None]],
            None,
            r"right and wrong trials with marks; .* 2 right and 0 wrong",
        ),
        ([[1, None], [0, None]], "each", "must be a JudgeError, a mapping"),
        ([[None, None], [None, None]], None, "0 right and 0 wrong"),
    ],
)
def test_labels_that_say_too_little_are_refused(truth, judge, words) -> None:
    data = bk.tally([[1, 0], [1, 1]], truth=truth)
    with pytest.raises(ValueError, match=words):
        bk.evaluate(data, "pass@1", judge=judge)


@pytest.mark.long
def test_ranks_of_what_is_true_are_uniform_under_the_prior() -> None:
    """Simulation-based calibration (Talts et al. 2018), with labels: the prior made the data."""
    rng, ranks = np.random.default_rng(8), []
    while len(ranks) < 30:
        mean, icc, s, f = rng.random(4)
        p = rng.beta(mean * (1.0 / icc - 1.0), (1.0 - mean) * (1.0 / icc - 1.0), 12)
        marks, truth, _ = simulated(rng, 12, 3, 12, (s, f), p)
        if len(np.unique(truth[~np.isnan(truth)])) < 2:
            continue  # refused, whatever the rest of the data is
        data = bk.tally(marks, truth=truth)
        options = {"judge": SAME, "difficulty": "beta", "rng": 1, "draws": 250}
        drawn = bk.evaluate(data, "pass@1", **options).posterior.sel(target="questions")
        names = ("pass_at_k", "sensitivity", "false_positive_rate")
        pairs = zip(names, (p.mean(), s, f), strict=True)
        ranks.append([float((drawn[name] < value).mean()) for name, value in pairs])
    for values in np.transpose(ranks):
        assert kstest(values, "uniform").pvalue > 1e-3
