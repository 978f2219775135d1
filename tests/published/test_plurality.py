"""The plurality vote against enumerated elections, hand counts, its laws and simulated votes."""

from fractions import Fraction
from itertools import combinations
from math import comb, factorial, prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate, stats

from bayesatk.published import maj_at_k, plurality_at_k

LAWS = ("finite", "latent", "posterior")


# The witness: every division of k votes over the answers, weighed in exact rationals.


def rising(a, v):
    return prod((a + j for j in range(v)), start=Fraction(1))


def elections(k, ways):
    """Every division of k votes with a weight other than zero."""
    first, *others = ways
    if not others:
        if first[k]:
            yield (k,), first[k]
        return
    for v, weight in enumerate(first[: k + 1]):
        if weight:
            for votes, weight_of_others in elections(k - v, others):
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


# Sixty questions: 1-5 answers x (some, none, all, one correct) x (unanswered None, 0, positive).
SMALL = [
    (answers, kind, silent)
    for answers in range(1, 6)
    for kind in ("some", "none", "all", "one")
    for silent in (None, "zero", "positive")
]


def small_question(case):
    answers, kind, silent = SMALL[case]
    rng = np.random.default_rng([18, case])
    counts = rng.integers(0, 6, answers)
    counts[rng.integers(answers)] += 1
    correct = {
        "some": rng.random(answers) < 0.5,
        "none": np.zeros(answers, bool),
        "all": np.ones(answers, bool),
        "one": np.arange(answers) == rng.integers(answers),
    }[kind]
    unanswered = {None: None, "zero": 0, "positive": int(rng.integers(1, 5))}[silent]
    return counts.tolist(), correct.tolist(), unanswered


@pytest.mark.parametrize("case", range(len(SMALL)))
def test_finite_law_is_the_enumerated_hypergeometric(case):
    counts, correct, unanswered = small_question(case)
    ks = range(1, min(7, sum(counts) + (unanswered or 0)) + 1)
    expected = [enumerated(counts, correct, k, "finite", unanswered=unanswered) for k in ks]
    found = plurality_at_k(counts, correct, list(ks), unanswered=unanswered)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", range(len(SMALL)))
def test_latent_law_is_the_enumerated_multinomial(case):
    counts, correct, unanswered = small_question(case)
    # A total of 64 makes every probability an exact double.
    counts[0] += 64 - sum(counts) - (unanswered or 0)
    np.random.default_rng(case).shuffle(counts)
    expected = [
        enumerated(counts, correct, k, "latent", unanswered=unanswered) for k in range(1, 8)
    ]
    found = ask("latent", counts, correct, list(range(1, 8)), unanswered)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", range(len(SMALL)))
def test_posterior_law_is_the_enumerated_dirichlet_multinomial(case):
    counts, correct, unanswered = small_question(case)
    alpha = (Fraction(1), Fraction(1, 2), Fraction(3), Fraction(1, 64))[case % 4]
    expected = [enumerated(counts, correct, k, "posterior", alpha, unanswered) for k in range(1, 8)]
    found = plurality_at_k(
        counts,
        correct,
        list(range(1, 8)),
        "posterior",
        float(alpha),
        unanswered=unanswered,
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("law", ["latent", "posterior"])
def test_questions_with_nothing_seen_keep_their_law(law):
    # Under the posterior law the prior alone speaks; under the latent law nobody ever answers.
    counts, correct, unanswered = [0, 0, 0], [True, False, True], 3
    expected = [enumerated(counts, correct, k, law, 1, unanswered) for k in range(1, 6)]
    found = ask(law, counts, correct, [1, 2, 3, 4, 5], unanswered)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("trials", "right"),
    [
        ("A", "A"),
        ("AB", "A"),
        ("AABBC", "A"),
        ("AABBCC", "AC"),
        ("ABCDEFG", "BDE"),
        ("AAAABBBCD", "B"),
        ("AAABBB--", "A"),
        ("AB-----", "B"),
        ("---", "A"),
        ("AABCCC-D", "ACZ"),
        ("AABBCC--", ""),
    ],
)
def test_finite_law_is_the_mean_over_all_subsets_of_labelled_trials(trials, right):
    names = sorted(set(trials + right) - {"-"})
    counts = [trials.count(name) for name in names]
    for k in range(1, len(trials) + 1):
        credits = [
            ballot_credit([drawn.count(n) for n in names], [n in right for n in names])
            for drawn in combinations(trials, k)
        ]
        found = plurality_at_k(counts, [n in right for n in names], k, unanswered=trials.count("-"))
        assert found == pytest.approx(float(sum(credits) / len(credits)), rel=0, abs=1e-12)


