"""Parsing metrics, and the latent and posterior laws of `Metric` against exact rationals."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.metrics import grid as metrics
from bayesatk.metrics.category_credit import CategoryCredit
from bayesatk.metrics.credit import Credit
from bayesatk.metrics.grid import FAMILIES, Family, Metric, MetricGrid, parse, register
from tests import witness

NAMES = {"pass@": "pass@", "pass^": "pass^", "maj@": "maj@", "mg-pass@": "mg-pass@", "auc@": "auc"}


@given(
    p=st.fractions(0, 1),
    k=st.integers(1, 40),
    symbol=st.sampled_from(sorted(NAMES)),
)
def test_latent_values(p: Fraction, k: int, symbol: str) -> None:
    exact = witness.latent(witness.credit_by_definition(NAMES[symbol], k), p)
    found = FAMILIES[symbol].at(k).latent(float(p))
    assert abs(float(found) - float(exact)) <= 1e-12


@given(a=st.integers(1, 40), b=st.integers(1, 40), k=st.integers(1, 15), data=st.data())
def test_predictive_values(a: int, b: int, k: int, data) -> None:
    symbol = data.draw(st.sampled_from(sorted(NAMES)))
    mean, _ = witness.posterior_moments(witness.credit_by_definition(NAMES[symbol], k), a, b)
    assert abs(float(FAMILIES[symbol].at(k).predictive(a, b)) - float(mean)) <= 1e-12


def test_predictive_of_a_point() -> None:
    metric = parse("pass@3")[0]
    np.testing.assert_allclose(metric.predictive(3e9, 1e9), metric.latent(0.75), atol=1e-7)
    np.testing.assert_allclose(metric.predictive(3e7, 1e7), metric.latent(0.75), atol=1e-6)


@pytest.mark.parametrize("values", [lambda k: [0.0] * k + [1.0], lambda k: Credit.of([0, 1, 1])])
def test_what_is_no_credit_of_k_trials_is_refused(values, monkeypatch) -> None:
    monkeypatch.setattr(metrics, "FAMILIES", dict(FAMILIES))
    family = Family("both_at_k", "both@", values)
    with pytest.raises(ValueError, match=r"credit of both@3 must return a Credit of 3 trials"):
        bk.evaluate([[1, 0, 1], [0, 1, 1]], family.at(3), rng=1)


def test_own_metric_needs_only_a_credit(monkeypatch) -> None:
    monkeypatch.setattr(metrics, "FAMILIES", dict(FAMILIES))
    both = Family("both_at_k", "both@", lambda k: Credit.of([0.0] * k + [1.0]))
    fit = bk.evaluate([[1, 1, 0], [1, 0, 0]], [both.at(2), "pass^2"], rng=1)
    closed = fit["closed_form"].to_dataset().sel(statistic=["estimate", "mean", "sd"])
    np.testing.assert_allclose(closed["both_at_k"], closed["pass_hat_k"], atol=1e-12)


def test_parse_reads_what_people_write() -> None:
    labels = [one.label for one in parse(["pass@1,4 PASS^4", "g-pass@8:0.25,0.5", "avg"])]
    assert labels == ["pass@1", "pass@4", "pass^4", "g-pass@8:0.25", "g-pass@8:0.5", "avg"]
    assert [one.label for one in parse("pass@1,4,PASS^4,g-pass@8:0.25,.5, avg")] == labels
    assert parse(Metric(FAMILIES["maj@"], 3)) == parse("maj@3") == parse("maj@3 maj@3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pass", "'pass' is not a known metric. Did you mean 'pass@1'"),
        ("pass@", "must have integers after 'pass@'"),
        ("pass@x", "must have integers"),
        ("pass@1.5", "must have integers"),
        ("pass@0", "k must be an integer >= 1; got 0"),
        ("pass@2:0.5", "takes no tau"),
        ("g-pass@2", "needs a tau"),
        ("g-pass@2:1.5", r"tau must lie in \[0, 1\]"),
        ("g-pass@2:x", "numbers after ':'"),
        ("", "at least one metric"),
        ([], "at least one metric"),
    ],
)
def test_bad_metrics_are_refused(text, message) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_metrics_must_be_text() -> None:
    with pytest.raises(TypeError, match="must be strings or Metric objects; got 4"):
        parse([4])  # type: ignore[list-item]


def test_families_must_not_share_a_variable(monkeypatch) -> None:
    monkeypatch.setattr(metrics, "FAMILIES", dict(FAMILIES))
    twin = Family("pass_at_k", "again@", FAMILIES["pass@"].credit)
    with pytest.raises(ValueError, match="must be new"):
        parse([twin.at(1), "pass@1"])
    first, second = (
        Family("own_at_k", "own@", FAMILIES[name].credit) for name in ("pass@", "pass^")
    )
    with pytest.raises(ValueError, match="share a variable name"):
        MetricGrid.of([first.at(1), second.at(1)])


def test_grid_splits_into_named_variables() -> None:
    grid = MetricGrid.of("pass@1,4 g-pass@2:0.5,1 bayes")
    values = np.arange(len(grid), dtype=float)[None]
    parts = grid.split(values, ("system",))
    assert parts["pass_at_k"][0] == ("system", "k")
    assert parts["g_pass_at_k"][1].shape == (1, 3, 2)
    assert parts["bayes"][1].tolist() == [float(len(grid) - 1)]
    assert grid.coords == {"k": [1, 2, 4], "tau": [0.5, 1.0]}


def test_metrics_of_ones_own_are_known_once_registered(monkeypatch) -> None:
    monkeypatch.setattr(metrics, "FAMILIES", dict(FAMILIES))
    own = Family("pair_at_k", "pair@", lambda k: Credit.of(j >= 2 for j in range(k + 1)))
    with pytest.raises(ValueError, match="'pair@3' is not a known metric"):
        parse("pair@3")
    assert register(own) is own
    assert register(own) is own
    assert parse("PAIR@3") == (own.at(3),)
    fit = bk.evaluate([[1, 0, 1]], "pair@2", rng=1)
    assert bk.table(fit)["metric"].tolist() == ["pair@2", "pair@2"]
    again = Family("pair_at_k", "pair@", lambda k: Credit.of(j >= 2 for j in range(k + 1)))
    assert register(again) is again  # a cell of a notebook that is run again
    assert parse("pair@3") == (again.at(3),)


def test_a_family_that_is_passed_is_taken_everywhere(monkeypatch, tmp_path) -> None:
    """The chance that two trials agree is p^2 + (1 - p)^2; observed: pairs of trials alike."""
    monkeypatch.setattr(metrics, "FAMILIES", dict(FAMILIES))
    agree = Family(
        "agree_at_k", "agree@", lambda k: Credit.of(float(j in (0, k)) for j in range(k + 1))
    )
    runs = {"a": [[1, 0, 1], [1, 1, 1]], "b": [[0, 0, 0], [1, 1, 0]]}
    fit = bk.evaluate(runs, [agree.at(2), "pass@1"], rng=1)
    rows = bk.table(fit).query("metric == 'agree@2' and target == 'questions'")
    assert rows["estimate"].tolist() == pytest.approx([(1 / 3 + 1) / 2, (1 + 1 / 3) / 2])
    assert agree.at(2).latent(0.3).item() == pytest.approx(0.3**2 + 0.7**2)
    compared = bk.compare(fit)
    assert "agree@2" in set(bk.table(compared, "comparison")["metric"])
    assert "agree@2" in str(fit)
    assert bk.claim(compared, agree.at(2), system="a") == bk.claim(compared, "agree@2", system="a")
    assert "agree@2" in bk.report(fit, tmp_path / "report.html").read_text()
    again = bk.load_result(bk.save(fit, tmp_path / "fit.nc"))
    assert bk.table(again).equals(bk.table(fit))
    taken = Family("other_at_k", "pass@", FAMILIES["pass@"].credit)
    with pytest.raises(ValueError, match="must be new"):
        bk.evaluate(runs, taken.at(2))
    del metrics.FAMILIES["agree@"]  # as where it is read in another program
    elsewhere = bk.load_result(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match=r"got 'agree@2 pass@1', .*metrics\.register\(family\)"):
        bk.table(elsewhere)


@pytest.mark.parametrize(
    ("variable", "symbol", "message"),
    [
        ("pass_at_k", "new@", "must be new"),
        ("new_at_k", "pass@", "must be new"),
        ("new_at_k", "New@", "lower case"),
        ("new_at_k", "new", "ending in"),
        ("new_at_k", "@", "ending in"),
        ("new_at_k", "new@b@", "no other"),
        ("new_at_k", "a b@", "no other"),
    ],
)
def test_what_cannot_be_a_name_is_refused(monkeypatch, variable, symbol, message) -> None:
    monkeypatch.setattr(metrics, "FAMILIES", dict(FAMILIES))
    with pytest.raises(ValueError, match=message):
        register(Family(variable, symbol, FAMILIES["pass@"].credit))


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        ("mean", ["mean"]),
        ("avg@n", ["avg"]),
        ("Avg@16 avg", ["avg"]),
        ("accuracy", ["accuracy"]),
        ("Bayes", ["bayes"]),
        ("pass_at_1", ["pass@1"]),
        ("pass_at_1,4", ["pass@1", "pass@4"]),
        ("pass_hat_4", ["pass^4"]),
        ("g_pass_at_8:0.5", ["g-pass@8:0.5"]),
        ("mg_pass_at_8", ["mg-pass@8"]),
        (["mean", "mean", "pass@1", "pass_at_1", "pass@1,1"], ["mean", "pass@1"]),
    ],
)
def test_the_usual_other_names_are_understood_and_nothing_comes_twice(written, labels) -> None:
    assert [one.label for one in parse(written)] == labels
    rows = bk.table(bk.evaluate([[1, 0, 1], [0, 0, 1]], written, draws=5, rng=1))
    assert rows["metric"].tolist() == [label for label in labels for _ in range(2)]


def test_the_mean_score_has_the_name_that_was_asked_for() -> None:
    seconds = {"old": [[9.1, 10.2], [8.0, 12.5]], "new": [[7.2, 8.9], [7.0, 9.9]]}
    data = bk.tally(seconds, scores="numbers", better="lower")
    values = {}
    for name in ("mean", "bayes", "accuracy"):
        fit = bk.compare(bk.evaluate(data, name, draws=200, rng=1))
        assert {"mean", "bayes", "accuracy"} & {*fit["closed_form"].data_vars} == {name}
        sentence = str(bk.table(fit)["sentence"][0])
        assert f" in {name} (lower is better)" in sentence
        values[name] = fit["closed_form"][name].values
    np.testing.assert_array_equal(values["mean"], values["bayes"])
    np.testing.assert_array_equal(values["mean"], values["accuracy"])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("pas@4", "pass@4"), ("pass4", "pass@4"), ("majority@5", "maj@5"), ("acuracy", "accuracy"),
        ("gpass@8:0.5", "g-pass@8:0.5"), ("plurailty@3", "plurality@3"), ("passat4", "pass@4"),
    ],
)  # fmt: skip
def test_typing_errors_get_a_suggestion(typed, meant) -> None:
    with pytest.raises(ValueError, match=f"Did you mean '{re.escape(meant)}'"):
        parse(typed)
    parse(meant)
    with pytest.raises(ValueError, match=r"'xyz' is not a known metric\. Known"):
        parse("xyz")


@pytest.mark.parametrize(("k", "kind"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_category_credit_of_no_trials_is_refused(k, kind) -> None:
    with pytest.raises(kind, match="k must be an integer >= 1"):
        CategoryCredit(k)
