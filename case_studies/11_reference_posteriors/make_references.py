"""Make the reference posteriors: exact moments by quadrature, and exact independent draws.

The data are the library's; all computations are here, in NumPy and SciPy, so that the library can
be compared with them. ``python case_studies/11_reference_posteriors/make_references.py`` writes the
same files again.

The model, with the probability of each group integrated out:

    y_i ~ BetaBinomial(n_i, mean_p t, (1 - mean_p) t),  t = (1 - icc) / icc
    mean_p ~ uniform(0, 1),  icc ~ icc^(icc_a - 1) (1 - icc)^(icc_b - 1)
"""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp

from bayesatk import datasets

HERE = Path(__file__).parent
DATABASE = HERE / "posterior_database"
MODEL = "beta_binomial"
CHAINS, DRAWS = 10, 1000
LEVELS = (0.05, 0.5, 0.95)
CELLS = 640  # of the grid, in each coordinate; the error is that of half as many, or less
DEPTH = 38.0  # the grid ends where the log density is this far below its mode
DEGREES = 4.0  # of freedom of the proposal: its tails are above those of every posterior here

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """A data set with the prior of its intraclass correlation."""

    name: str
    title: str
    successes: NDArray[np.int64]
    trials: NDArray[np.int64]
    icc_prior: tuple[float, float]
    source: str

    def log_density(self, x: Array, z: Array) -> Array:
        """Log posterior density of logit mean_p and logit icc, but for a constant.

        The product of y factors ``mean_p (1 - icc) + j icc`` of successes, n - y of failures and n
        of trials: no gamma function of a large argument, so nothing cancels.
        """
        share, rho = log_expit([x, -x]), log_expit([z, -z])  # logs of mean_p, icc and complements
        mean, icc = np.exp(share), np.exp(rho)
        density = share.sum(axis=0) + np.tensordot(self.icc_prior, rho, 1)
        parts = (
            (self.successes, mean[0], 1.0),
            (self.trials - self.successes, mean[1], 1.0),
            (self.trials, 1.0, -1.0),
        )
        for counts, start, sign in parts:
            for j in range(counts.max()):
                density = density + sign * (counts > j).sum() * np.log(start * icc[1] + j * icc[0])
        return density


def references() -> list[Reference]:
    """Return the data sets, each with a prior under which it has been analysed."""
    book, uniform = (0.5, -0.5), (1.0, 1.0)
    listed = []
    for name, title, data, prior, source in (
        ("rats", "Tumours in 71 groups of rats", datasets.rat_tumors(), book,
         "Tarone 1982; Gelman et al. 2013, table 5.1; prior (5.9)"),
        ("surgical", "Deaths after heart surgery in 12 hospitals", datasets.surgical(), uniform,
         "BUGS examples, volume 1"),
        ("baseball", "18 players after 45 times at bat", datasets.batting_1975(), uniform,
         "Efron and Morris 1975, table 1"),
    ):  # fmt: skip
        counts = (data.successes.values[0], data.trials.values[0])
        listed.append(Reference(name, title, *counts, prior, source))
    with (HERE.parent / "10_published_boards/game24.csv").open() as file:
        rows = list(csv.DictReader(file))
    for system in ("cot", "standard"):
        counts = [
            np.array([int(row[column]) for row in rows if row["system"] == system])
            for column in ("successes", "trials")
        ]
        title = f"Game of 24: 100 puzzles, 100 samples of GPT-4, prompt {system}"
        source = "Yao et al. 2023, princeton-nlp/tree-of-thought-llm, logs/game24"
        listed.append(Reference(f"game24_{system}", title, *counts, uniform, source))
    return listed


