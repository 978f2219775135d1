"""The plurality vote against enumerated elections, binomials and simulated votes."""

from fractions import Fraction
from math import comb, factorial, prod

import numpy as np
import pytest
from scipy import stats

import bayesatk as bk
from bayesatk.published import plurality_at_k

LAWS = ("finite", "latent", "posterior")


# The witness: every division of k votes over the answers, weighed in exact rationals.


def rising(a, v):
    return prod((a + j for j in range(v)), start=Fraction(1))


def elections(k, ways):
    """Every division of k votes with a weight other than zero."""
    first, *other_ways = ways
    if not other_ways:
        if first[k]:
            yield (k,), first[k]
        return
    for v, weight in enumerate(first[: k + 1]):
        if weight:
            for votes, weight_of_others in elections(k - v, other_ways):
                yield (v, *votes), weight * weight_of_others


def ballot_credit(votes, correct):
    top = max(votes)
    tied = [right for v, right in zip(votes, correct, strict=True) if v == top]
    return Fraction(sum(tied), len(tied)) if top else Fraction(0)


def enumerated(counts, correct, k, law="finite", alpha=1, unanswered=None):
    """Expected credit; the latent law takes integer weights, from which it makes probabilities."""
    slots = [*counts] if unanswered is None else [*counts, unanswered]
    size = sum(slots)
    if law == "finite":
        ways = [[comb(n, v) for v in range(k + 1)] for n in slots]
        total = comb(size, k)
    elif law == "latent":
        ways = [[Fraction(n, size) ** v / factorial(v) for v in range(k + 1)] for n in slots]
        total = Fraction(1, factorial(k))
    else:
        ways = [[rising(n + alpha, v) / factorial(v) for v in range(k + 1)] for n in slots]
        total = rising(size + len(slots) * alpha, k) / factorial(k)
    credit = mass = Fraction(0)
    for votes, weight in elections(k, ways):
        credit += weight * ballot_credit(votes[: len(counts)], correct)
        mass += weight
    assert mass == total
    return float(credit / total)


def ask(law, counts, correct, k, unanswered=None, **others):
    """The library's value; for the latent law the counts are divided by their sum."""
    if law == "latent":
        size = sum(counts) + (unanswered or 0)
        counts = np.array(counts) / size
        unanswered = None if unanswered is None else unanswered / size
    return plurality_at_k(counts, correct, k, law, unanswered=unanswered, **others)


every_law = pytest.mark.parametrize("law", LAWS)

# Sixty questions: 1-5 answers x (some, none, all, one correct) x (unanswered None, 0, positive).
SMALL = [
    (answers, kind, unanswered)
    for answers in range(1, 6)
    for kind in ("some", "none", "all", "one")
    for unanswered in (None, 0, 3)
]


@every_law
@pytest.mark.parametrize("case", range(len(SMALL)))
def test_small_questions_are_the_enumerated_elections(law, case):
    """Hypergeometric, multinomial and Dirichlet-multinomial votes."""
    answers, kind, unanswered = SMALL[case]
    rng = np.random.default_rng([18, case])
    counts = rng.integers(0, 6, answers)
    counts[rng.integers(answers)] += 1
    correct = {
        "some": rng.random(answers) < 0.5,
        "none": np.zeros(answers, bool),
        "all": np.ones(answers, bool),
        "one": np.arange(answers) == rng.integers(answers),
    }[kind]
    if law == "latent":  # a total of 64 makes every probability an exact double
        counts[rng.integers(answers)] += 64 - sum(counts) - (unanswered or 0)
    alpha = (Fraction(1), Fraction(1, 2), Fraction(3), Fraction(1, 64))[case % 4]
    most = min(7, sum(counts) + (unanswered or 0)) if law == "finite" else 7
    counts, correct, ks = counts.tolist(), correct.tolist(), [*range(most, 0, -1), most]
    expected = [enumerated(counts, correct, k, law, alpha, unanswered) for k in ks]
    credit = ask(law, counts, correct, ks, unanswered, alpha=float(alpha))
    np.testing.assert_allclose(credit, expected, rtol=0, atol=1e-12)


