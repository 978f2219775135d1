"""Published counts of successes in trials."""

from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally

# Player, hits in the first 45 at-bats, hits and at-bats in the rest of the season.
_BATTING = (
    ("Clemente", 18, 127, 367), ("F Robinson", 17, 127, 426), ("F Howard", 16, 144, 521),
    ("Johnstone", 15, 61, 275), ("Berry", 14, 114, 418), ("Spencer", 14, 126, 466),
    ("Kessinger", 13, 155, 586), ("Alvarado", 12, 29, 138), ("Santo", 11, 137, 510),
    ("Swoboda", 11, 46, 200), ("Petrocelli", 10, 142, 538), ("E Rodriguez", 10, 42, 186),
    ("Scott", 10, 132, 435), ("Unser", 10, 73, 277), ("B Williams", 10, 195, 591),
    ("Campaneris", 9, 159, 558), ("Munson", 8, 129, 408), ("Alvis", 7, 14, 70),
)  # fmt: skip

# Number of solutions among 100 samples of each puzzle.
_GAME_OF_24 = {
    "plain": (
        1, 0, 0, 0, 2, 0, 0, 2, 2, 1, 0, 0, 0, 1, 0, 0, 0, 56, 0, 0, 5, 0, 0, 0, 0, 0, 1, 42, 0,
        0, 0, 0, 0, 0, 61, 0, 0, 29, 1, 2, 0, 0, 0, 1, 1, 22, 0, 4, 0, 0, 0, 0, 0, 1, 5, 0, 40,
        0, 0, 0, 0, 2, 0, 26, 0, 43, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 29, 60, 69, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 87, 0, 2, 0, 0, 0, 0, 22, 0, 12, 0, 99,
    ),
    "chain of thought": (
        21, 1, 1, 7, 5, 2, 0, 0, 0, 8, 6, 0, 1, 0, 0, 2, 1, 25, 0, 0, 0, 13, 1, 4, 24, 0, 0, 21,
        2, 3, 1, 0, 0, 0, 52, 0, 1, 29, 3, 0, 0, 0, 0, 0, 4, 0, 14, 1, 0, 1, 0, 0, 0, 3, 3, 17,
        10, 0, 0, 0, 0, 1, 0, 8, 0, 13, 0, 2, 0, 0, 2, 0, 0, 0, 2, 0, 6, 0, 11, 0, 0, 0, 4, 0,
        0, 5, 0, 1, 26, 0, 0, 0, 0, 15, 0, 6, 0, 4, 9, 1,
    ),
}  # fmt: skip


def rat_tumors() -> Outcomes:
    """Tumors in 71 groups of control rats; the last group is the experiment at hand.

    Success is a rat with a tumor. Source: Tarone 1982, Biometrics 38(1), 215-220, as printed in
    Gelman et al., Bayesian Data Analysis, 3rd ed. 2013, table 5.1. Licence: published counts,
    facts without copyright.

    Returns
    -------
    Outcomes

    Examples
    --------
    >>> data = rat_tumors()
    >>> data.trials.sizes["question"], int(data.successes.sum()), int(data.trials.sum())
    (71, 267, 1739)
    """
    # (tumors, rats, number of groups with those counts), in the order of the book's table.
    rats = (
        (0, 20, 7),
        (0, 19, 4),
        (0, 18, 2),
        (0, 17, 1),
        (1, 20, 4),
        (1, 19, 2),
        (1, 18, 2),
        (3, 27, 1),
        (2, 25, 1),
        (2, 24, 1),
        (2, 23, 1),
        (2, 20, 6),
        (1, 10, 1),
        (5, 49, 1),
        (2, 19, 1),
        (5, 46, 1),
        (2, 17, 1),
        (7, 49, 1),
        (7, 47, 1),
        (3, 20, 2),
        (2, 13, 1),
        (9, 48, 1),
        (10, 50, 1),
        (4, 20, 7),
        (10, 48, 1),
        (4, 19, 3),
        (5, 22, 1),
        (11, 46, 1),
        (12, 49, 1),
        (5, 20, 2),
        (6, 23, 1),
        (5, 19, 1),
        (6, 22, 1),
        (6, 20, 3),
        (16, 52, 1),
        (15, 46, 1),
        (15, 47, 1),
        (9, 24, 1),
        (4, 14, 1),
    )
    groups = [(y, n) for y, n, count in rats for _ in range(count)]
    return tally(([[y for y, _ in groups]], [[n for _, n in groups]]), systems=["control rats"])


