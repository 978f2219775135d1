"""Best of k by a verifier's scores: data in, evaluate, compare, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesatk as bk
from bayesatk.core.question.best_of import best_of_finite

MARKS = [[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 1]]
SCORES = [[0.9, 0.2, 0.9, 0.1], [0.3, 0.8, 0.1, 0.2], [0.5, 0.4, 0.6, 0.7]]
FRAME = pd.DataFrame({
    "question": np.repeat(list("abc"), 4), "trial": list(range(4)) * 3,
    "correct": np.ravel(MARKS), "reward": np.ravel(SCORES),
})  # fmt: skip


def entries(data: bk.Outcomes) -> list[list[float]]:
    scores = data.by_score
    return np.column_stack([scores.question, scores.score, scores.count]).tolist()


def simulated(
    questions: int, trials: int, gap: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(3, 2, questions)
    marks = (rng.random((questions, trials)) < p[:, None]).astype(int)
    return p, marks, rng.normal(size=marks.shape) + gap * marks


def test_every_form_gives_the_same_entries(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "runs.csv", index=False)
    (tmp_path / "runs.jsonl").write_text(FRAME.to_json(orient="records", lines=True))
    lists = pd.DataFrame({"question": list("abc"), "correct": MARKS, "reward": SCORES})
    forms = [
        bk.tally(MARKS, verifier=SCORES),
        bk.tally({"a": MARKS}, verifier={"a": np.array(SCORES)}),
        bk.tally(FRAME.sample(frac=1.0, random_state=1), verifier="reward"),
        bk.tally(lists, columns={"verifier": "reward"}),
        bk.load(tmp_path / "runs.csv", columns={"verifier": "reward"}),
        bk.load(tmp_path / "runs.jsonl", verifier="reward"),
        bk.load(bk.convert(tmp_path / "runs.csv", tmp_path / "long.csv", verifier="reward"),
                verifier="verifier"),
    ]  # fmt: skip
    first = entries(forms[0])
    assert first[:3] == [[0, 0.1, 0, 1], [0, 0.2, 1, 0], [0, 0.9, 1, 1]]
    for data in forms[1:]:
        order = data.sel(question=list(data.dataset["question"].values))
        by_label = dict(zip(data.dataset["question"].values.tolist(), range(3), strict=True))
        moved = sorted([[sorted(by_label).index(list(by_label)[int(q)]), *rest]
                        for q, *rest in entries(order)])  # fmt: skip
        assert moved == first
    assert "verifier scores: 9 distinct, from 0.1 to 0.9" in forms[0].card()
    assert bk.tally(forms[0]).by_score.score.tolist() == forms[0].by_score.score.tolist()


def test_scores_follow_selections_and_rules_of_success() -> None:
    data = bk.tally({"x": MARKS, "y": MARKS}, verifier={"x": SCORES, "y": SCORES})
    assert entries(data["y"].sel(question=[1])) == entries(
        bk.tally([MARKS[1]], verifier=[SCORES[1]])
    )
    graded = bk.tally(
        [["no", "part", "yes"]], scores={"no": 0, "part": 0.5, "yes": 1}, verifier=[[1, 2, 2]],
        success="score >= 0.5",
    )  # fmt: skip
    assert entries(graded) == [[0, 1.0, 1, 0], [0, 2.0, 0, 2]]


def test_missing_outcomes_by_policy() -> None:
    rows, scores = [[1, None], [0, 1]], [[0.3, 0.5], [0.2, 0.1]]
    left_out = bk.tally(rows, verifier=scores, missing="ignore")
    assert entries(left_out)[0] == [0, 0.3, 0, 1]
    assert len(entries(left_out)) == 3
    wrong = bk.tally(rows, verifier=scores, missing="wrong")
    assert entries(wrong)[:2] == [[0, 0.3, 0, 1], [0, 0.5, 1, 0]]
    gap = [[0.3, None], [0.2, 0.1]]
    assert entries(bk.tally(rows, verifier=gap, missing="ignore")) == entries(left_out)
    with pytest.raises(bk.OutcomeError, match=r"1 of 1 have none.*missing='ignore'"):
        bk.tally(rows, verifier=gap, missing="wrong")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({2: None, 5: np.nan}, r"'reward' must be there for every trial.*2 of 12.*row 2 and nan at "
         r"row 5"),
        ({1: np.inf}, r"must be finite numbers; 1 of 12 are not: inf at row 1\. Write .*1e9"),
        ({0: "good", 3: "bad"}, r"2 of 12 are not: 'good' at row 0 and 'bad' at row 3"),
    ],
)  # fmt: skip
def test_gaps_and_odd_scores_are_named_by_two_rows(change, message: str) -> None:
    scores = FRAME["reward"].astype(object).tolist()
    for row, value in change.items():
        scores[row] = value
    with pytest.raises(bk.OutcomeError, match=message):
        bk.tally(FRAME.assign(reward=scores), verifier="reward")


def test_what_cannot_be_read_or_asked_is_refused() -> None:
    for run, message in (
        (lambda: bk.evaluate(MARKS, "bon@2"), r"data have no such scores.*verifier=\.\.\."),
        (lambda: bk.tally(MARKS, verifier=[[1, 2]]), r"verifier must be arranged like data"),
        (lambda: bk.tally(([1], [2]), verifier=[[1, 2]]), r"verifier must be left out for counts"),
        (lambda: bk.tally(FRAME, columns={"verifier": "nothing"}), r"columns must map"),
        (lambda: bk.evaluate(bk.tally([[0, 1, 2]], scores={0: 0, 1: 0.5, 2: 1},
                                      verifier=[[1, 2, 3]]), "bon@2"), r"success='score >= 0\.5'"),
        (lambda: bk.evaluate(bk.tally([[1, None]], missing="bounds", verifier=[[1, 2]]), "bon@1"),
         r"votes between answers and the best of k"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            run()


def test_estimate_and_laws_of_evaluate() -> None:
    data = bk.tally(MARKS, verifier=SCORES)
    fit = bk.evaluate(data, "bon@1,2,4,9 pass@1", rng=1)
    rows = bk.table(fit).query("target == 'questions'").set_index("metric")
    by_question = []
    for marks, scores in zip(np.array(MARKS), np.array(SCORES), strict=True):
        distinct, place = np.unique(scores, return_inverse=True)
        right = np.bincount(place, marks, len(distinct)).astype(int)
        by_question.append(best_of_finite(np.bincount(place) - right, right, [1, 2, 4]))
    assert rows.loc[["bon@1", "bon@2", "bon@4"], "estimate"].tolist() == pytest.approx(
        np.mean(by_question, axis=0)
    )
    assert np.isnan(rows.loc["bon@9", "estimate"])
    again = bk.Result.of(fit).data
    assert entries(again) == entries(data)
    assert 400.0 < fit["closed_form"]["bon_at_k"].attrs["mean_draws"] <= 4000.0


@pytest.mark.long
def test_random_and_perfect_verifiers() -> None:
    """Independent scores give pass@1 for every k; scores that say the mark give pass@k."""
    _, marks, scores = simulated(60, 8, 0.0, 5)
    for verifier, target in ((scores, "pass@1"), (marks + 0.0, "pass@4")):
        data = bk.tally(marks, verifier=verifier)
        fit = bk.evaluate(data, "bon@1,4 pass@1,4", rng=2)
        table = bk.table(fit).set_index(["metric", "target"])
        for place in ("questions", "population"):
            sd = table.loc[("bon@4", place), "sd"]
            first = table.loc[("pass@1", place), "mean"]
            assert abs(table.loc[("bon@1", place), "mean"] - first) < 0.15 * sd + 2e-3
            gap = table.loc[("bon@4", place), "mean"] - table.loc[(target, place), "mean"]
            assert abs(gap) < 1.5 * sd


@pytest.mark.long
def test_mean_is_near_the_truth_and_compare_finds_the_better_verifier() -> None:
    p, marks, weak = simulated(60, 8, 1.0, 6)
    rng = np.random.default_rng(7)
    strong = rng.normal(size=marks.shape) + 3.0 * marks
    data = bk.tally({"weak": marks, "strong": marks}, verifier={"weak": weak, "strong": strong})
    fit = bk.evaluate(data, "bon@8", rng=1)
    row = bk.table(fit).query("system == 'weak' and target == 'questions'").iloc[0]
    new = (rng.random((4000, 60, 8)) < p[:, None]).astype(int)
    best = (rng.normal(size=new.shape) + new).argmax(axis=2)
    truth = np.take_along_axis(new, best[..., None], axis=2).mean()
    assert abs(row["mean"] - truth) < 4.0 * row["sd"]
    compared = bk.comparison_table(bk.compare(fit, rng=1))
    assert (compared["mean"].abs() > 0.05).all()
    assert ((compared["prob_greater"] < 0.05) | (compared["prob_greater"] > 0.95)).all()


def test_other_poolings_weights_and_populations() -> None:
    _, marks, scores = simulated(30, 6, 1.5, 8)
    weight = np.linspace(1, 3, 30)
    data = bk.tally(marks, verifier=scores, weight=weight)
    for options in ({"pooling": "none"}, {"pooling": "complete"}, {"population": "bootstrap"},
                    {"difficulty": "beta"}):  # fmt: skip
        fit = bk.evaluate(data, "bon@1,3 pass@1", rng=1, draws=250, **options)
        table = bk.table(fit).set_index(["metric", "target"])
        for target in ("questions", "population"):
            row, marks_row = table.loc[("bon@1", target)], table.loc[("pass@1", target)]
            assert abs(row["mean"] - marks_row["mean"]) < 0.35 * marks_row["sd"]
            assert row["sd"] == pytest.approx(marks_row["sd"], rel=0.2)
            assert table.loc[("bon@3", target), "mean"] > row["mean"]


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"group": "group", "covariates": "x"}, {"group": "group", "population": "bootstrap"},
        {"group": "group", "pooling": "complete"}, {"covariates": "x"},
    ],
    ids=lambda options: " ".join(options.values()),
)  # fmt: skip
def test_groups_and_covariates_are_those_of_right_and_wrong(options) -> None:
    """A verifier that knows the marks keeps a right trial where there is one, in every group."""
    rng = np.random.default_rng(3)
    group, x = np.repeat(list("ab"), 10), rng.normal(size=20)
    logit = np.repeat([-1.0, 1.5], 10) + 0.8 * x + 0.5 * rng.normal(size=20)
    marks = (rng.random((20, 6)) < 1.0 / (1.0 + np.exp(-logit[:, None]))).astype(int)
    data = bk.tally(marks, verifier=marks + 0.0, group=group, covariates={"x": x})
    fit = bk.evaluate(data, "bon@3 pass@3", rng=1, draws=500, **options)
    names = ["closed_form", "group_closed_form"] if "group" in options else ["closed_form"]
    for name in names:
        values = fit[name].to_dataset().sel(k=3)
        best, reached = values["bon_at_k"], values["pass_at_k"]
        assert float(abs(best - reached).sel(statistic="estimate").max()) < 1e-12
        sd = reached.sel(statistic="sd")
        assert float(abs((best - reached).sel(statistic="mean") / sd).max()) < 0.2
        assert float(abs(best.sel(statistic="sd") / sd - 1.0).max()) < 0.15
    assert len(fit["closed_form"]["target"]) == (3 if "group" in options else 2)


def test_a_result_is_saved_and_read_again(tmp_path: Path) -> None:
    fit = bk.evaluate(bk.tally(MARKS, verifier=SCORES), "bon@2", rng=1)
    bk.save(fit, tmp_path / "fit.nc")
    again = bk.load_result(tmp_path / "fit.nc")
    assert entries(bk.Result.of(again).data) == entries(bk.Result.of(fit).data)
    assert bk.table(again).equals(bk.table(fit))


@pytest.mark.slow
def test_calibration_is_refused_with_the_way_on() -> None:
    with pytest.raises(ValueError, match=r"metrics must be of marks .*got bon@2"):
        bk.checks.calibrate(4, 3, "bon@2")
