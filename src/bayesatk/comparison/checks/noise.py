"""`noise_floor`: the difference of two runs of the same system by chance alone."""

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arguments import real_number, whole_number
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.comparison.checks.question_table import chosen_metric, right_wrong_model
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.core.question.laws import finite
from bayesatk.core.runs.run_differences import run_difference
from bayesatk.metrics.grid import Metric
from bayesatk.results.result import Result

_MOST_TRIALS = 256  # of a question in a run: the work grows with their square


def noise_floor(
    fit: xr.DataTree | Result,
    metric: str | Metric | None = None,
    *,
    trials: int | None = None,
    prob: float = 0.95,
) -> pd.DataFrame:
    """Bound the difference between two runs of the same system on these questions.

    It is due to chance alone: the success probabilities are the same in both runs, and the trials
    are new.

    Parameters
    ----------
    fit : xarray.DataTree
        Of right and wrong, from `bayesatk.evaluate` or `bayesatk.sample`; only its data, pooling
        and prior are used.
    metric : str or Metric, optional
        The metric that both runs report; default: the first of the result.
    trials : int, optional
        Trials of every question in a run; default: as many as the metric judges, one for
        ``"pass@1"``.
    prob : float
        Posterior predictive probability that the difference does not exceed the floor.

    Returns
    -------
    pandas.DataFrame
        One row per system: ``metric``, ``trials``, ``sd`` of the difference, ``floor``, the
        smallest number that the absolute difference does not exceed with probability ``prob``,
        ``prob_within``, the exact probability of that (it is more than ``prob`` where differences
        come in steps), and a ``sentence``.

    See Also
    --------
    bayesatk.compare : whether the difference of two systems is more than noise.
    bayesatk.question_table : which questions make the noise.

    Notes
    -----
    The posterior predictive distribution of the difference of two new runs: the success
    probabilities of these questions are those of the posterior, the same for both runs, and all
    trials independent. It is exact: the difference lies on a lattice, and its probabilities are the
    inverse Fourier transform of the characteristic function, a product over the distinct counts
    given each node of the difficulty distribution. The score of a run is the unbiased estimate.

    A difference beyond the floor between two *versions* of a system is not yet a claim about them:
    `bayesatk.compare` weighs the trials of both.

    Examples
    --------
    >>> import bayesatk
    >>> fit = bayesatk.evaluate([[1, 0]], "pass@1", pooling="none", rng=1)  # p is Beta(2, 2)
    >>> row = bayesatk.noise_floor(fit, prob=0.5).iloc[0]
    >>> float(row["floor"]), round(float(row["prob_within"]), 12)  # 1 - 2 E p (1 - p) = 1 - 2/5
    (0.0, 0.6)
    """
    own = Result.of(fit)
    own.require("noise_floor")
    one = chosen_metric(own, metric)
    n = one.k if trials is None else whole_number("trials", trials, one.k)
    if n > _MOST_TRIALS:
        what = Argument("metric") if trials is None else Argument("trials")
        rule = f" must ask for at most {_MOST_TRIALS} trials of a question in a run; got {n}."
        raise ArgumentError(what, rule)
    if not 0.0 < real_number("prob", prob) < 1.0:
        rule = f" must lie strictly between 0 and 1; got {prob!r}. Try 0.95."
        raise ArgumentError(Argument("prob"), rule)
    values = finite(one.credit, np.arange(n + 1), np.full(n + 1, n))
    rows = []
    for system, name in enumerate(own.systems):
        model = right_wrong_model(own, system)
        difference, chance = run_difference(model.nodes, model.states, values)
        upto = np.cumsum(chance)
        # Rounding of the sum must not take the floor a step too far.
        place = int(np.searchsorted(upto, prob - 1e-12))
        place = min(place, len(upto) - 1)
        row = {
            "system": name, "metric": one.label, "trials": n,
            "sd": float(np.sqrt(chance @ difference**2)), "floor": float(difference[place]),
            "prob_within": float(min(upto[place], 1.0)),
        }  # fmt: skip
        rows.append({**row, "sentence": _sentence(row, prob)})
    return pd.DataFrame(rows)


def _sentence(row: dict[str, object], prob: float) -> str:
    trials = "one trial" if row["trials"] == 1 else f"{row['trials']} trials"
    points = 100.0 * float(row["floor"])  # type: ignore[arg-type]
    return (
        f"Two runs of {named(row['system'])} with {trials} of each of these questions differ in "
        f"{row['metric']} by up to {points:.1f} points in {100 * prob:g}% of cases, by chance "
        "alone."
    )
