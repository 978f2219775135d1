"""What `bayesatk.verify` notices, and how often it is wrong: faults planted in right results.

    python -m benchmarks.verification --seeds 20 --clean 40 --pymc 3

Without pooling the sampler is exact: conjugate draws, made here. With `--pymc` results of one Beta
are compared with that many runs of `bayesatk.sample`. Every seed has data of its own.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import bayesatk as bk

METRICS = "pass@1,4 pass^4"
QUESTIONS, TRIALS, CHAINS, DRAWS = 40, 6, 4, 4000
DIMS = ("chain", "draw", "system", "question")
CELL = {"system": "a", "k": 4, "target": "questions"}


def data_of(seed: int) -> bk.Outcomes:
    """Simulate two systems on the same questions."""
    rng = np.random.default_rng([seed, 1])
    p = rng.beta(1.2, 0.8, QUESTIONS)
    rows = {"a": p, "b": p**1.3}
    return bk.tally(
        {name: rng.binomial(1, x[:, None], (QUESTIONS, TRIALS)) for name, x in rows.items()}
    )


def exact_result(data: bk.Outcomes, seed: int, **options: Any) -> xr.DataTree:
    """Evaluate, with joint draws of both systems."""
    fit = bk.evaluate(data, METRICS, rng=seed, **options)
    if "joint_posterior" not in fit.children:  # independent systems
        names = ["pass_at_k", "pass_hat_k"]
        fit["joint_posterior"] = xr.DataTree(fit["posterior"].to_dataset()[names])
    return fit


def conjugate(data: bk.Outcomes, seed: int) -> xr.DataTree:
    """Draw from Beta(1 + c, 1 + n - c), and make a result of it, as `bayesatk.sample` does."""
    rng = np.random.default_rng([seed, 2])
    c, n = data.successes.values, data.trials.values
    p = rng.beta(1.0 + c, 1.0 + n - c, (CHAINS, DRAWS, *c.shape))
    # One system at a time, as `bayesatk.sample` takes them: draws of several are joint.
    own = [
        bk.from_draws(
            xr.DataTree.from_dict({"posterior": xr.Dataset({"p": (DIMS, p[:, :, [i]])})}),
            data.sel(system=[name]),
            METRICS,
            rng=seed + i,
        )["posterior"].to_dataset()
        for i, name in enumerate(data.systems)
    ]
    tree = bk.evaluate(data, METRICS, pooling="none", draws=4, rng=seed)
    tree = tree.drop_nodes(["closed_form", "closed_form_quantiles", "joint_posterior"])
    tree["posterior"] = xr.DataTree(xr.concat(own, "system", combine_attrs="drop_conflicts"))
    return tree


def changed(
    fit: xr.DataTree, group: str, change: Callable[[xr.Dataset], xr.Dataset]
) -> xr.DataTree:
    """Return a result with another group."""
    tree = fit.copy(deep=True)
    tree[group] = xr.DataTree(change(tree[group].to_dataset()))
    return tree


def _moved(statistic: str, by: str, share: float) -> Callable[[xr.DataTree], xr.DataTree]:
    """Return a fault: a statistic of one metric moved by a share of an sd, or of the width."""

    def change(closed: xr.Dataset) -> xr.Dataset:
        at = closed["pass_at_k"].sel(CELL)
        one = {name: float(at.sel(statistic=name)) for name in ("sd", "ci_lower", "ci_upper")}
        size = one["sd"] if by == "sd" else one["ci_upper"] - one["ci_lower"]
        closed["pass_at_k"].loc[CELL | {"statistic": statistic}] += share * size
        return closed

    return lambda fit: changed(fit, "closed_form", change)


def _difference(closed: xr.Dataset) -> xr.Dataset:
    drawn = closed["pass_at_k"].sel(k=4, target="questions")
    gap = drawn.sel(system="b") - drawn.sel(system="a")
    closed["pass_at_k"].loc[{"system": "b", "k": 4, "target": "questions"}] += (
        0.1 * gap.std().item()
    )
    return closed


def _permuted(joint: xr.Dataset) -> xr.Dataset:
    """Order the draws of the first system anew: nothing is left of the correlation."""
    order = np.random.default_rng(1).permutation(joint.sizes["draw"])
    first = joint.isel(system=[0])
    mixed = first.isel(draw=order).assign_coords(draw=first["draw"])
    return xr.concat([mixed, joint.isel(system=slice(1, None))], "system")


def _observed(closed: xr.Dataset) -> xr.Dataset:
    closed["pass_at_k"].loc[CELL | {"statistic": "estimate"}] += 0.1
    return closed


def _swapped_targets(closed: xr.Dataset) -> xr.Dataset:
    order = [*closed["target"].values][::-1]
    return closed.assign(
        pass_at_k=closed["pass_at_k"].sel(target=order).assign_coords(target=order[::-1])
    )


def _swapped_metrics(closed: xr.Dataset) -> xr.Dataset:
    one, two = (closed["pass_at_k"].sel(k=[4]).copy(), closed["pass_hat_k"].copy())
    closed["pass_hat_k"].loc[{"k": 4}] = one.sel(k=4)
    closed["pass_at_k"].loc[{"k": 4}] = two.sel(k=4)
    return closed


FAULTS: dict[str, Callable[[xr.DataTree], xr.DataTree]] = {
    "lower end by 10% of the width": _moved("ci_lower", "width", 0.1),
    "upper end by 10% of the width": _moved("ci_upper", "width", 0.1),
    "lower end by -10% of the width": _moved("ci_lower", "width", -0.1),
    "stored draws cubed": lambda fit: changed(fit, "posterior", lambda own: own**3),
    "mean by 0.1 sd": _moved("mean", "sd", 0.1),
    "sd by 5%": _moved("sd", "sd", 0.05),
    "difference by 0.1 sd": lambda fit: changed(fit, "joint_posterior", _difference),
    "joint draws permuted": lambda fit: changed(fit, "joint_posterior", _permuted),
    "observed value by 0.1": lambda fit: changed(fit, "closed_form", _observed),
    "metrics swapped": lambda fit: changed(fit, "closed_form", _swapped_metrics),
    "targets swapped": lambda fit: changed(fit, "closed_form", _swapped_targets),
}


def main() -> None:
    """Print how often each fault is caught, and how often there is a false alarm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--clean", type=int, default=40)
    parser.add_argument("--pymc", type=int, default=0)
    asked = parser.parse_args()
    caught, wrong = dict.fromkeys(FAULTS, 0), 0
    for seed in range(asked.clean):
        data = data_of(seed)
        exact, sampled = exact_result(data, seed, pooling="none"), conjugate(data, seed)
        wrong += bk.verify(exact, sampled).verdict != "agree"
        if seed < asked.seeds:
            for name, fault in FAULTS.items():
                caught[name] += bk.verify(fault(exact), sampled).verdict == "disagree"
    print(f"exact draws: {wrong} of {asked.clean} right results do not agree")
    for name, number in caught.items():
        print(f"  {name:32} caught in {number} of {asked.seeds}")
    for seed in range(asked.pymc):
        data = data_of(seed)
        options = {"difficulty": "beta"}
        sampled = bk.sample(data, METRICS, draws=DRAWS, rng=seed, progress=False, **options)
        exact = exact_result(data, seed, **options)
        found = bk.verify(exact, sampled)
        missed = [
            name
            for name, fault in FAULTS.items()
            if bk.verify(fault(exact), sampled).verdict != "disagree"
        ]
        print(f"PyMC, seed {seed}: {found.summary()} Missed: {missed}")


if __name__ == "__main__":
    main()
