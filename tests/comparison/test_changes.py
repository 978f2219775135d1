"""A change between days: its posterior against PyMC, how often it is right, what is refused."""

import numpy as np
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


def test_days_by_hand() -> None:
    found = bk.change_point({"Mon": GOOD, "Tue": GOOD, "Wed": BAD, "Thu": BAD}, rng=1)
    table = found.by_day.set_index("day")
    assert table["rate"].tolist() == [0.75, 0.75, 0.25, 0.25]
    assert table["probability"].sum() == pytest.approx(found.probability)
    assert found.before > 0.6 > 0.4 > found.after
    assert found.shift["ci_upper"] < 0.0
    assert "likeliest on Wed" in str(found)
    assert "success is lower since" in str(found)
    # The same odds by hand: half of the prior for no change, a sixth for each day.
    odds = np.exp(table["log_evidence"].iloc[1:] - found.log_evidence_same).sum() / 3
    assert found.probability / (1 - found.probability) == pytest.approx(odds)
    steady = bk.change_point(dict.fromkeys("abcd", GOOD), rng=1)
    assert steady.probability < 0.5
    assert steady.alarm is None


def test_days_may_be_systems_and_lack_questions() -> None:
    days = {"a": [[1, 0], [1, 1]], "b": [[0, 0], [0, 1]]}
    whole = bk.change_point(days, rng=2)
    same = bk.change_point(bk.tally(days), rng=2)
    assert whole.by_day.equals(same.by_day)
    labels = {"a": bk.tally([[1, 0], [1, 1]], questions=["x", "y"]),
              "b": bk.tally([[0, 1]], questions=["y"])}  # fmt: skip
    found = bk.change_point(labels, rng=2)
    assert found.by_day["questions"].tolist() == [2, 1]
    assert found.by_day["rate"].tolist() == [0.75, 0.5]


def test_what_was_said_of_earlier_days_stays() -> None:
    days = drawn(np.random.default_rng(1), 10, 6, 2, None, 0.0)
    early = bk.change_point({day: days[day] for day in range(4)}, rng=3).by_day
    late = bk.change_point(days, rng=3).by_day.iloc[:4]
    for name in ("score", "log_e", "alarm"):
        assert early[name].tolist() == late[name].tolist()


def test_a_change_is_found_within_a_day_or_two() -> None:
    rng = np.random.default_rng(4)
    for _ in range(2):
        found = bk.change_point(drawn(rng, 60, 8, 4, 5, -0.8), rng=rng)
        assert 5 <= found.alarm <= 6
        assert found.day == 5


@pytest.mark.slow
@pytest.mark.long
def test_false_alarms() -> None:
    rng = np.random.default_rng(4)
    false = [bk.change_point(drawn(rng, 8, 12, 1, None, 0.0), rng=rng).alarm for _ in range(60)]
    assert sum(day is not None for day in false) <= 8  # P(more) < 0.005 at 5%, > 0.85 at 20%


@pytest.mark.slow
@pytest.mark.long
def test_probabilities_are_right_as_often_as_they_say() -> None:
    """Difficulty law, day and size from the prior: calibration of P(change), day and shift."""
    rng, said, was, ranks, of_day = np.random.default_rng(5), [], [], [], []
    for _ in range(200):
        mean, icc = rng.random(2)
        a, b = mean * (1 - icc) / icc, (1 - mean) * (1 - icc) / icc
        p = np.clip(rng.beta(a, b, 8), 1e-12, 1 - 1e-12)
        changed, first, shift = rng.random() < 0.5, int(rng.integers(1, 4)), rng.standard_normal()
        later = (np.arange(4) >= first) & changed
        counts = rng.binomial(3, expit(logit(p) + later[:, None] * shift))
        found = bk.change_point({day: (c, np.full(8, 3)) for day, c in enumerate(counts)}, rng=rng)
        said.append(found.probability)
        was.append(changed)
        if changed:
            ranks.append(found.shift["ci_lower"] <= shift <= found.shift["ci_upper"])
            by_day = found.by_day["probability"] / found.probability
            of_day.append((by_day**2).sum() - 2 * by_day[first] + 1)  # Brier score of the day
    said, was = np.array(said), np.array(was)
    error = np.sqrt((said * (1 - said)).sum())
    assert abs(was.sum() - said.sum()) < 4 * error
    sure = said > 0.7
    assert abs((was - said)[sure].sum()) < 4 * np.sqrt((said * (1 - said))[sure].sum())
    assert abs(np.mean(ranks) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(ranks))
    assert np.mean(of_day) < 2 / 3  # what equal probabilities of three days would score


@pytest.mark.long
@pytest.mark.full
def test_pymc_finds_the_same_days_and_shift() -> None:
    import arviz as az
    import pymc as pm

    days = drawn(np.random.default_rng(6), 6, 3, 3, 1, -1.2)
    exact = bk.change_point(days, rng=1)
    with bk.models.build_change_point(days):
        trace = pm.sample(
            1000, tune=1000, chains=2, cores=1, nuts_sampler="nutpie", progressbar=False,
            random_seed=1, quiet=True,
        )  # fmt: skip
    draws = trace["posterior"].to_dataset()
    share = softmax(draws["log_change"].transpose("chain", "draw", "change").values, axis=-1)
    expected = [1 - exact.probability, *exact.by_day["probability"].iloc[1:]]
    given = exact.probability * exact.shift["mean"]  # and 0 without a change
    pairs = [(share[:, :, i], value) for i, value in enumerate(expected)]
    for own, value in [*pairs, (draws["shift"].values, given)]:
        error = own.std() / np.sqrt(float(az.ess(own, method="mean")))
        assert abs(own.mean() - value) < 4 * error + 1e-4


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"a": GOOD}, {}, "at least two days; got 1"),
        ({"a": {"x": GOOD, "y": GOOD}, "b": GOOD}, {}, "day 'a' has several"),
        ({"a": GOOD, "b": BAD}, {"alpha": 1.0}, "alpha must lie strictly"),
        ({"a": GOOD, "b": BAD}, {"sd": 0.0}, "sd must lie in"),
        ({"a": GOOD, "b": BAD}, {"prob_change": 1.0}, "prob_change must lie strictly"),
        ({"a": GOOD, "b": BAD}, {"prior": bk.HyperPrior()}, "HyperPrior of a single Beta"),
        ({"a": GOOD, "b": BAD}, {"prior": bk.HyperPrior.bda3()}, "must be a proper HyperPrior"),
    ],
)
def test_what_is_no_series_of_days_is_refused(data, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.change_point(data, rng=1, **options)
