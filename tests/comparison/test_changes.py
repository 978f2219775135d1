"""A change between days: its posterior against PyMC, how often it is right, what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, softmax

import bayesatk as bk

GOOD, BAD = [[1, 1, 1, 0]] * 12, [[0, 1, 0, 0]] * 12


def drawn(rng, questions: int, days: int, trials: int, first: int | None, shift: float):
    """Counts of questions with a uniform difficulty law, by day."""
    p = rng.beta(1, 1, questions)
    later = np.arange(days) >= (days if first is None else first)
    counts = rng.binomial(trials, expit(logit(p) + later[:, None] * shift))
    return {day: (own, np.full(questions, trials)) for day, own in enumerate(counts)}


def change(*days, **options):
    """Return the group of a change point."""
    return bk.decide.change_point(*days, **options)["change_point"]


def test_days_by_hand() -> None:
    found = bk.decide.change_point({"Mon": GOOD, "Tue": GOOD, "Wed": BAD, "Thu": BAD}, rng=1)
    shown, group = bk.table(found, "change_point"), found["change_point"]
    table = shown.set_index("day")
    assert table["rate"].tolist() == [0.75, 0.75, 0.25, 0.25]
    probability = group.attrs["probability"]
    assert table["probability"].sum() == pytest.approx(probability)
    assert group.attrs["before"] > 0.6 > 0.4 > group.attrs["after"]
    assert group["shift"].sel(statistic="ci_upper") < 0.0
    assert "likeliest on Wed" in str(shown)
    assert "success is lower since" in str(shown)
    # The same odds by hand: half of the prior for no change, a sixth for each day.
    odds = table["log_evidence"].iloc[1:] - group.attrs["log_evidence_same"]
    assert probability / (1 - probability) == pytest.approx(np.exp(odds).sum() / 3)
    steady = change(dict.fromkeys("abcd", GOOD), rng=1).attrs
    assert steady["probability"] < 0.5
    assert "alarm" not in steady


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_it_is_kept_with_the_data_or_with_their_result(tmp_path, ending) -> None:
    days = {"Mon": GOOD, "Tue": GOOD, "Wed": BAD}
    found = bk.decide.change_point(days, rng=1)
    again = bk.load_result(bk.save(found, tmp_path / f"days.{ending}"))
    assert again.identical(found)
    assert str(bk.table(again, "change_point")) == str(bk.table(found, "change_point"))
    assert again["observed_data"]["successes"].sel(system="Wed").values.tolist() == [1] * 12
    tables = bk.tables_of(again)
    assert list(tables) == ["change_point"]
    path = bk.export(again, tmp_path / "days.csv")
    assert pd.read_csv(path)["day"].tolist() == list(days)
    assert bk.provenance(again)["input_sha256"] == bk.tally(days).sha256()
    assert "Vovk" in bk.cite(again)
    fit = bk.evaluate(days, "pass@1", rng=1, draws=10)
    whole = bk.decide.change_point(fit, days=list(days), rng=1)
    assert whole["change_point"].identical(found["change_point"])
    assert list(bk.tables_of(whole)) == ["results", "change_point"]
    with pytest.raises(ValueError, match="must have the group 'posterior'"):
        bk.table(found)


def test_days_may_be_systems_and_lack_questions() -> None:
    days = {"a": [[1, 0], [1, 1]], "b": [[0, 0], [0, 1]]}
    whole = bk.decide.change_point(days, rng=2)
    same = bk.decide.change_point(bk.tally(days), days=["a", "b"], rng=2)
    assert whole["change_point"].identical(same["change_point"])
    labels = {"a": bk.tally([[1, 0], [1, 1]], questions=["x", "y"]),
              "b": bk.tally([[0, 1]], questions=["y"])}  # fmt: skip
    found = change(labels, rng=2)
    assert found["questions"].values.tolist() == [2, 1]
    assert found["rate"].values.tolist() == [0.75, 0.5]


def test_what_was_said_of_earlier_days_stays() -> None:
    days = drawn(np.random.default_rng(1), 10, 6, 2, None, 0.0)
    early = change({day: days[day] for day in range(4)}, rng=3)
    late = change(days, rng=3).isel(day=slice(4))
    for name in ("score", "log_e", "alarm"):
        assert early[name].values.tolist() == late[name].values.tolist()


def test_a_change_is_found_within_a_day_or_two() -> None:
    rng = np.random.default_rng(4)
    for _ in range(2):
        found = change(drawn(rng, 60, 8, 4, 5, -0.8), rng=rng).attrs
        assert 5 <= found["alarm"] <= 6
        assert found["day"] == 5


@pytest.mark.slow
@pytest.mark.long
def test_false_alarms() -> None:
    rng = np.random.default_rng(4)
    false = [change(drawn(rng, 8, 12, 1, None, 0.0), rng=rng)["alarm"].any() for _ in range(40)]
    assert sum(false) <= 6  # P(more) < 0.005 at 5%, > 0.7 at 20%


@pytest.mark.slow
@pytest.mark.long
def test_probabilities_are_right_as_often_as_they_say() -> None:
    """Difficulty law, day and size from the prior: calibration of P(change), day and shift."""
    rng, said, was, ranks, of_day = np.random.default_rng(5), [], [], [], []
    for _ in range(100):
        mean, icc = rng.random(2)
        a, b = mean * (1 - icc) / icc, (1 - mean) * (1 - icc) / icc
        p = np.clip(rng.beta(a, b, 8), 1e-12, 1 - 1e-12)
        changed, first, shift = rng.random() < 0.5, int(rng.integers(1, 4)), rng.standard_normal()
        later = (np.arange(4) >= first) & changed
        counts = rng.binomial(3, expit(logit(p) + later[:, None] * shift))
        found = change({day: (c, np.full(8, 3)) for day, c in enumerate(counts)}, rng=rng)
        said.append(found.attrs["probability"])
        was.append(changed)
        if changed:
            low, high = (found["shift"].sel(statistic=f"ci_{end}") for end in ("lower", "upper"))
            ranks.append(bool(low <= shift <= high))
            by_day = (found["probability"] / found.attrs["probability"]).values
            of_day.append((by_day**2).sum() - 2 * by_day[first] + 1)  # Brier score of the day
    said, was = np.array(said), np.array(was)
    error = np.sqrt((said * (1 - said)).sum())
    assert abs(was.sum() - said.sum()) < 4 * error
    sure = said > 0.7
    assert abs((was - said)[sure].sum()) < 4 * np.sqrt((said * (1 - said))[sure].sum())
    assert abs(np.mean(ranks) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(ranks))
    assert np.mean(of_day) < 2 / 3  # what equal probabilities of three days would score


@pytest.mark.long
def test_pymc_finds_the_same_days_and_shift() -> None:
    import arviz as az
    import pymc as pm

    days = drawn(np.random.default_rng(6), 6, 3, 3, 1, -1.2)
    exact = change(days, rng=1)
    probability = exact.attrs["probability"]
    with bk.models.build_change_point(days):
        trace = pm.sample(
            1000, tune=1000, chains=2, cores=1, nuts_sampler="nutpie", progressbar=False,
            random_seed=1, quiet=True,
        )  # fmt: skip
    draws = trace["posterior"].to_dataset()
    share = softmax(draws["log_change"].transpose("chain", "draw", "change").values, axis=-1)
    expected = [1 - probability, *exact["probability"].values[1:]]
    given = probability * exact["shift"].sel(statistic="mean").item()  # and 0 without a change
    pairs = [(share[:, :, i], value) for i, value in enumerate(expected)]
    for own, value in [*pairs, (draws["shift"].values, given)]:
        error = own.std() / np.sqrt(float(az.ess(own, method="mean")))
        assert abs(own.mean() - value) < 4 * error + 1e-4


def test_dates_are_sorted_whatever_their_order_in_a_file(tmp_path) -> None:
    days = {"2026-01-09": GOOD, "2026-01-10": BAD, "2026-02-01": BAD}
    expected = change(days, rng=1)
    shuffled = {day: days[day] for day in ("2026-02-01", "2026-01-09", "2026-01-10")}
    assert expected["day"].values.tolist() == list(days)
    for data in (shuffled, bk.tally(shuffled), bk.evaluate(shuffled, "pass@1", rng=1, draws=10)):
        assert change(data, rng=1).identical(expected)
    rows = [
        f"{day},{question},{mark}"
        for day, marks in shuffled.items()
        for question, row in enumerate(marks) for mark in row
    ]  # fmt: skip
    (tmp_path / "runs.csv").write_text("\n".join(["day,question,outcome", *rows]))
    read = bk.load(tmp_path / "runs.csv", columns={"system": "day"})
    assert change(read, rng=1)["day"].values.tolist() == list(days)
    numbered = change({10: BAD, 9: GOOD}, rng=1)
    assert numbered["day"].values.tolist() == [9, 10]
    named = change({"v2": GOOD, "v10": BAD}, rng=1)
    assert named["day"].values.tolist() == ["v2", "v10"], "a mapping is in order of time"


def test_systems_are_not_taken_for_days() -> None:
    data = bk.tally({"gpt": GOOD, "claude": BAD, "qwen": BAD})
    with pytest.raises(ValueError, match=r"days must say the order .*days=\['gpt', 'claude'\]"):
        bk.decide.change_point(data)
    chosen = change(data, days=["claude", "gpt"], rng=1)
    assert chosen["day"].values.tolist() == ["claude", "gpt"]
    for days, fault in ((["gpt", "gpt"], "one comes twice"), (["gpt", "x"], "got 'x'")):
        with pytest.raises(ValueError, match=f"days must name days of the data.*{fault}"):
            bk.decide.change_point(data, days=days)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"a": GOOD}, {}, "at least two days; got 1"),
        ({"a": {"x": GOOD, "y": GOOD}, "b": GOOD}, {}, "day 'a' has several"),
        ({"a": GOOD, "b": BAD}, {"alpha": 1.0}, "alpha must lie strictly"),
        ({"a": GOOD, "b": BAD}, {"sd": 0.0}, "sd must lie in"),
        ({"a": GOOD, "b": BAD}, {"prob_change": 1.0}, "prob_change must lie strictly"),
        ({"a": GOOD, "b": BAD}, {"prior": bk.priors.HyperPrior()}, "HyperPrior of a single Beta"),
        (
            {"a": GOOD, "b": BAD},
            {"prior": bk.priors.HyperPrior.bda3()},
            "must be a proper HyperPrior",
        ),
    ],
)
def test_what_is_no_series_of_days_is_refused(data, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.decide.change_point(data, rng=1, **options)