@dataclass(frozen=True)
class Grid:
    """A trapezoid rule over the logits of mean_p and icc, which is refined by a factor of two."""

    x: Array
    z: Array
    weight: Array

    @classmethod
    def of(cls, reference: Reference) -> "Grid":
        """Cover all that is not negligible, found on a coarse grid that reaches far."""
        x, z = np.linspace(-12.0, 12.0, 241), np.linspace(-90.0, 30.0, 481)
        coarse = reference.log_density(x[:, None], z[None, :])
        seen = coarse > coarse.max() - DEPTH
        ends = [np.flatnonzero(seen.any(axis=axis))[[0, -1]] + [-1, 1] for axis in (1, 0)]
        assert all(low >= 0 for low, _ in ends), "the coarse grid must reach further"
        x, z = (
            np.linspace(*values[end], CELLS + 1) for values, end in zip((x, z), ends, strict=True)
        )
        log_density = reference.log_density(x[:, None], z[None, :])
        return cls(x, z, np.exp(log_density - logsumexp(log_density)))

    def halved(self) -> "Grid":
        """Every second point: its results differ by more than the error of the whole."""
        kept = self.weight[::2, ::2]
        return Grid(self.x[::2], self.z[::2], kept / kept.sum())

    def statistics(self, reference: Reference) -> dict[str, dict[str, float]]:
        """Mean, sd and quantiles of mean_p and icc; mean and sd of the p of each group."""
        mean, icc = expit(self.x)[:, None], expit(self.z)[None, :]
        rest = expit(-self.z)[None, :]
        result: dict[str, dict[str, float]] = {}
        for name, value, points, axis in (("mean_p", mean, self.x, 1), ("icc", icc, self.z, 0)):
            result[name] = self._moments(value + 0.0 * self.weight, (value**2) + 0.0 * self.weight)
            cdf = CubicSpline(points, self.weight.sum(axis=axis)).antiderivative()
            total = float(cdf(points[-1]))
            for level in LEVELS:
                end = brentq(lambda at: float(cdf(at)) / total - level, points[0], points[-1])  # noqa: B023
                result[name][f"q{100 * level:g}"] = float(expit(end))
        for i, (y, n) in enumerate(zip(reference.successes, reference.trials, strict=True), 1):
            first = (mean * rest + y * icc) / (rest + n * icc)
            again = (mean * rest + (y + 1) * icc) / (rest + (n + 1) * icc)
            result[f"p[{i}]"] = self._moments(first, first * again)
        return result

    def _moments(self, first: Array, second: Array) -> dict[str, float]:
        mean = float((self.weight * first).sum())
        return {"mean": mean, "sd": float(np.sqrt((self.weight * second).sum() - mean**2))}

    def draw(self, reference: Reference, rng: np.random.Generator) -> Array:
        """Draw mean_p and icc exactly, by rejection from a bivariate t distribution."""
        x, z = np.meshgrid(self.x, self.z, indexing="ij")
        points = np.stack([x, z], axis=-1)
        centre = np.tensordot(self.weight, points, 2)
        apart = points - centre
        scale = np.einsum("ij,ijk,ijl->kl", self.weight, apart, apart)
        half = np.linalg.cholesky(scale)

        def log_proposal(at: Array) -> Array:
            standard = np.linalg.solve(half, (at - centre)[..., None])[..., 0]
            distance = (standard**2).sum(axis=-1)
            return -0.5 * (DEGREES + 2.0) * np.log1p(distance / DEGREES)

        bound = (reference.log_density(x, z) - log_proposal(points)).max() + 0.05
        kept: list[Array] = []
        while sum(map(len, kept)) < CHAINS * DRAWS:
            spread = np.sqrt(DEGREES / rng.chisquare(DEGREES, 20_000))
            at = centre + spread[:, None] * rng.standard_normal((20_000, 2)) @ half.T
            ratio = reference.log_density(at[:, 0], at[:, 1]) - log_proposal(at) - bound
            assert ratio.max() <= 0.0, "the bound must be one"
            kept.append(at[np.log(rng.random(len(at))) < ratio])
        return expit(np.concatenate(kept)[: CHAINS * DRAWS])


def _error(fine: dict[str, dict[str, float]], coarse: dict[str, dict[str, float]]) -> float:
    """Largest difference of two sets of statistics, in posterior sds."""
    return max(
        abs(value - coarse[name][statistic]) / values["sd"]
        for name, values in fine.items()
        for statistic, value in values.items()
    )


