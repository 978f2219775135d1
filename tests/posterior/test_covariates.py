"""`evaluate` with covariates: results, what they hold, and what refuses them."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import bayesatk as bk
from bayesatk.results.tables import coefficient_table

METRICS = "pass@1,3 pass^2 maj@4"


def simulated(seed=1, questions=40, systems=2, trials=4, shared=0.7):
    """Two systems on tasks of 1 to 64 minutes, in two domains; difficulties partly shared."""
    rng = np.random.default_rng(seed)
    minutes = np.round(2.0 ** rng.uniform(0, 6, questions), 2)
    domain = rng.choice(["code", "maths"], questions)
    z = rng.standard_normal(questions)
    runs = {}
    for system in range(systems):
        own = shared * z + np.sqrt(1 - shared**2) * rng.standard_normal(questions)
        p = expit(1.5 + 0.8 * system - 0.7 * np.log2(minutes) + 0.5 * (domain == "maths") + own)
        runs[f"s{system}"] = rng.binomial(1, p[:, None], (questions, trials))
    data = bk.tally(runs, covariates={"log_minutes": np.log2(minutes), "domain": domain})
    return data


@pytest.fixture(scope="module")
def fit():
    return bk.evaluate(simulated(), METRICS, covariates=["log_minutes", "domain"], rng=1)


@pytest.mark.long
def test_a_result_says_what_it_rests_on(fit, tmp_path) -> None:
    closed = fit["closed_form"]
    names = ["Intercept", "log_minutes", "domain[T.maths]"]
    assert closed["coefficient"].values.tolist() == names
    slope = closed["coefficients"].sel(coefficient="log_minutes")
    assert (slope.sel(statistic="ci_upper") < 0.0).all()
    assert (closed["pareto_k"] < 0.7).all()
    assert fit.attrs["method"] == "importance sampling"
    assert "crowder1978beta" in bk.cite(fit)
    draws = fit["posterior"]["coefficients"].mean(("chain", "draw"))
    exact = closed["coefficients"].sel(statistic="mean")
    assert (abs(draws - exact) < 0.1 * closed["coefficients"].sel(statistic="sd")).all()
    table = coefficient_table(fit)
    assert table["coefficient"].tolist() == names * 2
    assert bk.table(fit, "coefficients").equals(table)
    again = bk.load_result(bk.save(fit, tmp_path / "fit.nc"))
    assert again.identical(fit)
    assert bk.table(again).equals(bk.table(fit))


def test_the_same_model_written_otherwise_is_the_same(fit) -> None:
    """Units, and which level comes first, do not matter: the prior is a g-prior."""
    data = simulated()
    cover = {
        "log_minutes": (100.0 - 3.0 * data.dataset["log_minutes"].values).tolist(),
        "domain": [f"{'z' if one == 'code' else 'a'}" for one in data.dataset["domain"].values],
    }
    other = bk.evaluate(
        bk.tally(data, covariates=cover), METRICS, covariates=["log_minutes", "domain"], rng=1
    )
    assert bk.checks.log_evidence(other).values == pytest.approx(
        bk.checks.log_evidence(fit).values, abs=0.03
    )
    one, two = bk.table(fit), bk.table(other)
    assert (abs(one["mean"] - two["mean"]) < 0.1 * one["sd"]).all()


def test_models_are_compared_by_their_evidence() -> None:
    data = simulated(4)
    fits = {
        "minutes": bk.evaluate(data, "pass@1", covariates=["log_minutes"], rng=1),
        "without": bk.evaluate(data, "pass@1", difficulty="beta", rng=1),
    }
    table = bk.checks.compare_models(fits)
    assert table.index[0] == "minutes"
    assert table.loc["minutes", "probability"] > 0.99


@pytest.mark.long
def test_these_questions_leave_systems_independent_whatever_their_covariates(fit) -> None:
    table = bk.table(bk.compare(fit), "comparison")
    rows = bk.table(fit).query("target == 'questions'").set_index(["metric", "system"])["sd"]
    for row in table[table["target"] == "questions"].to_dict("records"):
        unpaired = np.hypot(rows[row["metric"], row["system"]], rows[row["metric"], row["other"]])
        assert row["sd"] == pytest.approx(unpaired, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize(
    ("shared", "least", "most", "without"), [(0.95, 0.6, 0.9, 0.7), (0.0, 0.9, 1.1, 0.85)]
)
def test_pairing_narrows_differences_by_what_covariates_leave(shared, least, most, without) -> None:
    """Covariates explain none of what systems share beyond them, and all where nothing is left.

    The sd of a difference over the sd without pairing is sqrt(1 - r), r the correlation of
    residuals of 160 questions, known to .08.
    """
    data = simulated(questions=160, trials=8, shared=shared)

    def ratios(covariates: list[str] | None):
        fit = bk.evaluate(data, "pass@1,3", covariates=covariates, rng=1)
        rows = bk.table(bk.compare(fit), "comparison").query("target == 'population'")
        return rows["sd"] / rows["sd_unpaired"]

    assert ratios(["log_minutes", "domain"]).between(least, most).all()
    assert (ratios(None) < without).all()


def test_prior_sensitivity_is_given_beyond_the_trials() -> None:
    fit = bk.evaluate(simulated(trials=2), "pass@1,8", covariates=["log_minutes"], rng=1)
    ratio = fit["closed_form"]["pass_at_k"].sel(statistic="prior_sensitivity", target="population")
    assert np.isnan(ratio.sel(k=1)).all()
    assert (abs(ratio.sel(k=8) - 1.0) < 0.3).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"pooling": "none"}, "pooling='partial'"),
        ({"prior": bk.priors.HyperPrior.bda3()}, "must be proper with covariates"),
    ],
)
def test_what_has_no_regression_is_refused(options, says) -> None:
    given = {"metrics": "pass@1"} | options
    with pytest.raises((ValueError, TypeError), match=says):
        bk.evaluate(simulated(), given.pop("metrics"), covariates=["log_minutes"], **given)


def test_what_would_ignore_covariates_refuses_them(fit) -> None:
    with pytest.raises(ValueError, match="must be without covariates for"):
        bk.checks.tail_exponent(fit)


def test_tens_of_thousands_of_questions_find_the_slope() -> None:
    rng = np.random.default_rng(2)
    size = rng.integers(1, 9, 20_000)
    data = bk.tally((rng.binomial(4, expit(2.0 - 0.5 * size)), 4), covariates={"size": size})
    fit = bk.evaluate(data, "pass@1", covariates=["size"], draws=50, rng=1)
    slope = fit["closed_form"]["coefficients"].sel(coefficient="size", statistic="mean")
    assert float(slope.squeeze()) == pytest.approx(-0.5, abs=0.02)


def test_covariates_are_read_as_groups_are_and_a_note_names_those_that_are_not_used() -> None:
    """A table, values by name, and data that were read with the column have one result."""
    size, question = np.arange(12.0), np.repeat(np.arange(12), 3)
    outcome = np.random.default_rng(2).binomial(1, 0.5, 36)
    columns = {"question": question, "outcome": outcome, "size": size[question]}
    table = pd.DataFrame(columns | {"place": np.where(question % 2, "a", "b")})
    data = bk.tally(table, covariates=["size", "place"])
    fits = [
        bk.evaluate(source, "pass@1", covariates=covariates, draws=50, rng=1)
        for source, covariates in (
            (data, "size"),
            (table, "size"),
            (table, ["size"]),
            (table.drop(columns="size"), {"size": size}),
            (bk.tally(table), {"size": size}),
        )
    ]
    means = [bk.table(fit, "coefficients")["mean"].tolist() for fit in fits]
    assert means == [means[0]] * 5
    unused = "Covariates of the data are not used: "
    assert not any(unused in note for fit in fits for note in fit.notes)
    for options, names in (({}, "size, place."), ({"group": "place"}, "size.")):
        notes = bk.evaluate(data, "pass@1", draws=50, rng=1, **options).notes
        assert any(note.startswith(unused + names) for note in notes)
    none = bk.evaluate(data, "pass@1", covariates=[], draws=50, rng=1)
    assert not any(unused in note for note in none.notes)
