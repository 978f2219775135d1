"""Sentences: each says what its row says, by the thresholds that `claim` states."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesatk as bk
from bayesatk.comparison.claims import claim
from bayesatk.results.result import Result
from bayesatk.results.schema import metric_values

VERDICTS = (
    "ahead by more than the ROPE", "ahead", "practically equivalent", "not separated",
)  # fmt: skip
QUICK = {"derandomize": True, "deadline": None}


@st.composite
def _boards(draw):
    """Two to five systems, three to twelve questions, one to six trials, some untried."""
    size, questions = draw(st.integers(2, 5)), draw(st.integers(3, 12))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    trials = rng.integers(1, 7, (size, questions))
    if draw(st.booleans()):
        trials[rng.random(trials.shape) < 0.3] = 0
        trials[:, 0] = 2
    skill = rng.choice([0.0, 0.0, 3.0], size)[:, None]
    p = 1.0 / (1.0 + np.exp(-skill - rng.normal(0.0, 1.5, questions)))
    data = bk.tally((rng.binomial(trials, p), trials), missing="ignore")
    rope, alpha = draw(st.sampled_from([0.0, 0.02, 0.3])), draw(st.sampled_from([0.05, 0.4]))
    fit = bk.evaluate(data, "bayes pass@3", pooling=draw(_POOLINGS), draws=20, rng=1)
    return bk.compare(fit, rope=rope, alpha=alpha)


_POOLINGS = st.sampled_from(["none", "complete"])


def _numbers(sentence: str) -> tuple[str, list[float]]:
    """System that is named first, difference and ends of the interval, as written."""
    number = r"([+-]?[\d.]+)"
    match = re.search(
        r"On (?:these questions|questions like these) (\S+) (?:and|is ahead) .*"
        rf": posterior mean difference {number} \(\d+% interval {number} to {number}\), P\(",
        sentence,
    )
    assert match, sentence
    return match[1], [float(word) for word in match.groups()[1:]]


def _turned(row: dict) -> dict:
    """Row of the other system minus the first."""
    return row | {
        "mean": -row["mean"],
        "ci_lower": -row["ci_upper"],
        "ci_upper": -row["ci_lower"],
        "prob_greater": 1.0 - row["prob_greater"],
        "prob_above_rope": row["prob_below_rope"],
        "verdict": row["verdict"].replace("behind", "ahead"),
    }


@pytest.mark.long
@settings(max_examples=25, **QUICK)
@given(_boards())
def test_a_claim_never_contradicts_its_table(result) -> None:
    fit, frame = Result.of(result), bk.table(result, "comparison")
    rope, alpha = result["comparison"].attrs["rope"], result["comparison"].attrs["alpha"]
    for row in frame.to_dict("records"):
        leader, stated = _numbers(row["sentence"])
        if leader != str(row["system"]):
            assert leader == str(row["other"])
            row = _turned(row)
        verdict, sentence = row["verdict"], row["sentence"]
        chance = row["prob_greater"] - 0.5 * row["prob_tie"]
        metric = next(metric for metric in fit.metrics if metric.label == row["metric"])
        tiers = metric_values(fit.group("tiers"), metric).sel(target=row["target"])
        apart = int(tiers.sel(system=row["system"])) != int(tiers.sel(system=row["other"]))
        assert verdict in VERDICTS
        assert ("is ahead of" in sentence) == verdict.startswith("ahead")
        assert (f"by more than {rope:g}" in sentence) == (verdict == VERDICTS[0])
        assert ("practically equivalent" in sentence) == (verdict == VERDICTS[2])
        assert ("not separated" in sentence) == (verdict == VERDICTS[3])
        if verdict.startswith("ahead"):
            assert chance >= 1 - alpha / 2 - 1e-12
            assert apart or len(fit.systems) == 2
            assert row["prob_in_rope"] < 1 - alpha or rope == 0
        if verdict == VERDICTS[0]:
            assert row["prob_above_rope"] >= 1 - alpha / 2
        if verdict == VERDICTS[2]:
            assert rope > 0
            assert row["prob_in_rope"] >= 1 - alpha
        elif rope > 0:
            assert row["prob_in_rope"] < 1 - alpha
        if verdict == VERDICTS[3] and len(fit.systems) == 2:
            assert chance < 1 - alpha / 2 + 1e-12
        for number, name in zip(stated, ("mean", "ci_lower", "ci_upper"), strict=True):
            assert number == pytest.approx(row[name], abs=0.0051)
        assert stated[1] <= stated[2]
        again = claim(
            result, row["metric"], target=row["target"], system=row["other"], other=row["system"]
        )
        assert again.startswith(sentence)  # the notes of the fit follow


def _shifted(**shifts: float):
    """Compare systems whose success probabilities differ by shifts from common ones."""
    rng = np.random.default_rng(2)
    p = rng.beta(0.9, 0.9, 40)[:, None]
    runs = {name: rng.binomial(1, np.clip(p + by, 0, 1), (40, 3)) for name, by in shifts.items()}
    return bk.compare(bk.evaluate(runs, "pass@1", rng=1))


def test_a_pair_that_stays_open_with_an_interval_beyond_zero_says_why() -> None:
    compared = _shifted(b=-0.01, a=0.06, c=-0.05, d=-0.06)
    row = bk.table(compared, "comparison", of="a", against="c").query("target == 'population'")
    assert row["verdict"].item() == "not separated"
    assert row["ci_lower"].item() > 0
    assert (
        " of this pair alone; of 4 systems, shrunk towards each other, orders are"
        in row["sentence"].item()
    )
    assert "right together with probability 0.975." in row["sentence"].item()
    pair = bk.table(compared, "comparison", of="b", against="c")
    assert not pair["sentence"].str.contains("declared").any()  # zero is inside


def test_a_level_gives_what_was_observed_then_the_posterior(ragged) -> None:
    fit = bk.evaluate(ragged, "pass@1,8 pass^1", rng=1)
    rows = bk.table(fit).set_index(["system", "metric", "target"])
    for target, where in (("questions", "these questions"), ("population", "questions like these")):
        row = rows.loc[("a", "pass@1", target)]
        text = claim(fit, target=target, system="a")
        assert text.startswith(f"a scored {row['estimate']:.3f} in pass@1 on 12 questions (")
        assert f"On {where} its pass@1 is {row['mean']:.3f} (95% interval " in text
        beyond = rows.loc[("a", "pass@8", target)]
        text = claim(fit, "pass@8", target=target, system="a")
        assert text.startswith("a: pass@8 judges more trials than some questions have (1).")
        assert f"is {beyond['range_lower']:.3f} to {beyond['range_upper']:.3f} (95%" in text


@pytest.mark.parametrize(
    ("compared", "options", "message"),
    [
        (False, {"metric": "pass@2", "system": "a"}, "metric must be one metric.*It has pass@1"),
        (False, {}, r"system must be one of the systems \['a', 'b'\]; got None"),
        (True, {"system": "a", "other": "c"}, "other must be one of the systems"),
        (False, {"system": "a", "other": "b"}, "must have the group 'comparison'"),
        (False, {"system": "a", "target": "these"}, "target must be"),
    ],
)
def test_what_cannot_be_claimed_is_refused(compared, options, message) -> None:
    fit = bk.evaluate({"a": [[1, 0]] * 4, "b": [[1, 1]] * 4}, "pass@1", pooling="none", rng=1)
    with pytest.raises(ValueError, match=message):
        claim(bk.compare(fit) if compared else fit, **options)


def test_a_tier_names_its_best_system_first() -> None:
    compared = _shifted(last=-0.4, second=-0.01, first=0.06)
    text = claim(compared, target="questions")
    tiers = "there are 2 tiers: (1) first, second; (2) last. "
    assert f"{tiers}Each system is ahead of all in later tiers. These orders are right" in text
    pair = bk.table(compared, "comparison", of="first", against="second")
    lead = pair["prob_greater"].iloc[0]  # nearly as without shrinkage
    stated = float(re.search(r"next surest order (0\.\d+)\)", text)[1])
    assert abs(stated - lead) < 0.05


@pytest.mark.parametrize(("right", "near"), [(17, False), (20, True), (26, False)])
def test_an_order_that_another_seed_may_change_is_said_to_be_near(right, near) -> None:
    runs = {"a": [[1, 1, 1, 1]] * right + [[0, 0, 0, 0]] * (60 - right), "b": [[1, 0, 0, 0]] * 60}
    fit = bk.evaluate(runs, "pass@1", pooling="none", rng=1)
    chance = bk.table(bk.compare(fit), "comparison")["prob_greater"].iloc[0]
    error = np.sqrt(chance * (1 - chance) / 4000)
    assert (abs(chance - 0.975) < 3 * error) == near
    assert ("Monte Carlo error of 0.975" in claim(bk.compare(fit), target="questions")) == near


def test_single_trials_are_ahead_on_these_questions_only_if_on_questions_like_these() -> None:
    a, b = [1] * 13 + [0] * 5 + [1, 0] * 20, [0] * 13 + [1] * 5 + [1, 0] * 20
    runs = {"a": np.array(a)[:, None], "b": np.array(b)[:, None]}
    once = bk.compare(bk.evaluate(runs, "pass@1", rng=1))
    rows = bk.table(once, "comparison").set_index("target")
    assert rows["prob_greater"]["questions"] > 0.978  # rests on the prior
    # McNemar's test of 13 questions against 5: Phi((13 - 5) / sqrt(13 + 5)) = 0.970.
    assert abs(rows["prob_greater"]["population"] - 0.970) < 0.008
    assert rows["prob_greater"]["population"] < 0.975
    assert set(rows["verdict"]) == {"not separated"}
    assert "this rests on the prior, and the verdict is that on questions like these" in claim(
        once, target="questions"
    )
    runs["a"][0] = 0  # 12 questions against 5
    twice = bk.compare(
        bk.evaluate({name: np.repeat(run, 2, 1) for name, run in runs.items()}, "pass@1", rng=1)
    )
    verdict = bk.table(twice, "comparison").set_index("target")["verdict"]
    assert (verdict["questions"], verdict["population"]) == ("ahead", "not separated")


@pytest.mark.parametrize(("size", "step"), [(3, 0.07), (3, 0.06), (5, 0.07), (5, 0.04), (6, 0.07)])
@pytest.mark.parametrize("rank", [bk.compare, bk.leaderboard])
def test_the_orders_that_are_named_are_those_of_the_pairs(size, step, rank) -> None:
    """Every order in the sentence of tiers is a verdict of the table, and no other verdict is."""
    rng = np.random.default_rng(size)
    p, names = rng.beta(1, 1, 40)[:, None], "abcdef"[:size]
    runs = {
        name: rng.binomial(1, np.clip(p + step * place, 0, 1), (40, 3))
        for place, name in enumerate(names)
    }
    ranked = rank(bk.evaluate(runs, "pass@1", rng=1))
    pairs = bk.table(bk.compare(ranked), "comparison").query("target == 'population'")
    declared = set()
    for row in pairs[["system", "other", "verdict"]].to_numpy().tolist():
        order = row[:2] if row[2] == "ahead" else row[1::-1]
        declared |= {tuple(order)} if row[2] in ("ahead", "behind") else set()
    assert 0 < len(declared) < size * (size - 1) / 2
    sentence = claim(ranked, "pass@1")
    if size > 5:
        assert f"pairs in different tiers {len(declared)} are separated." in sentence
        return
    named = {
        (first, second)
        for ahead, behind in re.findall(
            r"([a-f](?: and [a-f])*) (?:is|are) ahead of "
            r"([a-f](?: and [a-f])*)",
            sentence,
        )
        for first in ahead.split(" and ")
        for second in behind.split(" and ")
    }
    tiers = [tier.split(", ") for tier in re.findall(r"\(\d\) ([a-f](?:, [a-f])*)", sentence)]
    if "Each system is ahead of all in later tiers" in sentence:
        named = {
            (first, second)
            for tier, later in combinations(tiers, 2)
            for first in tier
            for second in later
        }
    assert named == declared


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_below_a_leaderboard_stands_its_leader_as_its_first_row_has_it(better) -> None:
    rng = np.random.default_rng(3)
    scores = {
        name: rng.integers(low, 5, (20, 3)).astype(float)
        for name, low in zip("abc", (0, 2, 1), strict=True)
    }
    data = bk.tally(scores, scores="numbers", better=better)
    table = bk.table(bk.leaderboard(bk.evaluate(data, "mean", rng=1)))
    row = table.query("target == 'population' and rank == 1").iloc[0]
    assert row["system"] == {"higher": "b", "lower": "a"}[better]
    words = (
        f"On questions like these {row['system']} has the best posterior mean, {row['mean']:.3f} "
        f"(95% interval {row['ci_lower']:.3f} to {row['ci_upper']:.3f}); "
    )
    (sentence,) = (line for line in str(table).splitlines() if words in line)
    ends = f"{table['observed'].min():.3f} to {table['observed'].max():.3f}"
    assert sentence.startswith(f"3 systems scored {ends} in mean")


def test_notes_stand_below_the_sentence(tmp_path) -> None:
    """A sentence that one copies has no notes in it."""
    data = bk.tally([[1, 0, 1]] * 6 + [[0, 1, None]] * 2, missing="ignore")
    lines = claim(bk.evaluate(data, "pass@3", rng=1)).splitlines()
    assert lines[0].endswith(").")
    assert lines[1:]
    assert all(line.startswith("Note: ") for line in lines[1:])


@pytest.mark.long
def test_identical_systems_are_called_ahead_as_seldom_as_stated() -> None:
    """alpha = 0.1 of pairs, and hardly any of boards of five, over simulated evaluations."""
    rng, named = np.random.default_rng(7), np.zeros((2, 2))
    for row, systems in enumerate((2, 5)):
        for _ in range(25):
            p = rng.beta(0.8, 0.6, 60)
            counts = rng.binomial(4, np.tile(p, (systems, 1)))
            data = bk.tally((counts, np.full(counts.shape, 4)))
            fit = bk.evaluate(data, "bayes", difficulty="beta", draws=50, rng=1)
            frame = bk.table(bk.compare(fit, alpha=0.1), "comparison")
            ahead = frame["verdict"].str.startswith("ahead").groupby(frame["target"]).any()
            named[row] += ahead[["questions", "population"]].to_numpy()
    # At a rate of 0.1 more than 7 of 25 has probability .002.
    assert (named <= 7).all(), named


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ([[1, 1, 1], [1, 0, 0], [0, 0, 0]], "there are 3 tiers: (1) a; (2) b; (3) c."),
        ([[1, 0, 1]] * 3, "the systems are not separated: all are in one tier."),
    ],
)
def test_below_pairs_of_several_systems_stand_their_tiers_and_no_single_pair(marks, words) -> None:
    runs = {name: [row] * 12 for name, row in zip("abc", marks, strict=True)}
    compared = bk.compare(bk.evaluate(runs, "pass@1", pooling="none", rng=1))
    table = bk.table(compared)
    below = str(table).partition("difference: ")[2].splitlines()
    assert any(words in line for line in below)
    assert not any(sentence in below for sentence in table["sentence"])
    pair = bk.table(compared, "comparison", of="a", against="b")
    assert pair["sentence"][1] in str(pair).splitlines()


def test_a_claim_says_how_many_questions_have_enough_trials() -> None:
    marks = [[1, 0, 1, 0]] * 4 + [[1, 0]] * 6 + [[1, 1, 0, 1]] * 4
    fit = bk.evaluate(marks, "pass@1,4", difficulty="beta", rng=1)
    assert "those of 14 with 4 trials or more" in claim(fit, "pass@4")
    assert "trials or more" not in claim(fit, "pass@1")


def test_a_note_stays_with_the_claim_on_each_metric_that_it_is_about() -> None:
    scores = bk.tally([[0.0], [1.0], [0.5]] * 4, scores="numbers")
    fit = bk.evaluate(scores, "mean max@2,4 min@1", rng=1)
    (note,) = [note for note in fit.notes if "how its scores vary" in note]
    assert "max@2, max@4" in note
    for metric, bears in [("max@2", True), ("max@4", True), ("min@1", False)]:
        assert (note in bk.claim(fit, metric)) == bears


def test_a_metric_in_capitals_has_the_same_notes() -> None:
    runs = {"a": [[1, 0, 1, 1], [0, 0, 1]] * 6, "b": [[1, 1, 0, 1], [0, 1, 1]] * 6}
    compared = bk.compare(bk.evaluate(runs, "pass@1,4", rng=1))
    assert "Note: The estimate of pass@4 is of " in claim(compared, "pass@4")
    assert claim(compared, "PASS@4") == claim(compared, "pass@4")


def test_costs_of_two_systems_have_a_claim() -> None:
    cost = {"a": [[1.0, 1.0]] * 8, "b": [[2.0, 2.0]] * 8}
    data = bk.tally({"a": [[1, 0]] * 8, "b": [[1, 1]] * 8}, cost=cost)
    compared = bk.compare(bk.evaluate(data, "pass@1 cost", rng=1))
    text = claim(compared, "cost", system="b", other="a", target="questions")
    assert text.startswith(
        "On these questions a trial costs 2 with b and 1 with a; b costs 2.00 times as"
    )
    with pytest.raises(ValueError, match="system and other must name the two systems whose costs"):
        claim(compared, "cost", system="b")
    few = data.sel(question=range(4))
    compared = bk.compare(bk.evaluate(few, "pass@1 cost", difficulty="beta", rng=1))
    with pytest.raises(ValueError, match=r"cost of both systems is known.*target='questions'\."):
        claim(compared, "cost")
    assert claim(compared, "cost", target="questions").startswith("On these questions a trial")


def test_two_systems_of_a_leaderboard_have_a_claim_and_equal_ones_share_the_lead() -> None:
    runs = [[1, 0, 1]] * 5 + [[0, 0, 1]] * 5
    board = bk.leaderboard(bk.evaluate({"a": runs, "b": runs}, "pass@1", rng=1))
    assert "a, b have the best posterior mean" in claim(board)


def test_the_order_of_a_pair_is_declared_in_either_direction() -> None:
    runs = {"good": [[1, 1, 1, 1]] * 30, "poor": [[0, 0, 1, 0]] * 30}
    compared = bk.compare(bk.evaluate(runs, "pass@1", rng=1))
    rows = bk.table(compared, "comparison", of="poor", against="good")
    assert set(rows["verdict"]) == {"behind"}
    assert (rows["declared"] == 1.0).all()
