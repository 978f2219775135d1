"""Marks of a judge that errs: against direct simulation from the definitions, and known limits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import bayesatk as bk
from bayesatk.posterior import model
from tests.conftest import plan_table

JUDGE = bk.JudgeError(tp=27, p=30, fp=4, n=32)
PERFECT = bk.JudgeError(tp=10**15, p=10**15, fp=0, n=10**15)
MARKS = np.array([0, 1, 2, 2, 1]), np.array([2, 2, 2, 2, 1])
METRICS = ["pass@1,2", "pass^2"]


def _statistic(fit, name, k=None, target="questions", statistic="mean"):
    values = fit["closed_form"].to_dataset()[name].isel(system=0).sel(statistic=statistic)
    values = values if k is None else values.sel(k=k)
    return float(values.sel(target=target) if "target" in values.dims else values)


def _weighted(values, weight):
    """Mean, sd and the standard error of the mean of importance sampling."""
    share = weight / weight.sum()
    mean = share @ values
    gap = values - mean
    return mean, np.sqrt(share @ gap**2), np.sqrt((share**2) @ gap**2)


def test_groups_and_earlier_trials_without_pooling_are_what_weighted_draws_say() -> None:
    """Earlier trials have marks of the same judge; groups have its rates in common alone."""
    rng, size = np.random.default_rng(3), 200_000
    p, before, group = rng.random((size, 5)), np.array([1, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 1])
    s, f = rng.beta(28, 4, size), rng.beta(5, 29, size)
    mark = f[:, None] + (s - f)[:, None] * p
    weight = binom.pmf(MARKS[0], MARKS[1], mark).prod(axis=1)
    earlier = weight * np.where(before == 1, mark, 1.0 - mark).prod(axis=1)
    asked = {"judge": JUDGE, "pooling": "none", "draws": 50, "rng": 1}
    data = bk.tally(MARKS, group=group.tolist())
    fit = bk.evaluate(data, "pass@2", group="group", **asked)
    rows = bk.table(fit, by="group").query("target == 'questions'")
    before_too = bk.evaluate(MARKS, "pass@2", prior_trials=(before, np.ones(5, int)), **asked)
    found = [rows.iloc[0], rows.iloc[1], bk.table(fit).iloc[0], bk.table(before_too).iloc[0]]
    g = 1.0 - (1.0 - p) ** 2
    kept = [group == 0, group == 1, group >= 0, group >= 0]
    for row, questions, w in zip(found, kept, [weight] * 3 + [earlier], strict=True):
        mean, sd, error = _weighted(g[:, questions].mean(axis=1), w)
        assert row["mean"] == pytest.approx(mean, abs=4 * error + 0.02 * sd)
        assert row["sd"] == pytest.approx(sd, rel=0.03)


def test_each_system_is_evaluated_alone_and_the_calibration_set_of_all_is_noted() -> None:
    """Two systems, one p each, drawn from the prior with the rates that they have in common."""
    rng, size = np.random.default_rng(4), 300_000
    p, f, s = rng.random((2, size)), rng.beta(5, 29, size), rng.beta(28, 4, size)
    weight = binom.pmf([[24], [30]], 40, f + (s - f) * p)
    data = bk.tally(np.array([[24], [30]]), trials=np.full((2, 1), 40), systems=["a", "b"])
    fit = bk.evaluate(data, "pass@1", judge=JUDGE, pooling="complete", rng=1)
    for system in range(2):  # the marks of the other say nothing here
        mean, sd, error = _weighted(p[system], weight[system])
        own = fit["closed_form"]["pass_at_k"].isel(system=system).sel(target="questions", k=1)
        assert float(own.sel(statistic="mean")) == pytest.approx(mean, abs=4 * error + 0.03 * sd)
        assert float(own.sel(statistic="sd")) == pytest.approx(sd, rel=0.03)
    drawn = fit["posterior"]["pass_at_k"].sel(target="questions").squeeze("k")
    a, b = (drawn.sel(system=one).values.ravel() for one in ("a", "b"))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.07  # 4000 draws
    compared = bk.compare(fit)
    found = compared["comparison"]["pass_at_k"].sel(system="b", other="a", target="questions", k=1)
    sd = _weighted(p[1] - p[0], weight.prod(axis=0))[1]
    assert float(found.sel(contrast="sd")) > 1.1 * sd  # less certain than it is, as the note says
    for said in (fit.notes, compared.notes):
        assert sum("One calibration set tells the error rates" in one for one in said) == 1
    apart = bk.evaluate(data, "pass@1", judge={"a": JUDGE, "b": JUDGE}, pooling="complete", rng=1)
    assert not any("One calibration set" in one for one in apart.notes)
    assert not any(
        "One calibration set" in one
        for one in bk.evaluate(data["a"], "pass@1", judge=JUDGE, pooling="complete", rng=1).notes
    )


@pytest.mark.parametrize(
    ("pooling", "difficulty"),
    [("partial", None), ("partial", "beta"), ("none", None), ("complete", None)],
)
def test_a_judge_without_error_changes_nothing(pooling, difficulty) -> None:
    rng = np.random.default_rng(5)
    trials = rng.integers(1, 5, 25)
    data = rng.binomial(trials, rng.beta(1.0, 0.7, 25)), trials
    known = {"pooling": pooling, "difficulty": difficulty, "rng": 1}
    one, other = (
        bk.evaluate(data, ["pass@1,4", "pass^2", "maj@3"], **known, **more)["closed_form"]
        for more in ({"judge": PERFECT}, {})
    )
    targets = ["questions"] if pooling == "none" else ["questions", "population"]
    atol = 1e-6 if pooling == "complete" else 1e-9  # a table, where a Beta's quantiles are known
    for name in ("pass_at_k", "pass_hat_k", "maj_at_k"):
        ours, theirs = (each[name].sel(target=targets) for each in (one, other))
        for statistic in ("mean", "sd", "ci_lower", "ci_upper"):
            gap = np.abs(
                ours.sel(statistic=statistic).values - theirs.sel(statistic=statistic).values
            )
            allowed = np.full(gap.shape, atol)
            if statistic.startswith("ci"):  # of few questions, from draws that are not the same
                drawn = theirs.sel(statistic="ci_error").values
                allowed += np.where(drawn > 1e-3, 2.0 * drawn, 0.0)
            assert (gap <= allowed).all()


def test_much_data_give_the_rogan_gladen_estimate() -> None:
    judge = bk.JudgeError(tp=850_000, p=1_000_000, fp=120_000, n=1_000_000)
    fit = bk.evaluate(([4321] * 100, [10_000] * 100), "pass@1", judge=judge, pooling="complete")
    estimate = (0.4321 - 0.12) / (0.85 - 0.12)
    # Delta method: of the marks, and of the calibration set.
    variance = 0.4321 * 0.5679 / 1e6 + estimate**2 * 0.85 * 0.15 / 1e6
    variance += (1 - estimate) ** 2 * 0.12 * 0.88 / 1e6
    sd = np.sqrt(variance) / 0.73
    assert _statistic(fit, "pass_at_k", 1) == pytest.approx(estimate, abs=0.01 * sd)
    assert _statistic(fit, "pass_at_k", 1, statistic="sd") == pytest.approx(sd, rel=0.01)
    ends = [_statistic(fit, "pass_at_k", 1, statistic=f"ci_{one}") for one in ("lower", "upper")]
    assert ends == pytest.approx([estimate - 1.96 * sd, estimate + 1.96 * sd], abs=0.05 * sd)
    share = 1.0 - 0.4321 * 0.5679 / 1e6 / variance
    own = float(fit["judge"]["pass_at_k"].sel(k=1, target="questions").squeeze())
    assert own == pytest.approx(share, abs=0.02)


@settings(max_examples=3)
@given(st.integers(2, 8), st.integers(1, 4), st.integers(0, 2**32), st.sampled_from([1, 2]))
def test_any_marks_have_a_posterior(questions, most, seed, systems) -> None:
    rng = np.random.default_rng(seed)
    trials = rng.integers(1, most + 1, (systems, questions))
    marks = rng.binomial(trials, rng.random((systems, 1)))
    size = rng.integers(8, 100, 2)
    judge = bk.JudgeError(tp=int(size[0]), p=int(size[0]), fp=0, n=int(size[1]))
    data = bk.tally(marks, trials=trials)
    fit = bk.evaluate(data, "pass@1,3", judge=judge, difficulty="beta", draws=50, rng=1)
    found = fit["closed_form"]["pass_at_k"]
    low, mean, high = (found.sel(statistic=one).values for one in ("ci_lower", "mean", "ci_upper"))
    assert np.isfinite(found.sel(statistic="sd").values).all()
    assert ((low >= 0) & (low <= mean) & (mean <= high) & (high <= 1)).all()


def test_marks_that_contradict_the_calibration_are_noted() -> None:
    """The judge marked 30% of wrong trials right, and of half of the questions next to none."""
    judge = bk.JudgeError(tp=95, p=100, fp=30, n=100)
    rng = np.random.default_rng(6)
    good = np.repeat([0, 16], [30, 30])
    marks = rng.binomial(good, 0.95) + rng.binomial(16 - good, 0.03)
    fit = bk.evaluate((marks, [16] * 60), "pass@1", judge=judge, difficulty="beta", rng=1)
    assert any("contradict the calibration of the judge's false" in one for one in fit.notes)
    usual = rng.binomial(good, 0.95) + rng.binomial(16 - good, 0.3)
    fit = bk.evaluate((usual, [16] * 60), "pass@1", judge=judge, difficulty="beta", rng=1)
    assert not any("contradict" in one for one in fit.notes)


def test_a_table_of_trials_marked_twice_is_counted() -> None:
    mark, truth = [1] * 19 + [0] * 21, [1] * 18 + [0] * 1 + [1] * 2 + [0] * 19
    table = pd.DataFrame({"mark": mark, "truth": truth})
    data = {"a": [[1, 1], [0, 1]], "b": [[0, 1], [0, 0]]}
    options = {"pooling": "complete", "rng": 1}
    counted = bk.evaluate(data, "pass@1", judge=bk.JudgeError(18, 20, 1, 20), **options)
    read = bk.evaluate(data, "pass@1", judge=table, **options)
    assert bk.Result.of(read).judges == bk.Result.of(counted).judges
    own = pd.concat([table.assign(system=one) for one in ("a", "b")])
    each = bk.evaluate(data, "pass@1", judge=own, **options)
    assert bk.Result.of(each).judges == (bk.JudgeError(18, 20, 1, 20),) * 2


def test_a_saved_result_keeps_its_judges(tmp_path) -> None:
    fit = bk.evaluate(MARKS, "pass@1", judge=JUDGE, difficulty="beta", draws=50, rng=1)
    again = bk.load_result(bk.save(fit, tmp_path / "fit.nc"))
    assert bk.claim(again) == bk.claim(fit)
    assert again["judge"].to_dataset().equals(fit["judge"].to_dataset())
    assert "27 of 30 right and 4 of 32 wrong trials marked right" in bk.claim(again)


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (0.9, "must be a JudgeError"),
        ({"a": JUDGE}, "must have a JudgeError for each of"),
        ({"a": JUDGE, "b": JUDGE, "c": JUDGE}, "must have a JudgeError for each of"),
        (pd.DataFrame({"mark": [1]}), "'truth'"),
        (pd.DataFrame({"mark": [1, 2], "truth": [1, 0]}), "got 2 in row 1"),
        (pd.DataFrame({"mark": ["1"], "truth": [1]}), "0 or 1"),
    ],
)
def test_what_is_no_judge_is_refused(judge, words) -> None:
    with pytest.raises(ValueError, match=words):
        bk.evaluate({"a": [[1, 0]], "b": [[1, 1]]}, "pass@1", judge=judge)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((6, 10, 4, 10), "must mark right trials right more often"),
        ((0, 0, 0, 0), "with near certainty.* for b, above"),
        ((11, 10, 0, 10), "at most p"),
        ((0.9, 10, 0, 10), "integer"),
    ],
)
def test_a_judge_that_may_be_no_better_than_a_coin_is_refused(counts, words) -> None:
    data = {"a": [[1, 0]], "b": [[1, 1]]}
    with pytest.raises(ValueError, match=words):
        bk.evaluate(data, "pass@1", judge={"a": JUDGE, "b": bk.JudgeError(*counts)})


def test_what_a_judge_has_no_model_for_is_refused() -> None:
    scored = bk.tally([["C", "P"], ["I", "C"]], scores={"C": 1.0, "P": 0.5, "I": 0.0})
    with pytest.raises(ValueError, match="beyond 256 trials"):
        bk.evaluate(([200], [300]), "pass@1", judge=JUDGE)
    with pytest.raises(ValueError, match="must be left out with metrics of scored"):
        bk.evaluate(scored, "max@2", judge=JUDGE)
    data = {"a": [[1, 0]] * 4, "b": [[1, 1]] * 4}
    fit = bk.evaluate(data, "pass@1", judge=JUDGE, difficulty="beta", draws=50, rng=1)
    for refused in (
        bk.decide.e_value,
        lambda own: bk.checks.log_bayes_factor_chance(own, 0.5),
        lambda own: bk.guessing.random_baseline(own, 0.5, rng=1),
    ):
        with pytest.raises(ValueError, match=r"a judge that errs for .* leave out judge"):
            refused(fit)
    assert np.isfinite(bk.checks.log_evidence(fit).values).all()


def test_the_antibody_survey_of_santa_clara_has_its_published_interval() -> None:
    """Gelman and Carpenter 2020 (doi:10.1111/rssc.12435), section 2: (0, 1.8%), the shortest.

    Their prevalence has a uniform prior, as have sensitivity and specificity.
    """
    tests = np.repeat([1, 0], [50, 3280]), np.ones(3330, int)
    known = {"pooling": "complete", "ci_kind": "hdi", "rng": 1}
    fit = bk.evaluate(tests, "pass@1", judge=bk.JudgeError(103, 122, 2, 401), **known)
    assert _statistic(fit, "pass_at_k", 1, statistic="ci_lower") < 0.002
    assert _statistic(fit, "pass_at_k", 1, statistic="ci_upper") == pytest.approx(0.018, abs=6e-4)


def test_a_plan_has_the_width_that_an_evaluation_then_has() -> None:
    rng = np.random.default_rng(8)

    def marks(questions):
        right = rng.binomial(4, rng.beta(1.5, 1.0, questions))
        return rng.binomial(right, 0.9) + rng.binomial(4 - right, 0.1), np.full(questions, 4)

    known = {
        "difficulty": "beta",
        "draws": 200,
        "rng": 1,
        "judge": bk.JudgeError(900, 1000, 100, 1000),
    }
    pilot = bk.evaluate(marks(150), "pass@1", **known)
    questions = int(plan_table(pilot, "pass@1", width=0.12, trials=[4])["questions"].item())
    fit = bk.evaluate(marks(questions), "pass@1", **known)
    ends = [
        _statistic(fit, "pass_at_k", 1, "population", f"ci_{one}") for one in ("lower", "upper")
    ]
    assert ends[1] - ends[0] == pytest.approx(0.12, rel=0.2)


def test_prior_trials_of_full_weight_are_as_those_of_almost_that(monkeypatch) -> None:
    """Right trials are counted where weights are whole; else p is integrated on a rule.

    At all points: which of them fewer are depends on the last digits of their weights.
    """
    monkeypatch.setattr(model, "_MAX_LOCATED", (10_000, 10_000))
    monkeypatch.setattr(model, "_MAX_LOCATED_TIMES_CELLS", (1e9, 1e9))
    rng = np.random.default_rng(0)
    marks, before = rng.integers(0, 2, (8, 3)), bk.tally(rng.integers(0, 2, (8, 4)))
    judge = bk.JudgeError(tp=45, p=50, fp=3, n=50)
    asked = {"prior_trials": before, "judge": judge, "difficulty": "beta", "draws": 50, "rng": 1}
    whole, almost = (
        bk.evaluate(marks, "pass@1,3", prior_weight=weight, **asked) for weight in (1.0, 1.0 - 1e-9)
    )
    columns = ["mean", "sd"]
    gap = bk.table(whole)[columns].to_numpy() - bk.table(almost)[columns].to_numpy()
    assert np.abs(gap).max() < 1e-7


def test_a_mean_that_the_rates_of_a_judge_leave_nearly_open() -> None:
    """Of single trials the number of marks is binomial in f + (s - f) m, whatever their spread."""
    rng = np.random.default_rng(1)
    s, f, m = rng.beta(27, 9, 10**6), rng.beta(4, 14, 10**6), rng.random(10**6)
    weight = binom.pmf(246, 500, f + (s - f) * m)
    order = np.argsort(m)
    share = np.cumsum(weight[order]) / weight.sum()
    lower, upper = np.interp([0.025, 0.975], share, m[order])
    marks = np.arange(500) < 246
    judge = bk.JudgeError(26, 34, 3, 16)
    fit = bk.evaluate((marks.astype(int), 1), "pass@1", judge=judge, difficulty="beta", rng=1)
    row = bk.table(fit).set_index("target").loc["population"]
    # Ends are right to 2% of the width, and the witness to 0.2%; points of weights with a heavy
    # tail, which were not followed by more, had the lower end 8.6% too high.
    assert abs(row["ci_lower"] - lower) < 0.022 * (upper - lower)
    assert abs(row["ci_upper"] - upper) < 0.022 * (upper - lower)
