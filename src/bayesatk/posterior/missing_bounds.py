"""A result twice more: with every missing trial wrong, and with every one right."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import xarray as xr

from bayesatk._tools.messages import Argument
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.validation import OutcomeError
from bayesatk.results.result import Result

ENDS = ("wrong", "right")


def brackets_missing[**Given](
    run: Callable[Given, xr.DataTree],
) -> Callable[Given, xr.DataTree]:
    """Make an evaluation bracket what missing outcomes could be, where the data ask for it."""

    @wraps(run)
    def wrapped(*args: Given.args, **options: Given.kwargs) -> xr.DataTree:
        data: Any = args[0] if args else options.get("data")
        fit = run(*args, **options)
        asked = isinstance(data, Outcomes) and data.dataset.attrs["missing_policy"] == "bounds"
        if asked and data.dataset["missing"].values.any():
            fit["missing_bounds"] = xr.DataTree(_ends(run, data, fit, args, options))
        return fit

    return wrapped


def _ends(
    run: Callable[..., xr.DataTree], data: Outcomes, fit: xr.DataTree, args: Any, options: Any
) -> xr.Dataset:
    """Return the statistics of both ends, along a dimension of them."""
    own = Result.of(fit)
    if own.voted:
        raise OutcomeError(
            Argument("missing", "bounds"),
            " must be left out for votes between answers: what a missing trial would have "
            "answered decides either way. Use ",
            Argument("missing", "ignore"), ".",
        )  # fmt: skip
    seed = str(fit.attrs.get("seed"))
    changed = {
        **options,
        "rng": int(seed) if seed.isdecimal() else 0,
        "keep": (),
        "progress": False,
    }
    changed.pop("data", None)
    found = []
    for each in data.bounds():
        exact = run(each, *args[1:], **changed)["closed_form"].to_dataset()
        kept = [
            name
            for name, values in exact.data_vars.items()
            if {"statistic", "target", "system"} <= set(values.dims)
        ]
        found.append(exact[kept].drop_vars("question", errors="ignore"))
    return xr.concat(found, xr.Variable("missing_trials", list(ENDS)), join="outer")
