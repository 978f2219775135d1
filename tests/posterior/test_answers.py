"""Answers on the way in, and votes between them through evaluate, sample and verify."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bayesatk as bk
from bayesatk.metrics.grid import MetricGrid

MARKS = [[1, 0, 0], [1, 1, 0]]
ANSWERS = [["4", "5", "6"], ["x", "x", None]]


def counted(data: bk.Outcomes, system: int = 0) -> list[tuple[list[int], list[bool], int | None]]:
    assert data.answers is not None
    return [(b.count.tolist(), b.correct.tolist(), b.abstentions) for b in data.answers.of(system)]


def test_answers_beside_marks_and_in_place_of_them() -> None:
    beside = bk.tally(MARKS, answers=ANSWERS)
    instead = bk.tally(None, answers=ANSWERS, reference=["4", "x"])
    for data in (beside, instead):
        assert data.successes.values.tolist() == [[1, 2]]
        assert counted(data) == [([1, 1, 1], [True, False, False], 0), ([2], [True], 1)]
    assert "1/2/3 distinct" in beside.card()
    assert "1 trials unanswered" in beside.card()


def test_several_references_and_one_that_nobody_gave() -> None:
    data = bk.tally(None, answers=ANSWERS, reference={0: ["5", "6"], 1: "y"})
    assert data.successes.values.tolist() == [[2, 0]]
    assert counted(data)[0][1] == [False, True, True]
    assert counted(data)[1] == ([2], [False], 1)


@pytest.mark.parametrize("form", ["pandas", "polars", "csv", "jsonl"])
def test_long_tables_and_files(form, tmp_path) -> None:
    frame = pd.DataFrame(
        {
            "question": ["a", "a", "a", "b", "b", "b"],
            "trial": [0, 1, 2] * 2,
            "said": ["4", "5", "6", "x", "x", None],
            "gold": ["4"] * 3 + ["x"] * 3,
            "passed": [1, 0, 0, 1, 1, 0],
        }
    )
    source = frame
    if form == "polars":
        source = pl.from_pandas(frame)
    elif form == "csv":
        source = tmp_path / "runs.csv"
        frame.to_csv(source, index=False)
    elif form == "jsonl":
        source = tmp_path / "runs.jsonl"
        frame.to_json(source, orient="records", lines=True)
    for columns in ({"answer": "said"}, {"answer": "said", "reference": "gold"}):
        data = bk.load(source, columns=columns)
        assert counted(data) == [([1, 1, 1], [True, False, False], 0), ([2], [True], 1)]
        assert data.successes.values.tolist() == [[1, 2]]


def test_a_column_called_answer_is_not_taken_unasked() -> None:
    frame = pd.DataFrame({"question": ["a"], "answer": ["4"], "correct": [1]})
    assert bk.tally(frame).answers is None


def test_systems_of_a_mapping_keep_their_names_and_rows_may_be_ragged() -> None:
    data = bk.tally(
        {"s": [[1], [0, 0]], "t": [[0], [1]]},
        answers={"s": [["p"], ["q", "r"]], "t": [["z"], ["v"]]},
    )
    assert data.systems == ["s", "t"]
    assert counted(data, 1) == [([1], [False], None), ([1], [True], None)]
    assert data.trials.values.tolist() == [[1, 2], [1, 1]]


@pytest.mark.parametrize(
    ("rules", "answers", "distinct"),
    [
        ({}, [["A", " A ", "a"]], 2),
        ({"normalise": "exact"}, [["A", " A ", "a"]], 3),
        ({"normalise": "casefold"}, [["A", " A ", "a"]], 1),
        ({"normalise": lambda text: text.strip("aA ")}, [["A1", "1", "a1"]], 1),
        ({}, [[1, 1.0, "1"]], 1),
        ({}, [["new  york", "new york", "new\tyork"]], 1),
    ],
)
def test_answers_are_compared_as_stated(rules, answers, distinct) -> None:
    data = bk.tally([[0, 0, 0]], answers=answers, answer_rules=bk.AnswerRules(**rules))
    assert len(counted(data)[0][0]) == distinct


def test_conflicting_marks_are_named_or_decided_by_the_majority() -> None:
    marks, answers = [[1, 1, 0, 0]], [["4", "4", "4", "5"]]
    with pytest.raises(bk.OutcomeError, match=r"'4' to question 0 is marked right 2 and wrong 1"):
        bk.tally(marks, answers=answers)
    rules = bk.AnswerRules(conflict="majority")
    data = bk.tally(marks, answers=answers, answer_rules=rules)
    assert counted(data) == [([3, 1], [True, False], None)]
    assert data.successes.values.tolist() == [[2]]
    assert "1 marks overruled" in data.card()


def test_right_answers_can_be_one() -> None:
    data = bk.tally(
        [[1, 1, 0]], answers=[["1/2", "0.5", "2"]], answer_rules=bk.AnswerRules(merge_correct=True)
    )
    assert counted(data) == [([2, 1], [True, False], None)]


def test_unanswered_trials_vote_for_nobody_or_are_left_out() -> None:
    marks, answers = [[1, 0, 0, 0]], [["4", None, "", "  "]]
    nobody = bk.tally(marks, answers=answers)
    excluded = bk.tally(marks, answers=answers, answer_rules=bk.AnswerRules(unanswered="exclude"))
    assert counted(nobody) == [([1], [True], 3)]
    assert counted(excluded) == [([1], [True], None)]
    fits = [bk.evaluate(one, "plurality@1", pooling="none", rng=1) for one in (nobody, excluded)]
    estimates = [float(bk.table(fit)["estimate"][0]) for fit in fits]
    assert estimates == pytest.approx([0.25, 1.0])


def test_missing_outcomes_are_missing_answers() -> None:
    marks, answers = [[1, None, 0]], [["4", "4", "5"]]
    with pytest.raises(bk.OutcomeError, match="missing"):
        bk.tally(marks, answers=answers)
    assert counted(bk.tally(marks, answers=answers, missing="ignore"))[0][0] == [1, 1]
    assert counted(bk.tally(marks, answers=answers, missing="wrong")) == [
        ([1, 1], [True, False], 1)
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bk.tally(MARKS, answers=[["4"], ["x"]]), "arranged like data"),
        (lambda: bk.tally(None, answers=ANSWERS), "answers need outcomes"),
        (lambda: bk.tally(MARKS, answers=ANSWERS, reference=["4", "x"]), "both"),
        (
            lambda: bk.tally(None, answers=ANSWERS, reference=["4"]),
            "reference must have a value for each of the 2",
        ),
        (lambda: bk.tally(None, answers=ANSWERS, reference={0: "4"}), "has none for 1"),
        (lambda: bk.tally(None, answers=ANSWERS, reference=["4", None]), "must have a reference"),
        (lambda: bk.tally(MARKS, reference=["4", "x"]), "reference must be left out"),
        (lambda: bk.tally([[1]], answers=[[None]]), "without an answer cannot be right"),
        (lambda: bk.tally([[1]], answers=[[{"a": 1}]]), "answers must be text"),
        (lambda: bk.tally([[5]], answers=[["4"]]), "outcome 5 at question 0, trial 0"),
        (lambda: bk.tally(MARKS, answers=ANSWERS, answer_rules="casefold"), "must be an AnswerR"),
        (lambda: bk.AnswerRules(merge_correct="no"), "merge_correct must be true or false"),
        (
            lambda: bk.tally([[1]], answers=[["x"]], answer_rules=bk.AnswerRules(int)),
            "normalise must take any answer; it raised ValueError",
        ),
        (
            lambda: bk.tally(None, answers=ANSWERS, reference={0: "4", 1: "x", 2: "y"}),
            "reference must be of these questions",
        ),
        (lambda: bk.AnswerRules(conflict="newest"), "conflict must be 'error' or"),
        (lambda: bk.tally([["a"]], scores={"a": 0, "b": 0.5}, answers=[["4"]]), "right or wrong"),
    ],
)
def test_what_cannot_be_read_is_refused(call, message) -> None:
    with pytest.raises(bk.OutcomeError, match=message):
        call()


def test_references_of_a_question_must_agree() -> None:
    frame = pd.DataFrame({"question": ["a", "a"], "said": ["1", "2"], "gold": ["1", "2"]})
    with pytest.raises(bk.OutcomeError, match="column 'gold' must be the same in all rows"):
        bk.tally(frame, columns={"answer": "said", "reference": "gold"})
    with pytest.raises(bk.OutcomeError, match="takes the place of an outcome"):
        bk.tally(frame, columns={"reference": "gold"})


@pytest.fixture(scope="module")
def votes() -> bk.Outcomes:
    rng = np.random.default_rng(0)
    answers = [
        [[str(rng.choice(4, p=q)) for _ in range(6)] for q in rng.dirichlet([2, 1, 1, 0.5], 5)]
        for _ in range(2)
    ]
    return bk.tally(None, answers=answers, reference=["0"] * 5)


METRICS = ["plurality@1,3,5", "maj@3"]


def test_estimates_and_means_are_those_of_the_array_form(votes) -> None:
    prior = bk.priors.AnswerPrior(0.5, unseen=2)
    fit = bk.evaluate(votes, METRICS, pooling="none", answer_prior=prior, rng=1)
    closed = fit["closed_form"]["plurality_at_k"].sel(target="questions")
    for system in range(2):
        estimates, means = [], []
        for one in votes.answers.of(system):
            estimates.append(bk.published.plurality_at_k(one.count, one.correct, [1, 3, 5]))
            lacking = not one.correct.any()
            count = [*one.count, 0, 0, *[0] * lacking]
            correct = [*one.correct, False, False, *[True] * lacking]
            means.append(bk.published.plurality_at_k(count, correct, [1, 3, 5], "posterior", 0.5))
        own = closed.isel(system=system)
        np.testing.assert_allclose(
            own.sel(statistic="estimate"), np.mean(estimates, axis=0), rtol=1e-12
        )
        np.testing.assert_allclose(own.sel(statistic="mean"), np.mean(means, axis=0), rtol=1e-12)


def test_one_vote_is_the_mean_of_a_dirichlet() -> None:
    """Counts 3 right, 2 wrong and an unseen answer: p of the right one is Beta(4, 4)."""
    data = bk.tally([[1, 1, 1, 0, 0]], answers=[["a", "a", "a", "b", "b"]])
    fit = bk.evaluate(data, "plurality@1", pooling="none", draws=5000, rng=1)
    row = bk.table(fit).iloc[0]
    assert row["mean"] == pytest.approx(0.5, abs=1e-12)
    assert row["sd"] == pytest.approx(1 / 6, rel=0.02)
    assert row["ci_lower"] == pytest.approx(0.184, abs=0.01)


def test_unseen_answers_keep_unanimity_from_being_certain() -> None:
    data = bk.tally([[1, 1, 1]], answers=[["a", "a", "a"]])
    means = {
        unseen: float(
            bk.table(
                bk.evaluate(
                    data,
                    "plurality@1",
                    pooling="none",
                    rng=1,
                    answer_prior=bk.priors.AnswerPrior(unseen=unseen),
                )
            )["mean"][0]
        )
        for unseen in (0, 1, 3)
    }
    assert means == pytest.approx({0: 1.0, 1: 4 / 5, 3: 4 / 7})


def test_an_unseen_right_answer_may_yet_come() -> None:
    data = bk.tally([[0, 0]], answers=[["b", "c"]])
    found = {}
    for possible in (True, False):
        prior = bk.priors.AnswerPrior(unseen=0, unseen_correct=possible)
        fit = bk.evaluate(data, "plurality@1", pooling="none", answer_prior=prior, rng=1)
        found[possible] = float(bk.table(fit)["mean"][0])
    assert found == pytest.approx({True: 1 / 5, False: 0.0})


def test_a_known_number_of_choices() -> None:
    """Four answers, all but one given once: (1 + 1)/(3 + 4), or 1/7 for the one not given."""
    prior, options = bk.priors.AnswerPrior(choices=4), {"pooling": "none", "rng": 1}
    for reference, expected in (("a", 2 / 7), ("d", 1 / 7)):
        data = bk.tally(None, answers=[list("abc")], reference=[reference])
        fit = bk.evaluate(data, "plurality@1", answer_prior=prior, **options)
        assert float(bk.table(fit)["mean"][0]) == pytest.approx(expected)
    assert bk.Result.of(fit).answer_prior == prior
    for row, message in ((list("abcde"), "5 distinct"), (list("abce"), "none of them right")):
        crowded = bk.tally(None, answers=[row], reference=["d"])
        with pytest.raises(ValueError, match=message):
            bk.evaluate(crowded, "plurality@1", answer_prior=prior, **options)
    for bad in ({"choices": 1}, {"choices": 2.0}, {"choices": 4, "unseen": 2}):
        with pytest.raises(ValueError, match="answer_prior: "):
            bk.priors.AnswerPrior(**bad)


def test_spellings_of_a_reference_that_nobody_gave_add_nothing() -> None:
    """Six wrong answers of three kinds; a wrong and a right one may yet come: 1/(6 + 5)."""
    answers, spellings = [list("xyzxyx")], [[f"r{i}" for i in range(20)]]
    for data in (
        bk.tally(None, answers=answers, reference=spellings),
        bk.tally([[0] * 6], answers=answers),
    ):
        row = bk.table(bk.evaluate(data, "plurality@1", pooling="none", rng=1)).iloc[0]
        assert row["mean"] == pytest.approx(1 / 11)


def test_a_system_does_not_depend_on_its_neighbours() -> None:
    own = {"a": [["a", "b", "a"], ["c", "d", "c"]]}
    other = {"b": [["a", None, "b"], ["c", "c", "c"]]}
    means = [
        float(
            bk.table(
                bk.evaluate(
                    bk.tally(None, answers=answers, reference=["a", "c"]),
                    "plurality@3",
                    pooling="none",
                    rng=1,
                )
            )["mean"][0]
        )
        for answers in (own, own | other)
    ]
    assert means[0] == pytest.approx(means[1], abs=1e-14)


def test_questions_without_any_possible_answer_are_lost() -> None:
    rules = bk.AnswerRules(unanswered="exclude")
    data = bk.tally([[0, 0], [1, 0]], answers=[[None, ""], ["a", "b"]], answer_rules=rules)
    prior = bk.priors.AnswerPrior(unseen=0, unseen_correct=False)
    fit = bk.evaluate(data, "plurality@1", pooling="none", answer_prior=prior, rng=1)
    assert float(bk.table(fit)["mean"][0]) == pytest.approx(0.25)  # (0 + 1/2) / 2


def test_relabelled_data_keep_their_answers(votes) -> None:
    again = bk.tally(votes, systems=["s", "t"])
    assert counted(again, 1) == counted(votes, 1)


def test_the_proxy_is_held_against_plurality(votes) -> None:
    fit = bk.evaluate(votes, METRICS, pooling="none", rng=1)
    note = next(one for one in fit.notes if "strict majority" in one)
    plurality, strict = (
        float(bk.table(fit).query(f"metric == '{name}' and system == 0")["estimate"].iloc[0])
        for name in ("plurality@3", "maj@3")
    )
    assert f"{strict - plurality:+.4f} at k=3 ({strict:.4f} for {plurality:.4f})" in note


def test_many_long_votes_fall_back_on_simulated_variances() -> None:
    """Fewer exact values than it takes: the sd then agrees with that of exact ones."""
    from bayesatk.posterior import vote_posterior
    from bayesatk.posterior.model import CountModel

    rng, prior = np.random.default_rng(4), bk.priors.AnswerPrior()
    cells = [rng.multinomial(40, rng.dirichlet(np.full(6, 0.7))) for _ in range(60)]
    ballots = [vote_posterior.Ballots(c[c > 0], np.arange((c > 0).sum()) == 0, None) for c in cells]
    counts = np.array([one.by_mark for one in ballots])
    right = CountModel.of(bk.priors.BetaPrior(), counts, pooling="none")

    def voted():
        seeded = np.random.default_rng(1)
        return vote_posterior.vote_posterior(right, ballots, prior, [5], 400, seeded)

    exact, rough = voted(), voted()
    assert exact.moments.pool.shape[1] == 400
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vote_posterior, "_MAX_MULTIPLICATIONS", 1.0)
        assert rough.moments.pool.shape[1] == vote_posterior._VOTE_DRAWS
    np.testing.assert_allclose(rough.mean, exact.mean, rtol=1e-12)
    np.testing.assert_allclose(rough.sd, exact.sd, rtol=0.15)
    drawn = rough.draw(4000, rng, False).metrics
    np.testing.assert_allclose(drawn.std(axis=0), rough.sd, rtol=0.1)


def test_votes_need_answers_and_their_own_prior(votes) -> None:
    with pytest.raises(ValueError, match=r"plurality@3 with .*'complete'.* pass pooling='partial'"):
        bk.evaluate(votes, "plurality@3", pooling="complete")
    with pytest.raises(ValueError, match="answer_prior must be an AnswerPrior"):
        bk.evaluate(votes, "plurality@3", pooling="none", answer_prior="flat")
    with pytest.raises(ValueError, match=r"plurality@3 with .* leave out prior_trials"):
        bk.evaluate(votes, "plurality@3", pooling="none", prior_trials=votes)
    with pytest.raises(ValueError, match="answer_prior must be left out"):
        bk.evaluate(votes, "pass@1", answer_prior=bk.priors.AnswerPrior())
    with pytest.raises(ValueError, match="k must be at most 1000 for plurality"):
        bk.evaluate(votes, "plurality@3000", pooling="none")
    with pytest.raises(ValueError, match="the data have none"):
        bk.evaluate([[1, 0]], "plurality@1", pooling="none")
    with pytest.raises(ValueError, match="has no value for a success probability"):
        bk.metrics.Metric(MetricGrid.of("plurality@3").families[0], 3).latent(0.5)