# Known cases.

MARKED = [[3, 1, 1, -1, -1], [1, 1, 1, 1, 1], [3, 1, 1, -1, -1]]  # ICCCI, IIIIC, IICCC
FIRST = [[True, False, False, False, False]] * 3


def test_fewer_votes_of_three_marked_questions():
    # Three of CCCII: ten draws; CCC and the six CCI win, the three CII tie three ways: (7 + 1)/10.
    expected = [[3 / 5, 3 / 5, 4 / 5, 1], [1 / 5] * 4, [3 / 5, 3 / 5, 4 / 5, 1]]
    found = plurality_at_k(MARKED, FIRST, [1, 2, 3, 4])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_two_fresh_votes_of_the_uniform_posterior_by_hand():
    # Laplace: C 2/4 after one C and one I; with nobody as a third, CC, C- and half of CI remain.
    assert plurality_at_k([1, 1], [True, False], 2, "posterior") == pytest.approx(1 / 2, rel=1e-12)
    found = plurality_at_k([1, 1], [True, False], 2, "posterior", unanswered=0)
    cc, c_and_nobody, c_and_i = 2 * 3 / 30, 2 * 2 * 1 / 30, 2 * 2 * 2 / 30
    assert found == pytest.approx(cc + c_and_nobody + c_and_i / 2, rel=1e-12)


def test_two_answers_and_odd_k_are_the_strict_majority():
    trials = 11
    marks = np.arange(trials) < np.arange(trials + 1)[:, None]
    counts = np.column_stack([marks.sum(1), (~marks).sum(1)])
    for k in (1, 3, 5, 7, 9, 11):
        found = plurality_at_k(counts, [[True, False]] * len(counts), k)
        assert found.mean() == pytest.approx(maj_at_k(marks, k), rel=1e-12)
        for row, value in zip(marks, found, strict=True):
            assert value == pytest.approx(maj_at_k(row[None], k), rel=0, abs=1e-12)


