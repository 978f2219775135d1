"""Votes weighted by a verifier's scores: data in, evaluate, compare, and what is refused."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesatk as bk

ANSWERS = [["A", "B", "B", "C"], ["A", "A", None, "B"], ["C", "C", "B", "A"]]
SCORES = [[0.9, 0.4, 0.6, 0.2], [0.1, 0.3, 0.9, 0.4], [0.2, 0.2, 0.7, 0.3]]
FRAME = pd.DataFrame({
    "question": np.repeat(list("abc"), 4), "trial": list(range(4)) * 3,
    "answer": np.ravel(np.array(ANSWERS, object)), "reference": "A", "reward": np.ravel(SCORES),
})  # fmt: skip


def tallied(answers=ANSWERS, scores=SCORES, **options) -> bk.Outcomes:
    return bk.tally(None, answers=answers, reference=["A"] * 3, verifier=scores, **options)


def entries(data: bk.Outcomes) -> list[list[float]]:
    scores = data.by_answer
    return np.column_stack([scores.question, scores.score, scores.answer, scores.count]).tolist()


def simulated(questions: int, trials: int, seed: int) -> tuple[np.ndarray, ...]:
    """Shares of right and of three wrong answers, answers, and scores higher where right."""
    rng = np.random.default_rng(seed)
    p = rng.beta(3, 2, questions)
    wrong = rng.dirichlet(np.ones(3), questions)
    shares = np.column_stack([p, (1 - p)[:, None] * wrong])
    return shares, *new_trials(shares, trials, rng)


def new_trials(
    shares: np.ndarray, trials: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    answer = np.stack([rng.choice(4, trials, p=row) for row in shares])
    return answer, 1 / (1 + np.exp(-rng.normal(size=answer.shape) - 1.5 * (answer == 0)))


def votes_of(data: bk.Outcomes, metrics: str, **options) -> pd.DataFrame:
    return bk.table(bk.evaluate(data, metrics, rng=1, **options)).set_index(["metric", "target"])


def test_every_form_gives_the_same_entries(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "runs.csv", index=False)
    columns = {"answer": "answer", "reference": "reference", "verifier": "reward"}
    forms = [
        tallied(),
        bk.tally(FRAME, columns=columns),
        bk.load(tmp_path / "runs.csv", columns=columns),
    ]
    first = entries(forms[0])
    assert first[:2] == [[0, 0.2, 2, 1, 0], [0, 0.4, 1, 1, 0]]
    assert [1, 0.9, -1, 1, 0] in first  # without an answer
    assert all(entries(data) == first for data in forms[1:])
    merged = forms[0].by_score  # two of one score and answer, and two of one score
    assert merged.count.sum() == 12
    assert "from 0.1 to 0.9; 2 of 12 trials share theirs" in forms[0].card()
    assert entries(bk.tally(forms[0])) == first
    assert entries(forms[0].sel(question=[2])) == [[0, *row[1:]] for row in first if row[0] == 2]


@pytest.mark.long
def test_estimate_is_the_mean_over_all_subsets_and_a_result_is_read_again(tmp_path: Path) -> None:
    data = tallied()
    fit = bk.evaluate(data, "wvote@1,2,3,9 plurality@3 bon@3 pass@1", rng=1, draws=250)
    rows = bk.table(fit).query("target == 'questions'").set_index("metric")
    for k in (1, 2, 3):
        by_question = []
        for answers, scores in zip(ANSWERS, SCORES, strict=True):
            credits = []
            for subset in combinations(zip(answers, scores, strict=True), k):
                sums: dict[str, int] = {}
                for answer, score in subset:
                    if answer is not None:
                        sums[answer] = sums.get(answer, 0) + round(10 * score)
                best = [answer for answer in sums if sums[answer] == max(sums.values())]
                credits.append(("A" in best) / max(len(best), 1))
            by_question.append(np.mean(credits))
        assert rows.loc[f"wvote@{k}", "estimate"] == pytest.approx(np.mean(by_question))
    assert np.isnan(rows.loc["wvote@9", "estimate"])
    bk.save(fit, tmp_path / "fit.nc")
    again = bk.Result.of(bk.load_result(tmp_path / "fit.nc"))
    assert entries(again.data) == entries(data)
    assert again.data.by_score.score.tolist() == data.by_score.score.tolist()


def test_one_vote_is_the_mean_and_equal_scores_are_the_plurality() -> None:
    _, answer, _ = simulated(40, 6, 5)
    data = bk.tally(
        None, answers=answer.astype(str), reference=["0"] * 40, verifier=np.full(answer.shape, 2.5)
    )
    table = votes_of(data, "wvote@1,5 plurality@1,5", draws=1000)
    for target in ("questions", "population"):
        for k in (1, 5):
            weighted, plain = (
                table.loc[(f"{name}@{k}", target)] for name in ("wvote", "plurality")
            )
            assert weighted["estimate"] == pytest.approx(plain["estimate"], abs=1e-12)
            assert abs(weighted["mean"] - plain["mean"]) < 0.2 * plain["sd"]
            assert weighted["sd"] == pytest.approx(plain["sd"], rel=0.12)


@pytest.mark.long
def test_mean_is_near_the_truth_and_compare_finds_the_better_scores() -> None:
    shares, answer, score = simulated(60, 8, 6)
    rng = np.random.default_rng(7)
    answers = {name: answer.astype(str) for name in ("scored", "blind")}
    data = bk.tally(
        None, answers=answers, reference=["0"] * 60,
        verifier={"scored": score, "blind": rng.random(score.shape)},
    )  # fmt: skip
    fit = bk.evaluate(data, "wvote@5", rng=1, draws=1000)
    row = bk.table(fit).query("system == 'scored' and target == 'questions'").iloc[0]
    right = []
    for _ in range(300):
        new, weight = new_trials(shares, 5, rng)
        sums = np.stack([(weight * (new == a)).sum(axis=1) for a in range(4)])
        right.append((sums.argmax(axis=0) == 0).mean())
    assert abs(row["mean"] - np.mean(right)) < 4.0 * row["sd"]
    compared = bk.comparison_table(bk.compare(fit, rng=1)).set_index("target")
    sign = 1 if compared.loc["questions", "system"] == "scored" else -1
    assert sign * compared.loc["questions", "mean"] > 0.02


def test_the_error_of_simulation_is_stated_and_verify_takes_it_into_account() -> None:
    """By how far means of 16 seeds lie apart: 1000 draws share 250 simulations of elections."""
    _, answer, score = simulated(8, 6, 10)
    data = bk.tally(None, answers=answer.astype(str), reference=["0"] * 8, verifier=score)
    fits = [
        bk.evaluate(data, "wvote@3", rng=seed, draws=250, difficulty="beta") for seed in range(16)
    ]
    closed = [fit["closed_form"]["wvote_at_k"] for fit in fits]
    mean, sd = (
        np.array([one.sel(statistic=name).values.squeeze() for one in closed])
        for name in ("mean", "sd")
    )
    measured = (sd.mean(axis=0) / mean.std(axis=0, ddof=1)) ** 2
    stated = np.mean([one.attrs["mean_draws"] for one in closed])
    assert stated < 900.0  # of 1000
    assert (np.abs(np.log(stated / measured)) < np.log(2.5)).all(), (stated, measured)
    draws = xr.concat([fit["posterior"]["wvote_at_k"] for fit in fits[1:]], "chain")
    sampled = xr.DataTree.from_dict({"posterior": draws.to_dataset(name="wvote_at_k")})
    assert bk.verify(fits[0], sampled).verdict == "agree"
    shifted = closed[0] + 0.25 * (closed[0].statistic == "mean") * sd[0].mean()
    fits[0]["closed_form"]["wvote_at_k"] = shifted.assign_attrs(closed[0].attrs)
    assert bk.verify(fits[0], sampled).verdict == "disagree"


@pytest.mark.long
def test_abstentions_several_right_answers_weights_and_bootstrap() -> None:
    _, answer, score = simulated(20, 6, 8)
    given = answer.astype(str).astype(object)
    given[np.random.default_rng(9).random(given.shape) < 0.2] = None
    given[given == "1"] = "01"  # a second right answer
    data = bk.tally(
        None, answers=given, reference=[["0", "01"]] * 20, verifier=score,
        weight=np.linspace(1, 3, 20),
    )  # fmt: skip
    for options in ({}, {"population": "bootstrap"}, {"difficulty": "beta"}):
        table = votes_of(data, "wvote@1,4 plurality@1", draws=250, **options)
        for target in ("questions", "population"):
            weighted, plain = table.loc[("wvote@1", target)], table.loc[("plurality@1", target)]
            assert abs(weighted["mean"] - plain["mean"]) < 0.35 * plain["sd"]
            assert weighted["sd"] == pytest.approx(plain["sd"], rel=0.25)
            assert table.loc[("wvote@4", target), "mean"] > weighted["mean"]


@pytest.mark.long
@pytest.mark.parametrize("population", ["law", "bootstrap"])
def test_equal_scores_are_the_plurality_in_every_group(population) -> None:
    _, answer, _ = simulated(24, 6, 5)
    data = bk.tally(
        None, answers=answer.astype(str), reference=["0"] * 24, verifier=np.ones(answer.shape),
        group=np.repeat(["a", "b"], [8, 16]),
    )  # fmt: skip
    fit = bk.evaluate(data, "wvote@5 plurality@5", group="group", population=population, rng=1,
                      draws=500)  # fmt: skip
    for name in ("closed_form", "group_closed_form"):
        values = fit[name].to_dataset().sel(k=5)
        weighted, plain = values["wvote_at_k"], values["plurality_at_k"]
        sd = plain.sel(statistic="sd")
        assert float(abs((weighted - plain).sel(statistic="estimate")).max()) < 1e-12
        assert float(abs((weighted - plain).sel(statistic="mean") / sd).max()) < 0.25
        assert float(abs(weighted.sel(statistic="sd") / sd - 1.0).max()) < 0.2


def test_what_cannot_be_asked_is_refused_with_the_way_on() -> None:
    data = tallied()
    negative = [[-0.5, 0.2, 0.1, 0.3], [0.1, 0.3, -2, 0.4], SCORES[2]]
    plain = bk.tally(None, answers=ANSWERS, reference=["A"] * 3)
    marks = bk.tally([[1, 0], [0, 1]], verifier=[[1, 2], [3, 4]])
    for run, message in (
        (lambda: bk.evaluate(plain, "wvote@2"), r"wvote@k adds the scores.*verifier=\.\.\."),
        (lambda: bk.evaluate(marks, "wvote@2"), r"wvote@k is a vote between answers.*answers=\.\."),
        (lambda: bk.evaluate(tallied(scores=negative), "wvote@2"),
         r"must be 0 or more.*2 are not, such as -0\.5 and -2\. Turn them .*exp\(score\)"),
        (lambda: bk.evaluate(data, "wvote@2", pooling="none"), r"votes weighted by a verifier.*"
         r"To go on, .*plurality@k"),
        (lambda: bk.evaluate(data, "wvote@2", prior_trials=data), r"counts of marks, without"),
        (lambda: bk.evaluate(data, "wvote@500"), r"must have k <= 200 for votes"),
        (lambda: bk.metrics.grid.FAMILIES["wvote@"].at(3).credit, r"no value for a success prob"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            run()
