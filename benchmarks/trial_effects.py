"""Coverage of 95% intervals where every prompt shifts all questions.

Of exchangeable trials, and of the recipe of docs/own_model.md, with an effect of each prompt.

    python -m benchmarks.trial_effects --replications 40

Trial j of every question has prompt j. Targets: the score on these questions, and on questions like
these, both with prompts like these. Difficulties are normal on the logit scale, as the recipe takes
them, or Beta(0.8, 0.8), which it does not know.
"""

import argparse

import numpy as np
import nutpie
import pymc as pm
import xarray as xr
from scipy.special import expit, logit

import bayesatk as bk
from bayesatk._tools.arrays import Array, Rng

QUESTIONS, PROMPTS, NEW = 150, 8, 300
NODES, WEIGHT = np.polynomial.hermite_e.hermegauss(15)
WEIGHT = WEIGHT / WEIGHT.sum()


def difficulties(shape: str, size: int, rng: Rng) -> Array:
    """Draw logits of the success probability with an average prompt."""
    return rng.normal(0.3, 1.3, size) if shape == "normal" else logit(rng.beta(0.8, 0.8, size))


def over_prompts(values: Array, spread: Array | float) -> Array:
    """Return success probabilities averaged over normal effects of prompts."""
    return np.asarray(expit(values[..., None] + np.multiply.outer(spread, NODES)) @ WEIGHT)


def recipe() -> pm.Model:
    """Build the model of the page, for data to come."""
    with pm.Model() as model:
        runs = pm.Data("runs", np.zeros((QUESTIONS, PROMPTS), np.int64))
        mean, sd = pm.Normal("mean", 0, 1.5), pm.HalfNormal("sd", 2)
        spread = pm.HalfNormal("spread", 1)
        values = pm.Deterministic("logit", mean + sd * pm.Normal("z", shape=QUESTIONS))
        effect = spread * pm.Normal("t", shape=PROMPTS)
        pm.Bernoulli("y", logit_p=values[:, None] + effect, observed=runs)
    return model


def with_p(trace: xr.DataTree, rng: Rng) -> xr.DataTree:
    """Add what the page has as deterministic variables: p of these questions, and of new ones."""
    drawn = trace["posterior"].to_dataset()
    spread = drawn["spread"].values[..., None]
    z = rng.standard_normal((*drawn["mean"].shape, NEW))
    new = drawn["mean"].values[..., None] + drawn["sd"].values[..., None] * z
    for name, values in (("p", drawn["logit"].values), ("p_new", new)):
        p = np.concatenate([over_prompts(*pair)[None] for pair in zip(values, spread, strict=True)])
        drawn[name] = ("chain", "draw", f"{name}_dim"), p
    return xr.DataTree.from_dict({"posterior": drawn[["p", "p_new"]]})


def main() -> None:
    """Print how often intervals of both ways contain the truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=40)
    replications = parser.parse_args().replications
    compiled = nutpie.compile_pymc_model(recipe())
    print("effects  difficulties  interval       these questions  questions like these")
    for spread in (0.3, 0.6):
        for shape in ("normal", "beta"):
            many = difficulties(shape, 400_000, np.random.default_rng(0))
            hits: dict[str, list[list[bool]]] = {"evaluate": [], "recipe": []}
            for seed in range(replications):
                rng = np.random.default_rng([seed, int(10 * spread)])
                question = difficulties(shape, QUESTIONS, rng)
                effect = spread * rng.standard_normal(PROMPTS)
                runs = rng.binomial(1, expit(question[:, None] + effect))
                truth = [float(over_prompts(x, spread).mean()) for x in (question, many)]
                trace = nutpie.sample(
                    compiled.with_data(runs=runs),
                    draws=500,
                    tune=300,
                    chains=1,
                    cores=1,
                    seed=seed + 1,
                    progress_bar=False,
                    target_accept=0.9,
                )
                fits = {
                    "evaluate": bk.evaluate(runs, "pass@1", difficulty="beta", draws=50, rng=1),
                    "recipe": bk.from_draws(with_p(trace, rng), runs, "pass@1"),
                }
                for name, fit in fits.items():
                    ends = bk.table(fit)[["ci_lower", "ci_upper"]].to_numpy()
                    pairs = zip(truth, ends, strict=True)
                    hits[name].append([bool(low <= x <= up) for x, (low, up) in pairs])
            for name, rows in hits.items():
                these, like_these = np.mean(rows, axis=0)
                print(f"{spread:7g}  {shape:12}  {name:8}  {these:19.2f}  {like_these:20.2f}")


if __name__ == "__main__":
    main()