@every_law
def test_questions_of_different_sizes_are_judged_one_by_one(law):
    """Rows filled up with nothing; equal counts with others correct, or unanswered."""
    rows = [[3, 1, 1], [4], [1, 0, 2, 2], [2, 5], [2, 5], [2, 5]]
    rights = [
        [True, False, False],
        [False],
        [False, True, True, False],
        [True, True],
        [False, True],
        [False, True],
    ]
    unanswered = [1, 2, 0, 3, 3, 0]
    sizes = [sum(row) + u for row, u in zip(rows, unanswered, strict=True)]
    scale = np.array(sizes if law == "latent" else [1] * len(rows))
    for pad in (-1, np.nan):
        counts, correct = np.full((len(rows), 4), float(pad)), np.ones((len(rows), 4), bool)
        for i, row in enumerate(rows):
            counts[i, : len(row)] = np.array(row) / scale[i]
            correct[i, : len(row)] = rights[i]
        credit = plurality_at_k(counts, correct, [1, 3, 5], law, unanswered=unanswered / scale)
        expected = [
            [enumerated(row, right, k, law, 1, u) for k in (1, 3, 5)]
            for row, right, u in zip(rows, rights, unanswered, strict=True)
        ]
        np.testing.assert_allclose(credit, expected, rtol=0, atol=1e-12)


def test_fewer_votes_of_three_marked_questions():
    """Three of CCCII: ten draws; CCC and six CCI win, three CII tie three ways: (7 + 1)/10."""
    marked = [[3, 1, 1, -1, -1], [1, 1, 1, 1, 1], [3, 1, 1, -1, -1]]  # ICCCI, IIIIC, IICCC
    credit = plurality_at_k(marked, [[True, False, False, False, False]] * 3, [1, 2, 3, 4])
    expected = [[3 / 5, 3 / 5, 4 / 5, 1], [1 / 5] * 4, [3 / 5, 3 / 5, 4 / 5, 1]]
    np.testing.assert_allclose(credit, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("law", ["latent", "posterior"])
def test_questions_with_nothing_seen_keep_their_law(law):
    """Under the posterior law the prior alone speaks; under the latent law nobody ever answers."""
    counts, correct, unanswered = [0, 0, 0], [True, False, True], 3
    expected = [enumerated(counts, correct, k, law, 1, unanswered) for k in range(1, 6)]
    credit = ask(law, counts, correct, [1, 2, 3, 4, 5], unanswered)
    np.testing.assert_allclose(credit, expected, rtol=0, atol=1e-12)


@every_law
def test_shapes_follow_the_questions_and_the_ks(law):
    counts, correct = np.array([[2.0, 2.0], [1.0, 3.0], [4.0, 0.0]]), np.eye(3, 2, dtype=bool)
    counts = counts / 4 if law == "latent" else counts
    assert isinstance(plurality_at_k(counts[0], correct[0], 2, law), float)
    assert plurality_at_k(counts[0], correct[0], [2], law).shape == (1,)
    assert plurality_at_k(counts[:1], correct[:1], 2, law).shape == (1,)
    assert plurality_at_k(counts, correct, [1, 2, 3, 4], law).shape == (3, 4)


# Simulated votes.

VOTES, CHUNK = 10**6, 10**5
SHARES = 0.95 ** np.arange(60)
CROWD = np.random.default_rng(60).multinomial(200 - 60, SHARES / SHARES.sum()) + 1
CROWD_CORRECT = np.isin(np.arange(60), [0, 3, 8, 41])
CROWD_UNANSWERED = 24


def simulated(law, k, rng):
    """Mean credit of simulated elections and its standard error."""
    slots = np.append(CROWD, CROWD_UNANSWERED)
    credit, square = 0.0, 0.0
    for _ in range(VOTES // CHUNK):
        if law == "finite":
            votes = rng.multivariate_hypergeometric(slots, k, CHUNK, method="count")
        elif law == "latent":
            votes = rng.multinomial(k, slots / slots.sum(), CHUNK)
        else:
            votes = rng.multinomial(k, rng.dirichlet(slots + 1.0, CHUNK))
        votes = votes[:, :-1]
        top = votes.max(1, keepdims=True)
        tied = (votes == top) & (top > 0)
        won = tied[:, CROWD_CORRECT].sum(1) / np.maximum(tied.sum(1), 1)
        credit += won.sum()
        square += (won**2).sum()
    mean = credit / VOTES
    return mean, np.sqrt((square / VOTES - mean**2) / VOTES)


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 5, 16, 64])
@every_law
def test_many_answers_agree_with_a_million_simulated_votes(law, k):
    rng = np.random.default_rng([LAWS.index(law), k])
    mean, error = simulated(law, k, rng)
    assert 0 < error < 5e-4
    value = ask(law, CROWD.tolist(), CROWD_CORRECT, k, CROWD_UNANSWERED)
    assert abs(value - mean) < 5 * error