def batting_1975() -> Outcomes:
    """Hits of 18 major-league players in their first 45 at-bats of 1970.

    Source: Efron and Morris 1975, Journal of the American Statistical Association 70(350),
    311-319, table 1. Licence: published counts, facts without copyright.

    Returns
    -------
    Outcomes

    Examples
    --------
    >>> int(batting_1975().successes.sel(question="Clemente").squeeze())
    18
    """
    players = [player for player, *_ in _BATTING]
    hits = [row[1] for row in _BATTING]
    return tally(hits, trials=45, systems=["first 45 at-bats"], questions=players)


def batting_1975_remaining() -> Outcomes:
    """Hits of the same 18 players in the rest of the 1970 season, to check predictions.

    Source and licence as for `batting_1975`.

    Returns
    -------
    Outcomes

    Examples
    --------
    >>> remaining = batting_1975_remaining().sel(question="Clemente")
    >>> int(remaining.successes.squeeze()), int(remaining.trials.squeeze())
    (127, 367)
    """
    players = [player for player, *_ in _BATTING]
    hits, at_bats = [row[2] for row in _BATTING], [row[3] for row in _BATTING]
    return tally(hits, trials=at_bats, systems=["rest of season"], questions=players)


def surgical() -> Outcomes:
    """Deaths in cardiac surgery on babies at 12 hospitals; success is a death.

    Source: Spiegelhalter et al., BUGS Examples Volume 1, "Surgical: Institutional ranking".
    Licence: published counts, facts without copyright.

    Returns
    -------
    Outcomes

    Examples
    --------
    >>> int(surgical().trials.sum())
    2814
    """
    counts = {
        "A": (0, 47),
        "B": (18, 148),
        "C": (8, 119),
        "D": (46, 810),
        "E": (8, 211),
        "F": (13, 196),
        "G": (9, 148),
        "H": (31, 215),
        "I": (14, 207),
        "J": (8, 97),
        "K": (29, 256),
        "L": (24, 360),
    }
    deaths, operations = (list(column) for column in zip(*counts.values(), strict=True))
    return tally(deaths, trials=operations, systems=["mortality"], questions=list(counts))


def tau_bench_airline() -> Outcomes:
    """Tau-bench airline, gpt-4o with tool calling: 50 tasks, 4 trials each.

    The published pass^1..4 of .420, .273, .220, .200 determine how many tasks succeeded 0, 1, 2,
    3 and 4 times; which task is which is not published, so tasks are numbered by their count.
    Source: Yao et al. 2024, arXiv:2406.12045, and the project's leaderboard. Licence: published
    figures, facts without copyright.

    Returns
    -------
    Outcomes

    Examples
    --------
    >>> from bayesatk import evaluate, table
    >>> fit = evaluate(tau_bench_airline(), "pass^1,2,3,4", rng=1)
    >>> table(fit)["estimate"][::2].round(3).tolist()
    [0.42, 0.273, 0.22, 0.2]
    """
    tasks_by_successes = (14, 12, 10, 4, 10)
    successes = [c for c, tasks in enumerate(tasks_by_successes) for _ in range(tasks)]
    return tally(successes, trials=4, systems=["gpt-4o"])


def game_of_24() -> Outcomes:
    """Game of 24: GPT-4 with two prompts on 100 puzzles, 100 samples of each.

    Puzzles are numbered by the time that people need for them. Source: Yao et al. 2023,
    arXiv:2305.10601, and the logs of its repository princeton-nlp/tree-of-thought-llm, which give
    the published means .073 and .040 and bests of 100 of .33 and .49. Licence: MIT; counts are
    facts.

    Returns
    -------
    Outcomes

    Examples
    --------
    >>> (game_of_24().successes / 100).mean("question").round(3).to_series().to_dict()
    {'plain': 0.073, 'chain of thought': 0.04}
    """
    return tally(
        list(_GAME_OF_24.values()),
        trials=100,
        systems=list(_GAME_OF_24),
        questions=list(range(900, 1000)),
    )
