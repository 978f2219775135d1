"""Scores and answers: votes against simulating them, hyperparameters against NUTS."""

import time
from collections.abc import Callable

import numpy as np
import xarray as xr

import bayesatk as bk
from bayesatk.posterior.model import CountModel

Row = tuple[str, str, str, str]
_VOTES = 1000  # simulated per question: standard error .016


def _simulate(counts: np.ndarray, ks: range, rng: np.random.Generator) -> np.ndarray:
    """Share of simulated votes that the first answer wins, ties shared."""
    p = rng.dirichlet(counts + 1.0, _VOTES)
    found = np.empty(len(ks))
    for column, k in enumerate(ks):
        votes = rng.multinomial(k, p)
        tied = votes == votes.max(axis=1, keepdims=True)
        found[column] = (tied[:, 0] / tied.sum(axis=1)).mean()
    return found


def rows(median_ms: Callable[..., float]) -> list[Row]:
    """Plurality of 500 questions at every k to 64, and partial pooling of five categories."""
    rng = np.random.default_rng(0)
    counts = np.array(
        [1 + rng.multinomial(140, rng.dirichlet(np.full(60, 0.3))) for _ in range(500)]
    )
    correct = np.zeros(counts.shape, bool)
    correct[:, 0] = True
    ks = range(1, 65)
    found: list[Row] = []
    simulated = 500 * median_ms(lambda: _simulate(counts[0], ks, rng), 3)
    for law in ("finite", "posterior"):
        ms = median_ms(lambda law=law: bk.published.plurality_at_k(counts, correct, ks, law), 1)
        ratio = f"{ms / simulated:.2f} x simulating {_VOTES} votes each ({simulated / 1e3:.0f} s)"
        label = f"plurality, {law} law, 500 questions, 200 trials, 60 answers, k=1..64"
        found.append((label, f"{ms / 1e3:.1f} s", ratio, "< 10 s"))
    mean = rng.dirichlet(np.full(5, 3.0))
    rows_of = [rng.multinomial(8, rng.dirichlet(4.0 * mean)) for _ in range(500)]
    scores = tuple(np.linspace(0.0, 1.0, 5).tolist())
    model = CountModel.of(bk.priors.DirichletHyperPrior(), np.array(rows_of), scores=scores)
    ms = median_ms(lambda: model.refitted("dirichlet"))
    counts = xr.DataArray(np.array(rows_of)[None], dims=("system", "question", "category"))
    data = xr.Dataset({"count": counts}, {"score": ("category", np.linspace(0.0, 1.0, 5))})
    start = time.perf_counter()
    prior = bk.priors.DirichletHyperPrior()
    bk.sample(data, "bayes", prior=prior, progress=False, rng=rng)
    nuts = 1e3 * (time.perf_counter() - start)
    ratio = f"{ms / nuts:.4f} x marginalised NUTS, compilation included ({nuts / 1e3:.1f} s)"
    found.append(("hyperparameters of 5 categories, M=500, n=8", f"{ms:.0f} ms", ratio, ""))
    return found