def test_votes_of_an_evaluation_are_those_of_draws_of_its_posterior():
    """Of what was given, another wrong answer, a right one that nobody gave yet, and of none."""
    answers = [["a", "a", "b"], ["c", "c", None], [None, "d", "e"]]
    data = bk.tally(None, answers=answers, reference=["a", "c", "x"])
    fit = bk.evaluate(data, "plurality@1,3", pooling="none", draws=5000, rng=1)
    rng, size, credit = np.random.default_rng(2), 10_000, []
    for concentration, right in (
        ([3, 2, 1, 1], [True, False, False]),
        ([3, 1, 2], [True, False]),
        ([2, 2, 1, 1, 2], [False, False, True, False]),
    ):
        p, correct = rng.dirichlet(concentration, size), np.tile(right, (size, 1))
        credit.append(plurality_at_k(p[:, :-1], correct, [1, 3], "latent", unanswered=p[:, -1]))
    weight = rng.dirichlet(np.ones(3), size)  # of the questions, for questions like these
    rows = bk.table(fit).set_index(["metric", "target"])
    for target, shares in (("questions", np.full((size, 3), 1 / 3)), ("population", weight)):
        for k, values in zip((1, 3), np.einsum("qnk,nq->kn", credit, shares), strict=True):
            row = rows.loc[f"plurality@{k}", target]
            assert row["mean"] == pytest.approx(values.mean(), abs=5 * values.std() / np.sqrt(size))
            assert row["sd"] == pytest.approx(values.std(), rel=0.03)
            ends = np.quantile(values, [0.025, 0.975])
            np.testing.assert_allclose(
                [row["ci_lower"], row["ci_upper"]], ends, atol=0.15 * values.std()
            )


# Numerical stress.


@every_law
@pytest.mark.parametrize(
    ("counts", "k"),
    [([10, 3000, 2000], 1), ([10, 3000, 2000], 80), ([999_000, 900, 100], 24),
     ([400_000, 600_000], 300), ([700, 1], 300)],
)  # fmt: skip
def test_thousands_of_trials_are_counted_exactly(law, counts, k):
    correct = [False, True, False][-len(counts) :]
    expected = enumerated(counts, correct, k, law)
    assert ask(law, counts, correct, k) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("k", [299, 300])
def test_votes_far_beyond_the_counts_are_the_enumerated_elections(k):
    counts, correct = [2, 1, 0], [False, True, True]
    expected = enumerated(counts, correct, k, "posterior")
    assert plurality_at_k(counts, correct, k, "posterior") == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("k", [300, 501])
