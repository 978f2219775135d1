"""One joint posterior behind compare, leaderboard, claim and report."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.comparison.joint.posterior import joint_model, joint_note, joint_posterior
from bayesatk.comparison.pairs.verdicts import AHEAD, BEHIND, BEHIND_ROPE, BEYOND_ROPE
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values


def _ordinary(seed: int) -> bk.Outcomes:
    """Return marks of 2 to 5 systems, some questions missing, solved by none or all."""
    rng = np.random.default_rng(seed)
    systems, questions = int(rng.integers(2, 6)), int(rng.integers(2, 15))
    p = rng.beta(0.6, 0.6, questions) ** rng.uniform(0.5, 2.0, (systems, 1))
    p[:, rng.random(questions) < 0.2] = rng.choice([0.0, 1.0])
    trials = rng.choice([0, 2, 3, 8], (systems, questions), p=[0.1, 0.3, 0.3, 0.3])
    trials[:, 0] = 3
    return bk.tally(
        (rng.binomial(trials, p), trials), systems=list("abcde")[:systems], missing="ignore"
    )


@pytest.mark.long
@pytest.mark.parametrize("model", [{}, {"pooling": "none"}])
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_no_table_or_sentence_contradicts_another(model, seed) -> None:
    data = _ordinary(seed)
    fit = bk.evaluate(data, "pass@1,2 pass^2", rng=1, draws=50, **model)
    compared = bk.compare(fit, rng=seed, alpha=0.2, rope=0.03)
    board = bk.leaderboard(compared)
    rows = bk.table(board, "leaderboard").set_index(["metric", "target", "system"]).sort_index()
    result = Result.of(compared)
    for metric in result.metrics:
        ranks = metric_values(result.group("ranks"), metric).sel(rank=1)
        tiers = metric_values(result.group("tiers"), metric)
        for target in result.targets:
            of_board = rows.loc[(metric.label, target)].loc[result.systems]
            assert of_board["prob_best"].tolist() == ranks.sel(target=target).values.tolist()
            assert of_board["tier"].tolist() == tiers.sel(target=target).values.tolist()
            assert bk.claim(compared, metric, target=target) == bk.claim(
                board if len(result.systems) > 2 else compared, metric, target=target
            )
    pairs = bk.table(compared, "comparison")
    for row in pairs.to_dict("records"):
        of_pair = rows.loc[(row["metric"], row["target"])].loc[[row["system"], row["other"]]]
        ahead, behind = row["verdict"] in (AHEAD, BEYOND_ROPE), row["verdict"] in (
            BEHIND, BEHIND_ROPE,
        )  # fmt: skip
        metric, target = row["metric"], row["target"]
        if not (ahead or behind):
            assert "ahead of" not in row["sentence"]
        if compared["comparison"].attrs["ranked_on"] == result.trials.shape[1]:
            names = row["system"], row["other"]
            separated = board["leaderboard"]["separated"].sel(metric=metric, target=target)
            declared = [
                bool(separated.sel(system=one, other=other)) for one, other in (names, names[::-1])
            ]
            if "equivalent" not in row["verdict"]:
                assert declared == [ahead, behind]
            means = row["mean_system"], row["mean_other"]
            np.testing.assert_allclose(of_pair["mean"], means, atol=1e-12)
            np.testing.assert_allclose(row["mean"], means[0] - means[1], atol=1e-12)
            if any(declared):
                assert of_pair["tier"].nunique() == 2
                assert (row["prob_greater"] > 0.5) == declared[0]
        if ahead or behind:
            first = row["system"] if ahead else row["other"]
            where = "On these" if target == "questions" else "On questions"
            assert f"{where} questions {first} is ahead of".replace(
                "questions questions", "questions"
            ) in row["sentence"].replace("questions like these", "questions")


@pytest.mark.long
def test_what_is_declared_decides_the_joint_model() -> None:
    runs = {"a": [[1, 1], [0, 1], [0, 0]], "b": [[1, 0], [0, 1], [0, 1]]}
    models = {
        "shared difficulty": [{}, {"difficulty": "beta"}, {"prior": bk.priors.HyperPrior()},
                              {"judge": bk.JudgeError(tp=90, p=100, fp=10, n=100)},
                              {"prior_trials": runs}],
        "paired": [
            {"pooling": "none"}, {"prior": bk.priors.HyperPrior(mean=(2.0, 2.0))},
            {"population": "bootstrap"}, {"group": ["x", "x", "y"]},
        ],
    }  # fmt: skip
    for model, declarations in models.items():
        for options in declarations:
            fit = bk.evaluate(runs, "pass@1", rng=1, draws=10, **options)
            assert joint_model(Result.of(fit)) == model, options
            assert bk.leaderboard(fit)["leaderboard"].attrs["joint_model"] == model
    with pytest.raises(ValueError, match=r"pooling='none' must be|must be without.*pooling"):
        bk.compare(bk.evaluate(runs, "pass@1", pooling="none"), prior=bk.priors.LeaderboardPrior())


def test_weights_move_means_over_these_questions_alone() -> None:
    """Of questions that systems have in common; one more trial of a heavy question says more."""
    rng = np.random.default_rng(4)
    p = np.sort(rng.beta(1.0, 1.0, 40))
    counts = rng.binomial(3, p, (3, 40)), np.full((3, 40), 3)
    heavy = np.where(np.arange(40) < 10, 20.0, 1.0)  # the hardest
    plain, weighted = (
        bk.leaderboard(bk.evaluate(bk.tally(counts, weight=by), "pass@1", difficulty="beta", rng=1))
        for by in (None, heavy.tolist())
    )
    before, after = (
        bk.table(board, "leaderboard").set_index(["target", "system"])["mean"].sort_index()
        for board in (plain, weighted)
    )
    assert weighted["leaderboard"].attrs["joint_model"] == "shared difficulty"
    assert after["population"].equals(before["population"])
    # Alone a system's hard questions are drawn towards its mean; other systems say they are hard.
    alone = bk.table(weighted).set_index(["target", "system"])["mean"].sort_index()["questions"]
    truth = heavy @ p / heavy.sum()
    assert (abs(after["questions"] - truth) < 0.6 * abs(alone - truth)).all()
    assert len(bk.checks.suspicious_questions(weighted, rng=1)) == 40


@pytest.mark.long
def test_the_same_data_have_the_same_numbers_each_time() -> None:
    fit = bk.evaluate(_ordinary(3), "pass@1", rng=1, draws=10)
    boards = bk.leaderboard(fit), bk.leaderboard(bk.compare(fit))
    tables = [bk.table(board, "leaderboard") for board in boards]
    assert tables[0].equals(tables[1])


@pytest.mark.long
def test_a_note_says_where_joint_means_differ_from_those_alone() -> None:
    """A system that tried the easiest questions only looks better alone; with many trials none."""
    rng = np.random.default_rng(2)
    p = np.sort(rng.beta(0.8, 0.8, 40))[::-1]
    trials = np.array([[8] * 40, [8] * 40, [8] * 10 + [0] * 30])
    few = bk.tally((rng.binomial(trials, p), trials), systems=list("abc"), missing="ignore")
    compared = bk.compare(bk.evaluate(few, "pass@1", rng=1))
    (note,) = (note for note in bk.notes(compared) if "one model of all systems" in note)
    assert "pass@1 of c on" in note
    sentence = bk.claim(compared, system="a", other="c")
    assert "of the model of all systems" in sentence
    chosen = bk.select_systems(compared, ["a", "b"])
    assert not any("one model" in note for note in bk.notes(chosen))
    many = bk.tally((rng.binomial(400, p, (2, 40)), 400), systems=list("ab"))
    compared = bk.compare(bk.evaluate(many, "pass@1", rng=1))
    assert not any("one model" in note for note in bk.notes(compared))


def test_a_note_says_that_chains_took_the_place_of_weights() -> None:
    fit = bk.evaluate(_ordinary(3), "pass@1", difficulty="beta", rng=1, draws=10)
    result, compared = Result.of(fit), bk.compare(fit)
    joint = joint_posterior(result, 1)
    assert joint.board is not None
    draws = replace(joint.board.draws, method="slice", k_hat=0.81, effective_draws=240.0)
    chains = replace(joint, board=replace(joint.board, draws=draws))
    comparison = Result.of(compared).group("comparison")
    assert "Pareto k 0.81" in joint_note(result, chains, comparison)
    assert "240 effective draws" in joint_note(result, chains, comparison)
    assert "chains" not in joint_note(result, joint, comparison)


def test_two_systems_are_hardly_shrunken_towards_each_other() -> None:
    """A difference of four standard errors is to stay within a tenth of itself."""
    rng = np.random.default_rng(5)
    p = rng.beta(2.0, 2.0, 100)
    runs = np.stack([rng.binomial(4, p), rng.binomial(4, p**1.6)])
    fit = bk.evaluate((runs, np.full_like(runs, 4)), "pass@1", rng=1)
    row = bk.table(bk.compare(fit), "comparison").iloc[0]
    observed = abs(runs.mean(axis=1) @ [1, -1]) / 4
    assert row["mean"] == pytest.approx(observed, rel=0.1)
