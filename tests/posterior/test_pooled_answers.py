"""Votes under partial pooling: enumerated elections, draws of the prior, and simulation."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import dirichlet_multinomial, multinomial

import bayesatk as bk
from bayesatk.core.question.ballot import credit_by_right_votes, plurality_latent
from bayesatk.data.answers import Ballots, wrong_answers
from bayesatk.posterior.vote_posterior import WrongAnswers, _simulated_credit, fewer

ALPHA = np.array([0.3, 1.5, 4.0, 0.7])  # of three wrong answers, and of none


def elected(law: Any, k: int) -> list[float]:
    """Expected credit by right votes, over all numbers of votes for three answers and for none."""
    credits = []
    for right in range(k + 1):
        credit = 0.0
        for votes in product(range(k - right + 1), repeat=4):
            most = max(votes[:3])
            if sum(votes) == k - right and 0 < right >= most:
                credit += law(votes) / (1 + sum(number == right for number in votes[:3]))
        credits.append(credit)
    return credits


def test_credit_by_right_votes_is_that_of_enumerated_elections() -> None:
    k, shares = 6, ALPHA / ALPHA.sum()
    known = credit_by_right_votes(k * shares[:3, None], 0.0, k * shares[3:], k)[0]
    expected = elected(lambda votes: multinomial.pmf(votes, sum(votes), shares), k)
    assert known == pytest.approx(expected, abs=1e-12)
    odds = 0.4
    drawn = credit_by_right_votes(odds * ALPHA[:3, None], odds, odds * ALPHA[3:], k)[0]
    expected = elected(lambda votes: dirichlet_multinomial.pmf(votes, ALPHA, sum(votes)), k)
    assert drawn == pytest.approx(expected, abs=1e-12)


def test_simulated_elections_have_the_exact_credit() -> None:
    """400 draws of 16 elections: within 5 standard errors."""
    k, shares = 6, np.tile(ALPHA / ALPHA.sum(), (400, 1))
    exact = credit_by_right_votes(k * shares[:, :3].T, 0.0, k * shares[:, 3], k)[0]
    found = _simulated_credit(shares, 3, k, np.random.default_rng(2))
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (abs(found.mean(axis=0) - exact) <= 5.0 * error + 1e-12).all()


def test_likelihood_of_answers_is_dirichlet_multinomial() -> None:
    right = np.array([True, False, False])
    ballots = [Ballots(np.array([2, 3, 1]), right, 2), Ballots(np.array([0, 1, 0]), right, None)]
    wrong = WrongAnswers(
        wrong_answers(ballots, bk.priors.AnswerHyperPrior(choices=4)), bk.priors.AnswerHyperPrior()
    )
    theta = np.array([[-1.0, 0.5], [2.0, -3.0]])
    c, none = wrong.parameters(theta)
    for row, (each, silent) in enumerate(zip(c, none, strict=True)):
        expected = 0.0
        for counts in wrong.counts:
            ways = gammaln(counts.sum() + 1.0) - gammaln(counts + 1.0).sum()
            alpha = np.array([each, each, each, silent])
            expected += dirichlet_multinomial.logpmf(counts, alpha, counts.sum()) - ways
        assert wrong.log_likelihood(theta)[row] == pytest.approx(expected)
        assert 1.0 / (1.0 + 3.0 * each + silent) == pytest.approx(
            1.0 / (1.0 + np.exp(-theta[row, 0]))
        )
        assert silent / (3.0 * each + silent) == pytest.approx(1.0 / (1.0 + np.exp(-theta[row, 1])))


def _drawn_answers(rng: np.random.Generator, total: Any, mean: Any, c: Any) -> Any:
    """Probabilities of the right and of three wrong answers to a question, for every draw."""
    p = rng.beta(np.maximum(total * mean, 1e-9), np.maximum(total * (1.0 - mean), 1e-9))
    shares = rng.standard_gamma(np.tile(c[:, None], 3)) + 1e-300
    return np.column_stack([p, shares * (1.0 - p)[:, None] / shares.sum(axis=1, keepdims=True)])


def _agrees(found: Any, values: Any, weight: Any, draws: float) -> None:
    """Assert mean, sd and both ends of an interval, within 5 standard errors of both samples."""
    mean = weight @ values
    sd = np.sqrt(weight @ (values - mean) ** 2)
    assert abs(found["mean"] - mean) < 5.0 * np.sqrt(
        weight**2 @ (values - mean) ** 2 + sd**2 / draws
    )
    assert found["sd"] == pytest.approx(sd, rel=0.05)
    for name, level in (("ci_lower", 0.025), ("ci_upper", 0.975)):
        below = values <= found[name]
        error = np.sqrt(weight**2 @ (below - level) ** 2 + level * (1.0 - level) / draws)
        assert abs(weight @ below - level) < 5.0 * error


def test_votes_are_those_of_weighted_draws_of_the_prior() -> None:
    """200,000 draws of the prior, weighted by the likelihood; of these 2000 with 300 questions."""
    rows = [["0", "0", "a"], ["0", "b", "b"], ["c", "d", "0"]]
    size, rng = 200_000, np.random.default_rng(6)
    mean, icc, answer_icc = rng.random((3, size))
    total, c = 1.0 / icc - 1.0, (1.0 / answer_icc - 1.0) / 3.0
    logs, values = np.zeros(size), np.zeros(size)
    right = np.arange(4) == 0
    for wrong in ([1, 0, 0], [2, 0, 0], [1, 1, 0]):
        shares = _drawn_answers(rng, total, mean, c)
        with np.errstate(divide="ignore", invalid="ignore"):
            counts = [3 - sum(wrong), *wrong]
            logs += sum(n * np.log(shares[:, i]) for i, n in enumerate(counts) if n)
        values += plurality_latent(shares, right, [3])[:, 0] / 3.0
    weight = np.exp(np.nan_to_num(logs, nan=-np.inf))
    weight /= weight.sum()
    prior = bk.priors.AnswerHyperPrior(choices=4)
    fit = bk.evaluate(data_of(rows), "plurality@3", difficulty="beta", answer_prior=prior, rng=1)
    found = bk.table(fit).set_index("target")
    _agrees(found.loc["questions"], values, weight, 4000.0)
    chosen, questions = rng.choice(size, 2000, p=weight), 300
    new = np.repeat(chosen, questions)
    shares = _drawn_answers(rng, total[new], mean[new], c[new])
    of_others = plurality_latent(shares, right, [3])[:, 0].reshape(-1, questions).mean(axis=1)
    even = np.full(len(chosen), 1.0 / len(chosen))
    _agrees(found.loc["population"], of_others, even, 4000.0)
    agreement = weight @ ((1.0 + c) / (1.0 + 3.0 * c))
    exact = fit["closed_form"]["wrong_agreement"].sel(statistic="mean").item()
    assert exact == pytest.approx(agreement, abs=0.01)


def test_votes_without_pooling_are_those_of_draws_of_the_flat_dirichlet() -> None:
    """Of two questions with four choices, counted by hand: 100,000 draws of each."""
    rng, right = np.random.default_rng(7), np.arange(4) == 0
    counts = np.array([[2, 1, 0, 0], [1, 3, 1, 0]])
    draws = [
        plurality_latent(rng.dirichlet(1.0 + row, 100_000), right, [4])[:, 0] for row in counts
    ]
    values = np.mean(draws, axis=0)
    fit = bk.evaluate(
        data_of([["0", "0", "a"], ["0", "a", "a", "a", "b"]]),
        "plurality@4",
        pooling="none",
        answer_prior=bk.priors.AnswerPrior(choices=4),
        rng=1,
    )
    found = bk.table(fit).set_index("target").loc["questions"]
    _agrees(found, values, np.full(len(values), 1e-5), 4000.0)


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
        gap = [means(result.sel(system=[name])) for name in ("a", "b")]
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


@pytest.mark.parametrize("icc", [(0.0, 1.0), (1.0, -1.0)])
def test_a_prior_of_the_icc_is_proper(icc) -> None:
    with pytest.raises(ValueError, match="icc"):
        bk.priors.AnswerHyperPrior(icc)


def test_several_right_answers_need_to_be_one() -> None:
    rows = {"a": answers(10, 5, 3, 1), "b": [["0"] * 5] * 10}
    data = bk.tally(None, answers=rows, reference=[["0", "1"]] * 10)
    with pytest.raises(ValueError, match="pooling must be 'none' for votes where a question"):
        bk.evaluate(data, "plurality@4")
    bk.evaluate(data, "plurality@4", pooling="none", rng=1)
    rules = bk.AnswerRules(merge_correct=True)
    data = bk.tally(None, answers=rows, reference=[["0", "1"]] * 10, answer_rules=rules)
    found = means(bk.evaluate(data, "plurality@4", rng=1).sel(system=["b"]))
    assert found["plurality@4", "questions"][0] > 0.95


def test_choices_are_how_many_answers_there_are() -> None:
    data, prior = data_of(answers(10, 5, 3, 1)), bk.priors.AnswerHyperPrior(choices=3)
    with pytest.raises(ValueError, match="choices must be more than the different wrong answers"):
        bk.evaluate(data, "plurality@4", answer_prior=prior)


@pytest.mark.slow
def test_sampled_votes_of_very_many_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="k <= 30"):
        bk.sample(data_of(answers(4, 3, 2, 1)), "plurality@31", progress=False)
