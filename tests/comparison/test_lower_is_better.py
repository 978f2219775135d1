"""Scores of which lower ones are better: seconds, errors."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.comparison.gates.gate import gate_of, joined_outcomes
from bayesatk.io.inspect_source import usual_metrics
from bayesatk.results.result import Result

MINUTES = {
    "slow": [[9, 7, 9], [5, 9, 9], [9, 9, 7], [5, 7, 9], [9, 9, 9], [7, 9, 9]] * 3,
    "mid": [[7, 5, 7], [5, 7, 5], [7, 5, 9], [3, 5, 7], [7, 9, 5], [5, 7, 7]] * 3,
    "fast": [[5, 3, 5], [3, 3, 5], [5, 7, 3], [3, 3, 3], [7, 5, 5], [5, 3, 5]] * 3,
}


@pytest.fixture(scope="module")
def both() -> dict[str, xr.DataTree]:
    """The same numbers, read with higher and with lower scores as the better ones."""
    return {
        better: bk.compare(
            bk.evaluate(
                bk.tally(MINUTES, scores="numbers", better=better),  # type: ignore[arg-type]
                "bayes min@2 max@2",
                difficulty="beta",
                draws=50,
                rng=1,
            ),
            rope=0.5,
        )
        for better in ("higher", "lower")
    }


@pytest.mark.long
def test_ranks_and_tiers_are_the_other_way_round(both) -> None:
    for variable in ("bayes", "min_at_k"):
        ranks = [both[name]["ranks"][variable].transpose("rank", ...) for name in both]
        np.testing.assert_allclose(ranks[1], ranks[0].values[::-1], atol=1e-12)
    for name, tiers in (("higher", [1, 2, 3]), ("lower", [3, 2, 1])):
        assert both[name]["tiers"]["bayes"].sel(target="questions").values.tolist() == tiers


def test_sentences_say_so_and_put_the_better_system_first(both) -> None:
    options = {"target": "questions"}
    pair = bk.claim(both["lower"], "bayes", system="slow", other="fast", **options)
    assert "in bayes (lower is better)" in pair
    assert "fast is ahead of slow by more than 0.5" in pair
    assert "3 tiers: (1) fast; (2) mid; (3) slow." in bk.claim(both["lower"], "bayes", **options)
    rows = bk.table(both["lower"], "comparison")
    rows = rows.query("metric == 'bayes' and target == 'questions'")
    assert rows["verdict"].unique().tolist() == ["ahead by more than the ROPE"]
    assert (rows["mean"] < -0.5).all()
    assert (rows["prob_greater"] > 0.99).all()


@pytest.mark.long
def test_leaderboard_has_the_lowest_first(both) -> None:
    board = bk.leaderboard(both["lower"])
    rows = bk.table(board, "leaderboard").query("metric == 'bayes' and target == 'questions'")
    assert rows["system"].tolist() == ["fast", "mid", "slow"]
    assert rows["tier"].tolist() == [1, 2, 3]
    assert rows["prob_best"].iloc[0] > 0.99
    separated = board["leaderboard"]["separated"].sel(metric="bayes", target="questions")
    assert separated.sum("other").sel(system=["fast", "slow"]).values.tolist() == [2, 0]


def test_reaching_a_score_is_to_be_at_it_or_below() -> None:
    fit = bk.evaluate(
        bk.tally([[3, 5, 5, 9]], scores="numbers", better="lower"), "bayes", pooling="none", rng=1
    )
    rows = bk.table(fit, "categories").query("target == 'questions'")
    assert rows["score"].tolist() == [3, 5, 9]
    # Dirichlet(2, 3, 2)
    np.testing.assert_allclose(rows["mean"], [2 / 7, 5 / 7, 1.0], atol=1e-12)


def test_direction_stays_with_data_and_results(tmp_path: Path) -> None:
    data = bk.tally(MINUTES, scores="numbers", better="lower", group=["x", "y"] * 9)
    again = bk.tally(data, weight=[1, 2] * 9)
    assert again.direction == data["fast"].direction == data.sel(group="x").direction == -1
    assert bk.tally(data.dataset).direction == -1
    assert data.with_success("score <= 5").direction == 1
    fit = bk.evaluate(data, "bayes", pooling="none", draws=5, rng=1)
    bk.save(fit, tmp_path / "fit.nc")
    read = Result.of(bk.load_result(tmp_path / "fit.nc"))
    assert read.scale.direction == read.data.direction == -1
    assert Result.of(fit.sel(system="fast")).tree["constant_data"]["category_score"].attrs
    assert "lower is better" in data.card()
    assert usual_metrics(data) == ("mean", "min@2")


@pytest.mark.parametrize(("missing", "counts"), [("wrong", [1, 0, 2]), ("right", [2, 0, 1])])
def test_missing_trials_are_counted_as_the_worst_or_the_best(missing, counts) -> None:
    rows = {"a": [[3, None, 9], [5, 9, 3]], "b": [[3, 5, 9], [5, 5, 3]]}
    data = bk.tally(rows, scores="numbers", better="lower", missing=missing)
    assert data.dataset["count"].values[0, 0].tolist() == counts
    # By hand: 29 of five trials and one of 9, or of 3.
    ignored = bk.tally(rows, scores="numbers", better="lower", missing="ignore")
    assert "at worst 6.3333, at best 5.3333" in ignored.card()


@pytest.mark.long
def test_gate_passes_what_is_faster_and_floors_are_ceilings() -> None:
    data = bk.tally(MINUTES, scores="numbers", better="lower")
    options = {"metric": "bayes", "margin": 0.5, "target": "questions"}
    faster, slower = ("fast", "slow"), ("slow", "fast")
    for (new, baseline), verdict in ((faster, "pass"), (slower, "fail")):
        gate = bk.decide.gate(data[new], data[baseline], **options)["gate"]
        assert gate.attrs["verdict"] == verdict
    policy = bk.decide.GatePolicy(
        "bayes", margin=0.5, effect=-1.0, floors={"all": 8.0}, groups={"all": list(range(18))}
    )
    checked = gate_of(joined_outcomes(data["fast"], data["slow"]), policy)
    assert checked.floors[0].verdict == "pass"
    assert "ceiling 8, below it with confidence" in checked.floors[0].sentence
    assert checked.design.at_effect.passes > checked.design.same_system.passes
    higher = bk.tally(MINUTES, scores="numbers")
    with pytest.raises(ValueError, match="same better="):
        bk.decide.gate(data["fast"], higher["slow"], **options)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([[0, 1]], {"better": "smaller"}, "better must be 'higher' or 'lower'; got 'smaller'"),
        ([[0, 1]], {"scores": (0, 1), "better": "lower"}, r"success=.score <= 0"),
        (([1], [2]), {"better": "lower"}, "better must be left out for success counts"),
    ],
)
def test_bad_directions_are_refused(data, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        bk.tally(data, **options)


def test_the_remedy_works() -> None:
    errors = bk.tally([[0, 1], [1, 1]], scores="numbers", success="score <= 0", better="lower")
    assert errors.successes.values.tolist() == [[1, 0]]


def test_worst_and_best_of_k_of_right_and_wrong_are_known_metrics() -> None:
    marks = [[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1], [1, 1, 0, 1]]
    fit = bk.evaluate(marks, "pass@2 pass^2 max@2 min@2", draws=50, rng=1)
    closed = fit["closed_form"].to_dataset()
    for score, plain in (("min_at_k", "pass_hat_k"), ("max_at_k", "pass_at_k")):
        np.testing.assert_allclose(closed[score], closed[plain], atol=1e-12)
        np.testing.assert_array_equal(fit["posterior"][score], fit["posterior"][plain])


@pytest.mark.parametrize("pooling", ["none", "partial"])
def test_lowest_of_k_is_minus_the_highest_of_the_negated(pooling) -> None:
    options = {"pooling": pooling, "draws": 50, "rng": 1}
    options |= {"difficulty": "beta"} if pooling == "partial" else {}
    scores = np.array(MINUTES["mid"])
    fits = [
        bk.evaluate(bk.tally(way * scores, scores="numbers"), f"{name}@2,5 bayes", **options)
        for way, name in ((1, "min"), (-1, "max"))
    ]
    lowest = fits[0]["closed_form"]["min_at_k"]
    highest = fits[1]["closed_form"]["max_at_k"]
    sd = highest.sel(statistic="sd")
    for name in ("estimate", "mean"):
        gap = (lowest + highest).sel(statistic=name) / sd
        assert float(abs(gap).max()) < 0.02, name
    ratio = lowest.sel(statistic="sd") / sd
    np.testing.assert_allclose(ratio, 1.0, atol=0.02)