@pytest.mark.parametrize("k", [2, 4, 6, 10])
def test_two_answers_and_even_k_add_half_the_ties(k):
    trials = 10
    for right in range(trials + 1):
        marks = np.arange(trials)[None] < right
        ties = comb(right, k // 2) * comb(trials - right, k // 2) / comb(trials, k)
        found = plurality_at_k([right, trials - right], [True, False], k)
        assert found == pytest.approx(maj_at_k(marks, k) + ties / 2, rel=0, abs=1e-12)


# Laws.


@st.composite
def questions(draw, law="finite", silent=True):
    """Counts, the correct ones, the unanswered and a k that the law allows."""
    answers = draw(st.integers(1, 6))
    counts = draw(st.lists(st.integers(0, 7), min_size=answers, max_size=answers))
    correct = draw(st.lists(st.booleans(), min_size=answers, max_size=answers))
    unanswered = draw(st.none() | st.integers(0, 5)) if silent else None
    trials = sum(counts) + (unanswered or 0)
    assume(trials)
    k = draw(st.integers(1, trials if law == "finite" else 12))
    return counts, correct, k, unanswered


every_law = pytest.mark.parametrize("law", LAWS)


@every_law
@given(data=st.data())
def test_padding_does_not_change_the_value(law, data):
    counts, correct, k, unanswered = data.draw(questions(law))
    length = data.draw(st.integers(1, 3))
    pad = data.draw(st.sampled_from([-1.0, np.nan]))
    if law == "latent":
        size = sum(counts) + (unanswered or 0)
        counts = [n / size for n in counts]
        unanswered = None if unanswered is None else unanswered / size
    plain = plurality_at_k(counts, correct, k, law, unanswered=unanswered)
    padded = plurality_at_k(
        [*counts, *[pad] * length], [*correct, *[True] * length], k, law, unanswered=unanswered
    )
    assert padded == pytest.approx(plain, rel=0, abs=1e-14)


@every_law
@given(data=st.data())
def test_several_ks_at_once_equal_one_at_a_time(law, data):
    counts, correct, most, unanswered = data.draw(questions(law))
    ks = [*range(most, 0, -1), most]
    together = ask(law, counts, correct, ks, unanswered)
    apart = [ask(law, counts, correct, k, unanswered) for k in ks]
    np.testing.assert_allclose(together, apart, rtol=0, atol=1e-13)


@every_law
def test_questions_of_different_sizes_are_judged_one_by_one(law):
    rows = [[3, 1, 1], [4], [1, 0, 2, 2], [2, 5]]
    rights = [[True, False, False], [False], [False, True, True, False], [True, True]]
    unanswered = [1, 2, 0, 3]
    sizes = [sum(row) + u for row, u in zip(rows, unanswered, strict=True)]
    scale = np.array(sizes if law == "latent" else [1] * 4)
    for pad in (-1, np.nan):
        counts = np.full((4, 4), float(pad))
        correct = np.zeros((4, 4), bool)
        for i, row in enumerate(rows):
            counts[i, : len(row)] = np.array(row) / scale[i]
            correct[i, : len(row)] = rights[i]
        found = plurality_at_k(counts, correct, [1, 3, 5], law, unanswered=unanswered / scale)
        expected = [
            [enumerated(row, right, k, law, 1, u) for k in (1, 3, 5)]
            for row, right, u in zip(rows, rights, unanswered, strict=True)
        ]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_equal_rows_with_different_correct_or_unanswered_stay_apart():
    counts = [[3, 2, 1]] * 4
    correct = [[True, False, False], [False, True, False], [True, False, False], [True] * 3]
    unanswered = [0, 0, 2, 2]
    expected = [
        enumerated(c, r, 3, "finite", unanswered=u)
        for c, r, u in zip(counts, correct, unanswered, strict=True)
    ]
    found = plurality_at_k(counts, correct, 3, unanswered=unanswered)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@every_law
def test_shapes_follow_the_questions_and_the_ks(law):
    counts, correct = np.array([[2.0, 2.0], [1.0, 3.0], [4.0, 0.0]]), np.eye(3, 2, dtype=bool)
    counts = counts / 4 if law == "latent" else counts
    assert isinstance(plurality_at_k(counts[0], correct[0], 2, law), float)
    assert plurality_at_k(counts[0], correct[0], [2], law).shape == (1,)
    assert plurality_at_k(counts, correct, 2, law).shape == (3,)
    assert plurality_at_k(counts[:1], correct[:1], 2, law).shape == (1,)
    assert plurality_at_k(counts, correct, [1, 2, 3, 4], law).shape == (3, 4)


@pytest.mark.parametrize("unanswered", [None, 4])
@pytest.mark.parametrize(
    ("counts", "alpha"), [([5, 3, 1, 0], 1.0), ([4, 5], 0.5), ([0, 0, 2], 3.0), ([2, 2, 2], 1.0)]
)
def test_many_fresh_votes_find_the_largest_probability(counts, alpha, unanswered):
    # A Dirichlet is independent gammas over their sum, nobody's share included.
    first, *others = (stats.gamma(n + alpha) for n in counts)
    largest, _ = integrate.quad(
        lambda x: first.pdf(x) * prod(g.cdf(x) for g in others), 0, 60, limit=400, epsabs=1e-10
    )
    correct = np.arange(len(counts)) == 0
    found = plurality_at_k(
        counts, correct, [100, 200, 400], "posterior", alpha, unanswered=unanswered
    )
    assert found[2] == pytest.approx(largest, abs=0.02)
    # The gap falls as 1/k: doubling k twice removes most of it.
    assert 2 * found[2] - found[1] == pytest.approx(largest, abs=1e-3)


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


# Numerical stress.


@pytest.mark.parametrize(
    ("law", "k"), [*((law, k) for law in LAWS for k in (1, 2, 3, 80)), ("finite", 501)]
)
def test_thousands_of_trials_are_counted_exactly(law, k):
    counts, correct = [3000, 2000, 10], [False, True, False]
    expected = enumerated(counts, correct, k, law)
    assert ask(law, counts, correct, k) == pytest.approx(expected, rel=1e-10, abs=1e-12)


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
    found = plurality_at_k([a, b], [True, False], k, "posterior", alpha)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("k", [300, 501])
@pytest.mark.parametrize("p", [0.5, 0.47, 0.6, 0.25, 1e-9])
def test_two_known_probabilities_and_many_votes_are_a_binomial(k, p):
    law = stats.binom(k, p)
    expected = law.sf(k // 2) + (law.pmf(k // 2) / 2 if k % 2 == 0 else 0)
    found = plurality_at_k([p, 1 - p], [True, False], k, "latent")
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-250)


@pytest.mark.parametrize("k", [1, 2, 3, 20, 200])
@every_law
def test_two_hundred_equal_answers_win_alike(law, k):
    found = ask(law, [1] * 200, np.arange(200) % 29 == 0, k)
    assert found == pytest.approx(7 / 200, rel=1e-11)


@pytest.mark.parametrize("k", [1, 2, 7, 40])
def test_answers_of_probability_zero_do_not_vote(k):
    with_zeros = plurality_at_k([0, 0.5, 0.25, 0, 0.25], [1, 1, 0, 1, 0], k, "latent")
    without = plurality_at_k([0.5, 0.25, 0.25], [True, False, False], k, "latent")
    assert with_zeros == pytest.approx(without, rel=0, abs=1e-14)
    assert plurality_at_k([0, 0.5, 0.5], [True, False, False], k, "latent") == 0
    certain = plurality_at_k([0, 1, 0], [False, True, False], k, "latent")
    assert certain == pytest.approx(1, rel=0, abs=1e-14)


@pytest.mark.parametrize("alpha", [1e-9, 1e9])
def test_extreme_priors_keep_to_their_limits(alpha):
    # No prior weight: an answer never seen never comes. All of it: every answer is alike.
    found = plurality_at_k(
        [3, 1, 0, 0], [False, False, True, False], [1, 5, 40], "posterior", alpha
    )
    np.testing.assert_allclose(found, 0 if alpha < 1 else 0.25, rtol=0, atol=1e-6)
    favourite = plurality_at_k([3, 1, 0, 0], [True, False, False, False], 1, "posterior", alpha)
    assert favourite == pytest.approx((3 + alpha) / (4 + 4 * alpha), rel=1e-12)


# Errors.

TWO = ([2, 1], [True, False])


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((*TWO, 0), r"\bk must"),
        ((*TWO, -3), r"\bk must"),
        ((*TWO, [1, 0]), r"\bk must"),
        ((*TWO, [2, 0], "posterior"), r"\bk must"),
        ((*TWO, []), r"\bk must"),
        ((*TWO, 4), r"k=4 with 3 trials"),
        ((*TWO, [1, 4]), r"k=4 with 3 trials"),
        (([[2, 2], [2, 1]], [[True, False]] * 2, 4), r"k=4 with 3 trials of question 1"),
        (([2, -2], TWO[1], 1), "answer_counts must be whole"),
        (([2, -2], TWO[1], 1, "posterior"), "answer_counts must be whole"),
        (([2, -0.5], TWO[1], 1), "answer_counts must be whole"),
        (([2, 1.5], TWO[1], 1), "answer_counts must be whole"),
        (([2, 1.5], TWO[1], 1, "posterior"), "answer_counts must be whole"),
        (([0.6, 0.4], TWO[1], 1), "answer_counts must be whole"),
        (([2, np.inf], TWO[1], 1), "answer_counts must be finite"),
        (([2, -np.inf], TWO[1], 1), "answer_counts must be finite"),
        (([2, np.inf], TWO[1], 1, "posterior"), "answer_counts must be finite"),
        (([0.5, np.inf], TWO[1], 1, "latent"), "answer_counts must be finite"),
        (([0.5, 0.4], TWO[1], 1, "latent"), "answer_counts must be probabilities"),
        (([0.5, 0.6], TWO[1], 1, "latent"), "answer_counts must be probabilities"),
        (([1.5, -0.5], TWO[1], 1, "latent"), "answer_counts must be probabilities"),
        (([2, 1], TWO[1], 1, "latent"), "answer_counts must be probabilities"),
        (([], [], 1), "answer_counts must be non-empty"),
        (([[]], [[]], 1), "answer_counts must be non-empty"),
        ((np.zeros((0, 2)), np.zeros((0, 2), bool), 1), "answer_counts must be non-empty"),
        ((np.ones((1, 1, 2)), np.ones((1, 1, 2), bool), 1), "answer_counts must be"),
        ((2, True, 1), "answer_counts must be"),
        ((["x", "y"], TWO[1], 1), "answer_counts must be"),
        (([-1, np.nan], TWO[1], 1, "posterior"), "answer_counts must"),
        (([2, 1], [True, False, False], 1), "correct must have the shape"),
        (([[2, 1], [1, 2]], [True, False], 1), "correct must have the shape"),
        (([[2, 1], [1, 2]], [[True], [False]], 1), "correct must have the shape"),
        (([2, 1], [2, 0], 1), "correct must be true or false"),
        (([2, 1], [0.5, 0], 1), "correct must be true or false"),
        (([2, 1], [1, np.nan], 1), "correct must be true or false"),
        (([2, 1], ["yes", "no"], 1), "correct must be true or false"),
        ((*TWO, 1, "beta"), "law must be"),
        ((*TWO, 1, None), "law must be"),
    ],
)
def test_impossible_arguments_are_named(args, named):
    with pytest.raises(ValueError, match=named):
        plurality_at_k(*args)


