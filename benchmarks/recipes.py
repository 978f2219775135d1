"""Coverage of 95% intervals with the recipes of docs/own_model.md, and without.

    python -m benchmarks.recipes [change effects learning judges shared] --replications 40

The models are those of the page, which is read. Difficulties of 100 questions are normal on the
logit scale, as the recipes take them, or Beta(0.8, 0.8), which they do not know. Targets: these
questions, and questions like these. Of two systems intervals are of their difference.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import nutpie
import pandas as pd
from scipy.special import expit, logit

import bayesatk as bk
from bayesatk._tools.arrays import Array, Rng

PAGE = Path(__file__).parents[1] / "docs" / "own_model.md"
QUESTIONS, TRIALS, MANY = 100, 4, 200_000


def definitions() -> dict[str, Any]:
    """Return imports, constants and functions of the page, without what it samples."""
    names: dict[str, Any] = {}
    cells = re.findall(
        r"```\{code-cell\} python\n(?::[^\n]*\n)*(.*?)```", PAGE.read_text(), re.DOTALL
    )
    for cell in cells:
        for block in re.split(r"\n(?=\S)", cell):
            if re.match(r"import|from|def|sigmoid =|new =|nodes,|weight =|kinds =", block):
                exec(block, names)
    return names


MODELS = definitions()


class Case(NamedTuple):
    """Data of a recipe, what its model observes, and what is true of these and like these."""

    model: Callable[[], Any]
    observed: dict[str, Any]
    data: Any
    truth: tuple[float, float]


def difficulties(shape: str, size: int, rng: Rng) -> Array:
    """Draw logits of success probabilities."""
    return rng.normal(0.3, 1.3, size) if shape == "normal" else logit(rng.beta(0.8, 0.8, size))


def effects(x: Array, many: Array, rng: Rng) -> Case:
    """Simulate eight prompts that shift all questions by an sd of 0.6 logits."""

    def over_prompts(logits: Array) -> float:
        chances = expit(logits[:, None] + 0.6 * MODELS["nodes"]) @ MODELS["weight"]
        return float(chances.mean())

    runs = rng.binomial(1, expit(x[:, None] + 0.6 * rng.standard_normal(8)))
    return Case(
        lambda: MODELS["trial_effects"](runs),
        {"runs": runs},
        runs,
        (over_prompts(x), over_prompts(many)),
    )


def learning(x: Array, many: Array, rng: Rng) -> Case:
    """Simulate a gain of 0.8 logits over eight trials; the first is asked for."""
    runs = rng.binomial(1, expit(x[:, None] + np.linspace(0.0, 0.8, 8)))
    truth = float(expit(x).mean()), float(expit(many).mean())
    return Case(lambda: MODELS["learning"](runs), {"runs": runs}, runs, truth)


def judges(x: Array, many: Array, rng: Rng) -> Case:
    """Simulate three judges that err; the majority is taken for the truth without the recipe."""
    right = rng.random((QUESTIONS, TRIALS, 1)) < expit(x)[:, None, None]
    marks = rng.random((QUESTIONS, TRIALS, 3)) < np.where(
        right, [0.95, 0.9, 0.85], [0.4, 0.35, 0.1]
    )
    counts = (marks[..., None, :] == MODELS["kinds"]).all(axis=-1).sum(axis=1)
    truth = float(expit(x).mean()), float(expit(many).mean())
    majority = (marks.sum(axis=2) > 1).astype(int)
    return Case(lambda: MODELS["judges"](counts), {"counts": counts}, majority, truth)


def change(x: Array, many: Array, rng: Rng) -> Case:
    """Simulate a shift of 0.4 logits between two days, with an sd of 0.4 between questions."""
    return _pair("change", x, many, rng, 0.4, 0.0)


def shared(x: Array, many: Array, rng: Rng) -> Case:
    """Simulate two equal systems; a fifth of the questions is never solved."""
    return _pair("shared", x, many, rng, 0.0, 0.2)


def _pair(name: str, x: Array, many: Array, rng: Rng, gap: float, never: float) -> Case:
    def chances(logits: Array) -> Array:
        second = logits + gap + 0.4 * rng.standard_normal(len(logits))
        return np.asarray(expit([logits, second]) * (rng.random(len(logits)) >= never))

    p = chances(x)
    right = rng.binomial(TRIALS, p)
    data = bk.tally(right, trials=TRIALS, systems=["one", "other"])
    truths = [float(values[1].mean() - values[0].mean()) for values in (p, chances(many))]
    return Case(lambda: MODELS[name](data), {"right": right}, data, (truths[0], truths[1]))


CASES = {
    "change": change,
    "effects": effects,
    "learning": learning,
    "judges": judges,
    "shared": shared,
}


def intervals(fit: Any) -> Array:
    """Return interval ends by target: of the score, or of the difference of two systems."""
    table = bk.table(fit)
    if table["system"].nunique() > 1:
        table = bk.table(bk.compare(fit), "comparison", of="other", against="one")
    return table[["ci_lower", "ci_upper"]].to_numpy()


def replications(name: str, shape: str, number: int) -> Iterator[dict[str, Any]]:
    """Yield whether each interval holds the truth, and its width."""
    many, compiled = difficulties(shape, MANY, np.random.default_rng(0)), None
    for seed in range(number):
        rng = np.random.default_rng([seed, 2026])
        case = CASES[name](difficulties(shape, QUESTIONS, rng), many, rng)
        compiled = compiled or nutpie.compile_pymc_model(case.model())
        trace = nutpie.sample(
            compiled.with_data(**case.observed),
            draws=400,
            tune=300,
            chains=2,
            cores=1,
            seed=seed + 1,
            progress_bar=False,
            save_warmup=False,
            target_accept=0.9,
        )
        fits = {
            "evaluate": bk.evaluate(case.data, "pass@1", difficulty="beta", rng=1),
            "recipe": bk.from_draws(trace, case.data, "pass@1", rng=1),
        }
        for way, fit in fits.items():
            for target, truth, (low, high) in zip(
                ("questions", "population"), case.truth, intervals(fit), strict=True
            ):
                yield {
                    "recipe": name,
                    "difficulties": shape,
                    "way": way,
                    "target": target,
                    "covered": low <= truth <= high,
                    "width": high - low,
                }


def main() -> None:
    """Print how often intervals contain the truth, and how wide they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=list(CASES))
    parser.add_argument("--replications", type=int, default=40)
    options = parser.parse_args()
    for name in options.recipes:
        for shape in ("normal", "beta"):
            rows = pd.DataFrame(replications(name, shape, options.replications))
            by = ["recipe", "difficulties", "target", "way"]
            found = rows.groupby(by, sort=False)[["covered", "width"]].mean()
            print(found.round(3).to_string(header=False), flush=True)


if __name__ == "__main__":
    main()
