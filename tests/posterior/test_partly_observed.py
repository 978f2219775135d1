"""Questions with fewer than k trials: an estimate is of the others, and says how many they are."""

from itertools import combinations

import numpy as np
import pytest

import bayesatk as bk

MARKS = [[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1], [0, 1]]
ANSWERS = [["a", "b", "a", "a"], ["a", "a", "c", "c"], ["b", "b", "c", "b"], ["a", "c"]]
REFERENCE = ["a", "c", "c", "a"]


def _by_hand(rows, k, credit):
    return np.mean([np.mean([credit(drawn) for drawn in combinations(row, k)]) for row in rows])


def _estimates(fit, target="questions"):
    rows = bk.table(fit).query(f"target == '{target}'").set_index("metric")
    return rows


def test_an_estimate_is_the_mean_over_the_questions_with_k_trials() -> None:
    fit = bk.evaluate(MARKS, "pass@2,3,4", rng=1, draws=20)
    rows = _estimates(fit)
    assert rows["estimate"]["pass@2"] == pytest.approx(_by_hand(MARKS, 2, max), abs=1e-12)
    for k in (3, 4):
        by_hand = _by_hand(MARKS[:3], k, max)
        assert rows["estimate"][f"pass@{k}"] == pytest.approx(by_hand, abs=1e-12)
    assert rows["estimate_questions"].tolist() == [4, 3, 3]
    assert (rows["tried_questions"] == 4).all()
    assert "range_lower" not in rows
    notes = [note for note in fit.notes if "The estimate of" in note]
    assert notes == [
        f"The estimate of pass@{k} is of the questions with {k} trials or more: 3 of 4."
        for k in (3, 4)
    ]
    assert "3 of 4" in str(bk.table(fit))
    fit = bk.evaluate({"new": MARKS, "old": [[1, 0, 1], *MARKS[1:]]}, "pass@4", rng=1, draws=20)
    (note,) = [note for note in fit.notes if "The estimate of" in note]
    assert note.endswith("with 4 trials or more: 2 of 4 (old) to 3 of 4 (new).")


def test_the_best_of_single_scores_is_said_to_rest_on_the_prior() -> None:
    scores = [[0.2], [0.5], [0.9], [0.4]]
    for rows, noted in ((scores, True), ([[0.2, 0.3], *scores[1:]], False)):
        fit = bk.evaluate(bk.tally(rows, scores=(0, 1)), "bayes max@2", rng=1, draws=20)
        found = [note for note in fit.notes if "max@2 and their intervals" in note]
        assert bool(found) == noted
        assert not noted or "bayes" not in found[0]


def test_single_trials_are_said_to_leave_these_questions_to_the_prior() -> None:
    """Of nearly equal questions a run's score varies by p (1 - p) / n about these questions'.

    With single trials the posterior sd is smaller, as unequal questions are as plausible.
    """
    p = np.random.default_rng(1).beta(20.0, 20.0, 60)
    for trials, known in ((1, False), (8, True)):
        marks = np.random.default_rng(2).binomial(trials, p), np.full(60, trials)
        fit = bk.evaluate(marks, "pass@1", difficulty="beta", rng=1, draws=20)
        said = [note for note in fit.notes if "on these questions rest on the prior" in note]
        sd = bk.table(fit).set_index("target")["sd"]["questions"]
        of_a_run = np.sqrt((p * (1.0 - p)).mean() / (60 * trials))
        assert bool(said) == (not known)
        assert (sd > 0.9 * of_a_run) == known


def test_weights_are_those_of_the_questions_with_k_trials() -> None:
    data = bk.tally(MARKS, weight=[1.0, 2.0, 3.0, 10.0])
    rows = _estimates(bk.evaluate(data, "pass@2,3", rng=1, draws=20))
    values = [_by_hand([row], 2, max) for row in MARKS]
    by_hand = np.average(values, weights=[1, 2, 3, 10])
    assert rows["estimate"]["pass@2"] == pytest.approx(by_hand, abs=1e-12)
    assert np.isnan(rows["estimate"]["pass@3"]), "less than half of the questions, by weight"


