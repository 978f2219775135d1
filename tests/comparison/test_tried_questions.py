"""Systems that tried different questions: no order rests on the choice of the questions."""

from itertools import combinations

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.core.question.permutation import correlation_test


def test_p_values_are_those_of_all_permutations():
    """Against the enumeration of every choice of 4 of 10 questions, by the correlation of each."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        rates, chosen = rng.random(10), np.zeros(10)
        chosen[:4] = 1.0
        observed = abs(np.corrcoef(chosen, rates)[0, 1])
        others = [
            abs(np.corrcoef(np.isin(np.arange(10), subset), rates)[0, 1])
            for subset in combinations(range(10), 4)
        ]
        exact = np.mean([other >= observed - 1e-12 for other in others])
        assert correlation_test(chosen, rates)[1] == pytest.approx(exact, abs=0.05)


def runs(kept, skill=0.0, seed=4):
    """Three systems on 60 questions, C as good as A but for `skill`, and on `kept` alone."""
    rng = np.random.default_rng(seed)
    logit = np.sort(1.5 * rng.standard_normal(60))[::-1]
    p = 1 / (1 + np.exp(-(logit + np.array([[0.0], [1.0], [skill]]))))
    marks = (rng.random((3, 60, 4)) < p[..., None]).astype(float)
    marks[2, ~np.isin(np.arange(60), kept)] = np.nan
    return bk.tally(dict(zip("ABC", marks, strict=True)), missing="ignore")


EASIEST = np.arange(20)
REMEDY = "--missing ignore --shared"


def test_of_the_easiest_questions_no_order_is_declared():
    """C is A on the easiest third: +0.3 of means, and nothing in that is skill."""
    data = runs(EASIEST)
    fit = bk.evaluate(data, "pass@1", rng=1)
    board = bk.leaderboard(bk.compare(fit))
    rows = bk.table(board, "comparison")
    with_c = rows[(rows["system"] == "C") | (rows["other"] == "C")]
    of_a = rows[(rows["system"] == "C") & (rows["other"] == "A")]
    assert (of_a["mean"] > 0.2).all()  # of the questions alone
    assert set(with_c["verdict"]) == {"not separated"}
    assert not with_c["declared"].any()
    assert set(rows.loc[~rows.index.isin(with_c.index), "verdict"]) == {"ahead"}  # B and A
    assert board["leaderboard"]["separated"].sel(system="C").sum() == 0
    assert board["leaderboard"]["separated"].sel(other="C").sum() == 0
    for text in (bk.claim(board), bk.claim(board, system="A", other="C"), str(bk.table(board))):
        assert all(words in " ".join(text.split()) for words in ("C 20", REMEDY)), text
    assert "on 20 to 60 questions" in bk.claim(board)
    assert "questions of other difficulty" in bk.claim(board, system="C", other="A")
    assert "tried different questions" not in bk.claim(board, system="A", other="B")
    shared = bk.compare(bk.evaluate(data.shared(), "pass@1", rng=1))
    assert "tried different questions" not in bk.claim(shared)
    found = shared["comparison"]["pass_at_k"].sel(system="C", other="A", contrast="mean")
    assert (abs(found) < 0.1).all()


def test_of_random_questions_orders_are_declared_with_a_note():
    kept = np.random.default_rng(4).permutation(60)[:45]
    compared = bk.compare(bk.evaluate(runs(kept, skill=2.0), "pass@1", rng=1))
    text = bk.claim(compared, system="C", other="A")
    assert all(words in text for words in ("C is ahead of A", "C 45", REMEDY))
    assert "no order is declared" not in text
