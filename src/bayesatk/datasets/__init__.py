"""Small real data, typed in from their publications: counts are facts and carry no licence."""

from bayesatk.datasets.classics import (
    batting_1975,
    batting_1975_remaining,
    rat_tumors,
    surgical,
    tau_bench_airline,
)

__all__ = [
    "batting_1975",
    "batting_1975_remaining",
    "rat_tumors",
    "surgical",
    "tau_bench_airline",
]