def test_votes_and_groups_do_the_same() -> None:
    votes = bk.tally(None, answers=ANSWERS, reference=REFERENCE)
    fit = bk.evaluate(votes, "plurality@3", rng=1, draws=20)
    pairs = zip(ANSWERS[:3], REFERENCE[:3], strict=True)
    by_hand = np.mean([_plurality(row, right) for row, right in pairs])
    assert _estimates(fit)["estimate"]["plurality@3"] == pytest.approx(by_hand, abs=1e-12)
    data = bk.tally(MARKS, group=list("xyyy"))
    grouped = bk.evaluate(data, "pass@3", group="group", rng=1, draws=20)
    rows = bk.table(grouped, by="group").query("target == 'questions'").set_index("group")
    assert rows["estimate"]["y"] == pytest.approx(_by_hand(MARKS[1:3], 3, max), abs=1e-12)
    assert rows["estimate"]["x"] == pytest.approx(_by_hand(MARKS[:1], 3, max), abs=1e-12)


def _plurality(answers, right):
    """Share of triples whose most frequent answer is right, ties broken at random."""
    shares = []
    for drawn in combinations(answers, 3):
        counts = {answer: drawn.count(answer) for answer in drawn}
        most = [answer for answer in counts if counts[answer] == max(counts.values())]
        shares.append((right in most) / len(most))
    return np.mean(shares)


def test_votes_are_of_the_questions_with_an_answer() -> None:
    """Of two answers 1 and 1 right wins; of 7, 2 and 7 it wins in one pair and ties in two."""
    answers = [["1", "1", ""], ["3", "", ""], ["", "", ""], ["", "", ""], ["7", "2", "7"]]
    data = bk.tally(
        None,
        answers=answers,
        reference=list("13657"),
        answer_rules=bk.AnswerRules(unanswered="exclude"),
    )
    rows = bk.table(bk.evaluate(data, "plurality@2", rng=1, draws=50))
    assert rows["estimate"].tolist() == pytest.approx([(1.0 + 2.0 / 3.0) / 2.0] * 2)


def test_of_a_minority_there_is_no_estimate_but_the_range() -> None:
    marks = [*MARKS, [1, 1], [0, 0], [1, 0]]
    fit = bk.evaluate(marks, "pass@3", rng=1, draws=20)
    rows = _estimates(fit)
    assert np.isnan(rows["estimate"]["pass@3"])
    assert 0.0 <= rows["range_lower"]["pass@3"] < rows["range_upper"]["pass@3"] <= 1.0
    assert not any("The estimate of" in note for note in fit.notes)


def test_pairs_are_compared_on_questions_that_both_tried_k_times() -> None:
    better = [[1, 1, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]
    fit = bk.evaluate({"a": MARKS, "b": better}, "pass^3", rng=1, draws=50)
    sentence = bk.table(bk.compare(fit), "comparison")["sentence"][0]
    scored = [_by_hand(rows[:3], 3, min) for rows in (better, MARKS)]
    assert f"b scored {scored[0]:.3f} and a {scored[1]:.3f} in pass^3" in sentence
    assert "the same 3 questions (4 trials each) of 4, those that both tried 3 times or more" in (
        sentence
    )
    assert "those of 4 with 3 trials or more" in bk.claim(fit, "pass^3", system="a")


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0, 10.0]])
def test_the_mean_on_the_card_is_the_observed_mean(weight) -> None:
    data = bk.tally(MARKS, weight=weight)
    observed = _estimates(bk.evaluate(data, "bayes", rng=1, draws=20))["estimate"]["bayes"]
    assert f"{observed:.4f}" in str(data)
    assert observed == pytest.approx(np.average([0.75, 0.25, 1.0, 0.5], weights=weight), abs=1e-12)