@pytest.mark.parametrize(
    ("a", "b", "alpha"), [(2, 1, 1.0), (0, 0, 0.5), (0, 9, 0.5), (700, 650, 3)]
)
def test_two_answers_far_beyond_the_counts_are_a_beta_binomial(k, a, b, alpha):
    law = stats.betabinom(k, a + alpha, b + alpha)
    expected = law.sf(k // 2) + (law.pmf(k // 2) / 2 if k % 2 == 0 else 0)
    credit = plurality_at_k([a, b], [True, False], k, "posterior", alpha)
    assert credit == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("k", [300, 501])
@pytest.mark.parametrize("p", [0.5, 0.47, 0.6, 0.25, 1e-9])
def test_two_known_probabilities_and_many_votes_are_a_binomial(k, p):
    law = stats.binom(k, p)
    expected = law.sf(k // 2) + (law.pmf(k // 2) / 2 if k % 2 == 0 else 0)
    credit = plurality_at_k([p, 1 - p], [True, False], k, "latent")
    assert credit == pytest.approx(expected, rel=1e-9, abs=1e-250)


@pytest.mark.parametrize("k", [1, 2, 200])
@every_law
def test_two_hundred_equal_answers_win_alike(law, k):
    credit = ask(law, [1] * 200, np.arange(200) % 29 == 0, k)
    assert credit == pytest.approx(7 / 200, rel=1e-11)


@pytest.mark.parametrize("k", [1, 2, 40])
def test_answers_of_probability_zero_do_not_vote(k):
    with_zeros = plurality_at_k([0, 0.5, 0.25, 0, 0.25], [1, 1, 0, 1, 0], k, "latent")
    without = plurality_at_k([0.5, 0.25, 0.25], [True, False, False], k, "latent")
    assert with_zeros == pytest.approx(without, rel=0, abs=1e-14)


@pytest.mark.parametrize("alpha", [1e-9, 1e9])
def test_extreme_priors_keep_to_their_limits(alpha):
    # No prior weight: an answer never seen never comes. All of it: every answer is alike.
    credit = plurality_at_k(
        [3, 1, 0, 0], [False, False, True, False], [1, 5, 40], "posterior", alpha
    )
    np.testing.assert_allclose(credit, 0 if alpha < 1 else 0.25, rtol=0, atol=1e-6)
    favourite = plurality_at_k([3, 1, 0, 0], [True, False, False, False], 1, "posterior", alpha)
    assert favourite == pytest.approx((3 + alpha) / (4 + 4 * alpha), rel=1e-12)


# Errors.

TWO = ([2, 1], [True, False])
WHOLE, SHAPE = "answer_counts must be whole", "correct must have the shape"
BOOLEAN, PROBABILITY = "correct must be true or false", "answer_counts must be probabilities"


@pytest.mark.parametrize(
    ("args", "named"),
    [
        *(((*TWO, k), r"\bk must") for k in (0, [1, 0], [])),
        ((*TWO, 4), r"k=4 with 3 trials"),
        (([[2, 2], [2, 1]], [[True, False]] * 2, [1, 4]), r"k=4 with 3 trials of question 1"),
        *(((counts, TWO[1], 1, law), WHOLE)
          for counts in ([2, -2], [2, 1.5]) for law in ("finite", "posterior")),
        *((([2, end], TWO[1], 1), "answer_counts must be finite") for end in (np.inf, -np.inf)),
        *(((values, TWO[1], 1, "latent"), PROBABILITY)
          for values in ([0.5, 0.4], [0.5, 0.6], [1.5, -0.5])),
        *(((counts, np.ones(np.shape(counts), bool), 1), "answer_counts must be")
          for counts in ([], np.zeros((0, 2)), np.ones((1, 1, 2)), 2)),
        ((["x", "y"], TWO[1], 1), "answer_counts must be"),
        (([-1, np.nan], TWO[1], 1, "posterior"), "answer_counts must"),
        *(((counts, correct, 1), SHAPE)
          for counts, correct in (([2, 1], [True, False, False]), ([[2, 1], [1, 2]], TWO[1]))),
        *((([2, 1], correct, 1), BOOLEAN) for correct in ([2, 0], [1, np.nan], ["yes", "no"])),
        ((*TWO, 1, "beta"), "law must be"),
        *(((*TWO, 1, "posterior", alpha), "alpha must be finite and > 0") for alpha in (0, np.inf)),
    ],
)  # fmt: skip
def test_impossible_arguments_are_named(args, named):
    with pytest.raises(ValueError, match=named):
        plurality_at_k(*args)


@pytest.mark.parametrize(
    ("law", "unanswered", "named"),
    [
        *((law, number, "unanswered must be")
          for law in ("finite", "posterior") for number in (-1, 1.5, np.nan)),
        ("finite", [1, 2], "unanswered must be one number or one for each"),
        *(("latent", share, "must be probabilities") for share in (-0.2, 0.1, np.nan)),
    ],
)  # fmt: skip
def test_impossible_numbers_of_unanswered_trials_are_named(law, unanswered, named):
    counts = [0.7, 0.5] if law == "latent" else [2, 1]
    with pytest.raises(ValueError, match=named):
        plurality_at_k(counts, [True, False], 1, law, unanswered=unanswered)


def test_unanswered_trials_extend_the_finite_law():
    assert plurality_at_k(*TWO, 4, unanswered=1) == pytest.approx(1, rel=1e-12)
    with pytest.raises(ValueError, match=r"k=5 with 4 trials"):
        plurality_at_k(*TWO, 5, unanswered=1)


@pytest.mark.parametrize("k", [1.5, "2", None])
def test_a_k_that_is_no_integer_is_refused(k):
    with pytest.raises(TypeError, match="k must be an integer"):
        plurality_at_k(*TWO, k)