@pytest.mark.parametrize("alpha", [0, -1.0, np.nan, np.inf])
def test_impossible_priors_are_named(alpha):
    with pytest.raises(ValueError, match="alpha must be finite and > 0"):
        plurality_at_k(*TWO, 1, "posterior", alpha)


@pytest.mark.parametrize("unanswered", [-1, 1.5, np.nan, np.inf])
@pytest.mark.parametrize("law", ["finite", "posterior"])
def test_impossible_numbers_of_unanswered_trials_are_named(law, unanswered):
    with pytest.raises(ValueError, match="unanswered must be"):
        plurality_at_k(*TWO, 1, law, unanswered=unanswered)


def test_unanswered_of_another_shape_is_named():
    with pytest.raises(ValueError, match="unanswered must be one number or one for each"):
        plurality_at_k([[2, 1], [1, 2]], [[True, False]] * 2, 1, unanswered=[1, 2, 3])


@pytest.mark.parametrize("unanswered", [-0.2, 0.1, np.nan])
def test_probabilities_that_do_not_sum_to_one_with_nobody_are_named(unanswered):
    with pytest.raises(ValueError, match="must be probabilities"):
        plurality_at_k([0.7, 0.5], [True, False], 1, "latent", unanswered=unanswered)


def test_unanswered_trials_extend_the_finite_law():
    assert plurality_at_k(*TWO, 4, unanswered=1) == pytest.approx(1, rel=1e-12)
    with pytest.raises(ValueError, match=r"k=5 with 4 trials"):
        plurality_at_k(*TWO, 5, unanswered=1)


@pytest.mark.parametrize("k", [1.5, "2", None])
def test_a_k_that_is_no_integer_is_refused(k):
    with pytest.raises(TypeError, match="k must be an integer"):
        plurality_at_k(*TWO, k)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("counts", "k"), [([999_000, 900, 100], 24), ([400_000, 600_000], 300), ([700, 1], 300)]
)
def test_many_votes_keep_their_digits(counts, k, law) -> None:
    correct = [True] + [False] * (len(counts) - 1)
    values = np.array(counts) / (sum(counts) if law == "latent" else 1)
    exact = enumerated(counts, correct, k, law)
    assert plurality_at_k(values, correct, k, law) == pytest.approx(float(exact), rel=1e-9)
