"""Votes under partial pooling, against enumerated urns, right and wrong alone, and simulation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import bayesatk as bk
from bayesatk.core.pooling.agreement import (
    draw_shares,
    log_ewens,
    simulated_tops,
)
from bayesatk.core.question.ballot import Side, credit_table
from bayesatk.posterior.pooled_answers import fewer

Urn = dict[tuple[tuple[int, ...], tuple[int, ...]], float]


def urn(counts: Sequence[int], theta: float, votes: int) -> Urn:
    """Probability of new votes for the answers seen and for others, vote by vote."""
    states: Urn = {((0,) * len(counts), ()): 1.0}
    for _ in range(votes):
        following: Urn = {}
        for (seen, new), chance in states.items():
            total = sum(counts) + sum(seen) + sum(new) + theta
            for j in range(len(counts)):
                key = ((*seen[:j], seen[j] + 1, *seen[j + 1 :]), new)
                share = (counts[j] + seen[j]) / total
                following[key] = following.get(key, 0.0) + chance * share
            for j in range(len(new)):
                key = (seen, (*new[:j], new[j] + 1, *new[j + 1 :]))
                following[key] = following.get(key, 0.0) + chance * new[j] / total
            key = (seen, (*new, 1))
            following[key] = following.get(key, 0.0) + chance * theta / total
        states = following
    return states


def enumerated(right: Urn, wrong: Urn) -> float:
    """Expected credit of elections between two sides."""
    credit = 0.0
    for (seen, new), chance in right.items():
        for (others, more), odds in wrong.items():
            most = max((*seen, *new, *others, *more), default=0)
            for_right = sum(votes == most for votes in (*seen, *new))
            against = sum(votes == most for votes in (*others, *more))
            if most:
                credit += chance * odds * for_right / (for_right + against)
    return credit


@pytest.mark.parametrize("counts", [[], [1], [3, 1], [2, 2, 1]])
@pytest.mark.parametrize("theta", [0.3, 2.5])
def test_credit_of_one_right_answer_is_that_of_enumerated_urns(counts, theta) -> None:
    k = 6
    wrong = Side.ewens(np.array(counts, np.int64), np.array([theta, 2.0 * theta]), k)
    table = credit_table(Side.alone(k), wrong, k)[0]
    for right in range(k + 1):
        alone: Urn = {((right,), ()): 1.0}
        for votes in range(k + 1 - right):
            expected = enumerated(alone, urn(counts, theta, votes))
            assert table[right, votes] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("right", "wrong"), [([], [3, 1]), ([2, 1], []), ([2], [1, 1])])
def test_credit_of_several_right_answers_is_that_of_enumerated_urns(right, wrong) -> None:
    k, thetas = 5, (0.7, 1.5)
    sides = [
        Side.ewens(np.array(counts, np.int64), np.array([theta]), k)
        for counts, theta in zip((right, wrong), thetas, strict=True)
    ]
    table = credit_table(*sides, k)[0]
    for r in range(k + 1):
        for w in range(k + 1 - r):
            expected = enumerated(urn(right, thetas[0], r), urn(wrong, thetas[1], w))
            assert table[r, w] == pytest.approx(expected, abs=1e-12)


def test_likelihood_of_answers_is_that_of_the_urn() -> None:
    # The second trial differs, the third repeats one of two: theta/(1+theta) * 1/(2+theta).
    theta = np.array([0.2, 1.0, 30.0])
    found = np.exp(log_ewens(np.log(theta), [np.array([2, 1]), np.array([1])]))
    assert found == pytest.approx(theta / (1.0 + theta) / (2.0 + theta))


def test_drawn_shares_have_the_credit_of_the_law() -> None:
    """4000 draws of shares: the mean credit lies within 5 standard errors."""
    rng, counts, k = np.random.default_rng(5), np.array([3, 1], np.int64), 6
    theta = np.full(4000, 1.5)
    shares, dust = draw_shares(counts, theta, rng)
    assert shares.sum(axis=1) + dust == pytest.approx(np.ones(len(theta)))
    exact = credit_table(Side.alone(k), Side.ewens(counts, theta[:1], k), k)[0]
    drawn = credit_table(Side.alone(k), Side.known(shares, dust, k), k)
    most, tied = simulated_tops(shares, dust, k, 2, rng)
    for right in (1, 2, 3):
        votes = k - right
        error = drawn[:, right, votes].std() / np.sqrt(len(theta))
        assert abs(drawn[:, right, votes].mean() - exact[right, votes]) < 5.0 * error
        best = most[..., votes]
        credit = np.where(right == best, 1.0 / (1.0 + tied[..., votes]), right > best)
        error = credit.mean(axis=1).std() / np.sqrt(len(theta))
        assert abs(credit.mean() - exact[right, votes]) < 5.0 * error


def test_fewer_of_many_trials_are_hypergeometric() -> None:
    assert fewer(5, 3)[2] == pytest.approx([1 / 10, 6 / 10, 3 / 10, 0.0])
    assert fewer(6, 6) == pytest.approx(np.eye(7))


def answers(questions: int, trials: int, others: int, seed: int) -> list[list[str]]:
    """Answers to questions of which "0" is right, the wrong ones with sizes 1, 1/2, 1/3 ..."""
    rng = np.random.default_rng(seed)
    sizes = 1.0 / np.arange(1, others + 1)
    rows = []
    for p in rng.beta(0.8, 0.8, questions):
        shares = np.concatenate([[p], (1.0 - p) * sizes / sizes.sum()])
        rows.append(rng.choice(others + 1, trials, p=shares).astype(str).tolist())
    return rows


def means(fit: Any) -> dict[tuple[str, str], tuple[float, float]]:
    table = bk.table(fit)
    return {(row.metric, row.target): (row.mean, row.sd) for row in table.itertuples()}


def data_of(rows: Any) -> bk.Outcomes:
    return bk.tally(None, answers=rows, reference=["0"] * len(rows))


def test_one_vote_is_the_mean_and_wrong_answers_that_agree_make_a_majority() -> None:
    fit = bk.evaluate(data_of(answers(30, 6, 1, 3)), ["plurality@1,3", "pass@1", "maj@3"], rng=1)
    found = means(fit)
    for target in ("questions", "population"):
        for vote, mark in (("plurality@1", "pass@1"), ("plurality@3", "maj@3")):
            # Wrong answers always agreed; that they might not leaves the vote a little better.
            gap = found[vote, target][0] - found[mark, target][0]
            assert abs(gap) < (1e-3 if vote == "plurality@1" else 0.15 * found[mark, target][1])
            assert found[vote, target][1] == pytest.approx(found[mark, target][1], rel=0.1)


@pytest.mark.parametrize("options", [{}, {"population": "bootstrap"}, {"group": "ab" * 15}])
def test_draws_have_the_exact_means(options) -> None:
    """4000 draws: means within 5 standard errors."""
    if "group" in options:
        options = {"group": list(options["group"])}
    rows = answers(30, 5, 6, 4)
    rows[0][0] = rows[3][2] = ""  # abstentions
    fit = bk.evaluate(data_of(rows), "plurality@1,4", rng=1, difficulty="beta", **options)
    exact = fit["closed_form"]["plurality_at_k"]
    draws = fit["posterior"]["plurality_at_k"]
    gap = abs(draws.mean(("chain", "draw")) - exact.sel(statistic="mean"))
    assert bool((gap < 5.0 * exact.sel(statistic="sd") / np.sqrt(4000.0)).all())
    assert float(fit["posterior"]["wrong_agreement"].mean()) == pytest.approx(
        float(fit["closed_form"]["wrong_agreement"].sel(statistic="mean").squeeze()), abs=0.03
    )


@pytest.mark.long
@pytest.mark.slow
def test_everything_reads_votes_of_a_result(tmp_path) -> None:
    rows = {"a": answers(12, 5, 4, 1), "b": answers(12, 5, 4, 2)}
    data = bk.tally(None, answers=rows, reference=["0"] * 12)
    fit = bk.evaluate(data, ["plurality@3", "pass@1"], rng=1, draws=250, difficulty="beta")
    alone = bk.evaluate(data, "plurality@3", rng=1, draws=250, difficulty="beta")
    path = tmp_path / "fit.nc"
    bk.save(fit, path)
    again = bk.load_result(path)
    assert bk.table(again).equals(bk.table(fit))
    for result in (again, alone):
        compared = bk.compare(result)
        rows_of = bk.table(compared, "comparison").query("metric == 'plurality@3'")
        gap = [means(bk.select_systems(result, [name])) for name in ("a", "b")]
        for row in rows_of.itertuples():
            expected = [own["plurality@3", row.target][0] for own in gap]
            sign = 1.0 if row.system == "a" else -1.0
            assert row.mean == pytest.approx(sign * (expected[0] - expected[1]), abs=0.02)
        assert "plurality@3" in bk.claim(result, system="a", metric="plurality@3")
        bk.report(result, tmp_path / "report.html")
        bk.checks.criticise(result, rng=1)
    with pytest.raises(ValueError, match="metric must be one metric of marks or scores"):
        bk.plan(alone, "plurality@3", width=0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answer_prior": bk.priors.AnswerPrior()}, "answer_prior must be an AnswerHyperPrior"),
        (
            {"answer_prior": bk.priors.AnswerHyperPrior(), "pooling": "none"},
            "must be an AnswerPrior",
        ),
        ({"metrics": "plurality@201"}, "k <= 200"),
        ({"pooling": "complete"}, "must be left out with"),
        ({"pooling": "none", "group": list("ab") * 2}, "must be 'partial' for votes in groups"),
    ],
)
def test_what_votes_do_not_take_is_named_with_a_remedy(options, message) -> None:
    study: dict[str, Any] = {"metrics": "plurality@3"} | options
    with pytest.raises(ValueError, match=message):
        bk.evaluate(data_of(answers(4, 3, 2, 1)), **study)


@pytest.mark.parametrize("agreement", [(0.0, 1.0), (1.0, -1.0)])
def test_a_prior_of_agreement_is_proper(agreement) -> None:
    with pytest.raises(ValueError, match="agreement"):
        bk.priors.AnswerHyperPrior(agreement)


def test_several_right_answers_of_one_system_count_for_all() -> None:
    rows = {"a": answers(10, 5, 3, 1), "b": [["0"] * 5] * 10}
    data = bk.tally(None, answers=rows, reference=[["0", "1"]] * 10)
    fit = bk.evaluate(data, "plurality@4", rng=1, difficulty="beta")
    agreement = fit["closed_form"]["right_agreement"].sel(statistic="mean")
    assert agreement.sizes == {"system": 2}
    assert float(agreement.sel(system="a")) < float(agreement.sel(system="b"))


@pytest.mark.long
@pytest.mark.slow
def test_pymc_agrees_on_votes() -> None:
    rows = answers(15, 5, 5, 7)
    rows[1][0] = rows[4][2] = ""
    data = data_of(rows)
    options: dict[str, Any] = {"difficulty": "beta"}
    fit = bk.evaluate(data, "plurality@1,4", rng=1, **options)
    sampled = bk.sample(
        data, "plurality@1,4", rng=2, draws=500, tune=500, progress=False, **options
    )
    checked = bk.verify(fit, sampled)
    assert checked.verdict == "agree", checked.table
    assert {"wrong_agreement", "plurality_votes_at_k"} <= set(checked.table["variable"])


@pytest.mark.slow
def test_sampled_votes_of_very_many_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="k <= 30"):
        bk.sample(data_of(answers(4, 3, 2, 1)), "plurality@31", progress=False)