def _write(path: Path, document: Any, compressed: bool = False) -> None:
    """Write JSON; compressed, as a file in an archive that has no time of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not compressed:
        path.write_text(json.dumps(document, indent=1) + "\n")
        return
    with ZipFile(path.with_name(f"{path.name}.zip"), "w") as archive:
        entry = ZipInfo(path.name, (2026, 1, 1, 0, 0, 0))
        archive.writestr(entry, json.dumps(document), ZIP_DEFLATED, 9)


def _rounded(value: float) -> float:
    return float(f"{value:.8g}")


def write(reference: Reference, seed: int) -> float:
    """Write all files of one posterior; return the stated error, in posterior sds."""
    grid = Grid.of(reference)
    exact = grid.statistics(reference)
    error = _error(exact, grid.halved().statistics(reference))
    draws = grid.draw(reference, np.random.default_rng(seed)).reshape(CHAINS, DRAWS, 2)
    name = f"{reference.name}-{MODEL}"
    _write(
        DATABASE / "posteriors" / f"{name}.json",
        {
            "name": name, "model_name": MODEL, "data_name": reference.name,
            "reference_posterior_name": name, "dimensions": {"mean_p": 1, "icc": 1},
            "keywords": ["beta-binomial", "hierarchical model, marginalised"],
            "urls": [], "references": [], "added_by": "bayesatk", "added_date": "2026-11-26",
        },
    )  # fmt: skip
    _write(
        DATABASE / "data/info" / f"{reference.name}.info.json",
        {
            "name": reference.name, "data_file": f"data/data/{reference.name}.json",
            "title": reference.title, "description": reference.source, "keywords": [], "urls": [],
            "references": [], "added_by": "bayesatk", "added_date": "2026-11-26",
        },
    )  # fmt: skip
    _write(
        DATABASE / "data/data" / f"{reference.name}.json",
        {
            "N": len(reference.trials), "y": reference.successes.tolist(),
            "n": reference.trials.tolist(), "icc_a": reference.icc_prior[0],
            "icc_b": reference.icc_prior[1],
        },
        compressed=True,
    )  # fmt: skip
    _write(
        DATABASE / "reference_posteriors/draws/info" / f"{name}.info.json",
        {
            "name": name, "added_by": "bayesatk", "added_date": "2026-11-26",
            "inference": {
                "method": "independent draws by rejection from a bivariate t distribution of the "
                "logits; mean_p and icc rounded to eight digits",
                "method_arguments": {"seed": seed, "degrees_of_freedom": DEGREES},
            },
            "diagnostics": {"ndraws": CHAINS * DRAWS, "nchains": CHAINS},
            "exact": {
                "method": f"trapezoid rule in the logits, {CELLS} x {CELLS} cells",
                "error_in_sds": float(f"{max(error, 1e-12):.1e}"),
                "statistics": exact,
            },
        },
    )  # fmt: skip
    _write(
        DATABASE / "reference_posteriors/draws/draws" / f"{name}.json",
        [
            {
                "mean_p": [_rounded(value) for value in chain[:, 0]],
                "icc": [_rounded(value) for value in chain[:, 1]],
            }
            for chain in draws
        ],
        compressed=True,
    )
    return error


def main() -> None:
    """Write every file but the model's code."""
    code = f"models/stan/{MODEL}.stan"
    _write(
        DATABASE / "models/info" / f"{MODEL}.info.json",
        {
            "name": MODEL, "title": "Beta-binomial with a mean and an intraclass correlation",
            "model_implementations": {"stan": {"model_code": code}},
            "description": "The model" + __doc__.partition("The model")[2].rstrip(),
            "keywords": [], "urls": [], "references": [],
            "prior": {"keywords": ["weakly informative"]},
            "added_by": "bayesatk", "added_date": "2026-11-26",
        },
    )  # fmt: skip
    for seed, reference in enumerate(references(), 1):
        print(f"{reference.name}: error {write(reference, seed):.0e} sd")


if __name__ == "__main__":
    main()
