"""The random baseline against its peers: accuracy and time in one run."""

from collections.abc import Callable

import numpy as np
from fast_poibin import PoiBin
from max_random_baseline import MaxOrderStatisticPoissonBinomial as Published
from scipy.stats import poisson_binom

import bayesatk as bk

Row = tuple[str, str, str, str]
Timer = Callable[..., float]


def _tail(p: np.ndarray) -> tuple[int, Callable[[], object]]:
    """Return one tail eight standard deviations out, from nothing."""
    far = int(p.sum() + 8.0 * np.sqrt((p * (1.0 - p)).sum()))
    return far, lambda: bk.guessing.PoissonBinomial(p).logsf(far - 1)


def rows(median_ms: Timer) -> list[Row]:
    """Mass function, one tail and the baseline; random and repeated probabilities."""
    rng = np.random.default_rng(3)
    found: list[Row] = []
    for n, pmf_goal, tail_goal in (
        (100, "<= 0.3 ms", ""),
        (1000, "", ""),
        (10_000, "<= 1.0", "<= 1.5"),
        (100_000, "<= 1.0", "<= 0.7"),
        (1_000_000, "about 1 s", ""),
    ):
        p, repeats = rng.random(n), 7 if n < 1e6 else 3
        ours = median_ms(
            lambda p=p: bk.guessing.PoissonBinomial(p).pmf(np.arange(len(p) + 1)), repeats
        )
        theirs = median_ms(lambda p=p: PoiBin(p).pmf, repeats)
        tail = median_ms(_tail(p)[1], repeats)
        peer = f"x fast-poibin ({theirs:.2f} ms)"
        found.append(
            (f"pmf, random p, n={n}", f"{ours:.2f} ms", f"{ours / theirs:.2f} {peer}", pmf_goal)
        )
        found.append(
            (f"one tail, n={n}", f"{tail:.2f} ms", f"{tail / theirs:.2f} {peer}", tail_goal)
        )
    grouped = rng.choice([0.5, 0.25, 0.2], 100_000)
    ms = median_ms(lambda: bk.guessing.PoissonBinomial(grouped).pmf(np.arange(100_001)))
    found.append(("pmf, three distinct p, n=100000", f"{ms:.2f} ms", "", "<= 20 ms"))
    return found + _against_published(median_ms) + _against_scipy(median_ms)


def _against_published(median_ms: Timer) -> list[Row]:
    p = np.random.default_rng(4).random(10_000)

    def published() -> object:
        return Published(len(p), p.tolist())

    def ours() -> object:
        return bk.guessing.PoissonBinomial(p).pmf(np.arange(len(p) + 1))

    slow, fast = median_ms(published, 1), median_ms(ours)
    ratio = f"{slow / fast:.0f} x faster than max-random-baseline"
    law = bk.guessing.MaxOrderStatisticPoissonBinomial(len(p), p)
    again = median_ms(lambda: law.max_random_baseline(1e9))
    return [
        ("pmf, random p, n=10000", f"{fast:.2f} ms", ratio, ">= 1000"),
        ("E[max], t=1e9, n=10000, after the first", f"{again:.2f} ms", "", ""),
    ]


def _against_scipy(median_ms: Timer) -> list[Row]:
    p = np.random.default_rng(5).random(1000)
    far, tail = _tail(p)
    slow, fast = median_ms(lambda: poisson_binom.sf(far - 1, p), 3), median_ms(tail)
    reference = float(np.exp(tail()))
    error = abs(poisson_binom.sf(far - 1, p) / reference - 1.0)
    ratio = f"{slow / fast:.1f} x faster than scipy, whose relative error is {error:.0e}"
    return [("one tail at 8 sd, n=1000", f"{fast:.2f} ms", ratio, "")]
