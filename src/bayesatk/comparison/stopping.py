"""When to stop an evaluation that grows: a rule, and what it does in the long run, simulated."""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arguments import one_of, proper_probability
from bayesatk.metrics.grid import Metric, parse
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StoppingRule:
    """Stop when one system is ahead with this probability, or the interval is this narrow.

    Parameters
    ----------
    metric : str
        One metric at one k.
    prob : float
        Probability that the leader is better, in (0.5, 1).
    width : float, optional
        Width of the interval of the difference at which more data would add too little.
    target : {"population", "questions"}
        Questions like these, or these questions.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 30, "b": [[1, 0, 1, 0]] * 30}
    >>> compared = bayesatk.compare(bayesatk.evaluate(runs, "bayes", rng=1), rng=1)
    >>> StoppingRule("bayes", prob=0.99).decide(compared)["stop"].tolist()
    [True]
    """

    metric: str
    prob: float = 0.99
    width: float | None = None
    target: Literal["population", "questions"] = "population"

    def __post_init__(self) -> None:
        one_metric(self.metric)
        proper_probability("prob", self.prob, 0.95, least=0.5)
        if self.width is not None and not self.width > 0.0:
            raise ValueError(f"width must be > 0; got {self.width}.")
        one_of("target", self.target, TARGETS)

    def decide(self, compared: xr.DataTree | Result) -> pd.DataFrame:
        """Apply the rule to a comparison: one row per pair.

        A system is called ahead on questions like these only if it is also the likelier to be
        ahead on the questions that were asked: a lead that only the model sees (its prior on how
        questions differ, where all trials succeed) stops nothing.

        Parameters
        ----------
        compared : xarray.DataTree
            From `bayesatk.compare`, with the metric.

        Returns
        -------
        pandas.DataFrame
            ``system``, ``other``, ``stop``, and ``reason``: who is ahead, "precise
            enough" or "go on".
        """
        read = Result.of(compared, "comparison")
        if one_metric(self.metric) not in read.metrics:
            raise ValueError(
                f"compared must have {self.metric}, which the rule is about; it has "
                f"{' '.join(one.label for one in read.metrics)}. Evaluate it."
            )
        values = metric_values(read.group("comparison"), one_metric(self.metric))
        systems = values["system"].values.tolist()
        rows = []
        for first, second in combinations(systems, 2):
            pair = values.sel(system=first, other=second)
            own = pair.sel(target=self.target)
            low, high = (float(own.sel(contrast=f"ci_{end}")) for end in ("lower", "upper"))
            narrow = self.width is not None and high - low <= self.width
            reason = "precise enough" if narrow else "go on"
            ahead = [
                name
                for name, other in ((first, second), (second, first))
                if self._is_ahead(values.sel(system=name, other=other, contrast="prob_greater"))
            ]
            if ahead:
                reason = f"{ahead[0]} is ahead"
            row = {"system": first, "other": second, "stop": bool(ahead or narrow)}
            rows.append(row | {"reason": reason})
        return pd.DataFrame(rows)

    def _is_ahead(self, prob_greater: xr.DataArray) -> bool:
        """Whether a system is ahead on the target, and leads on the questions that were asked."""
        ahead = float(prob_greater.sel(target=self.target)) >= self.prob
        return ahead and float(prob_greater.sel(target="questions")) > 0.5


@dataclass(frozen=True)
class StoppingStudy:
    """Simulated evaluations that grow, looked at now and then; made by `simulate_stopping`.

    Parameters
    ----------
    metric, target : str
        What was simulated; a rule about anything else is refused.
    looks : tuple of int
        Questions at every look.
    prob_greater, mean, lower, upper, truth : ndarray, shape (replications, looks)
        Posterior of the difference (the first system minus the second) and its true value.
    """

    metric: str
    target: str
    looks: tuple[int, ...]
    prob_greater: Array
    mean: Array
    lower: Array
    upper: Array
    truth: Array

    def table(self, rule: StoppingRule) -> pd.DataFrame:
        """Return what the rule does, look by look.

        Returns
        -------
        pandas.DataFrame
            ``questions``; the shares of all evaluations that have by then been decided for the
            better system (``right``), for the worse or between equal ones (``wrong``), stopped as
            ``precise`` enough, or are still ``running``.
        """
        when, kind = self._outcome(rule)
        rows = []
        for look, questions in enumerate(self.looks):
            by_then = when <= look
            rows.append(
                {
                    "questions": questions,
                    **{
                        name: float((by_then & (kind == name)).mean())
                        for name in ("right", "wrong", "precise")
                    },
                    "running": float(1.0 - (by_then & (kind != "running")).mean()),
                }
            )
        return pd.DataFrame(rows)

    def summary(self, rule: StoppingRule) -> pd.Series:
        """Return the operating characteristics of the rule.

        Returns
        -------
        pandas.Series
            ``right``, ``wrong`` and ``undecided`` at the end; ``questions`` asked on average;
            ``coverage`` of the 95% interval and ``bias`` of the mean where the evaluation stopped;
            ``right_at_end`` and ``wrong_at_end`` had there been one look, at the last.
        """
        when, kind = self._outcome(rule)
        rows = np.arange(len(when))
        truth = self.truth[rows, when]
        inside = (self.lower[rows, when] <= truth) & (truth <= self.upper[rows, when])
        last = self._calls(rule)[:, -1]
        better = np.sign(self.truth[:, -1])
        return pd.Series(
            {
                "right": float((kind == "right").mean()),
                "wrong": float((kind == "wrong").mean()),
                "undecided": float(np.isin(kind, ["running", "precise"]).mean()),
                "questions": float(np.array(self.looks)[when].mean()),
                "coverage": float(inside.mean()),
                "bias": float((self.mean[rows, when] - truth).mean()),
                "right_at_end": float(((last != 0) & (last == better)).mean()),
                "wrong_at_end": float(((last != 0) & (last != better)).mean()),
            }
        )

    def threshold(self, alpha: float = 0.05) -> float:
        """Return the smallest ``prob`` at which a share ``alpha`` of these is decided at all.

        For a study of equal systems: looking again and again makes false decisions more likely
        than one look would; this is the price.
        """
        proper_probability("alpha", alpha)
        furthest = np.maximum(self.prob_greater, 1.0 - self.prob_greater).max(axis=1)
        allowed = int(np.floor(alpha * len(furthest)))
        found = np.sort(furthest)[len(furthest) - 1 - allowed]
        return float(min(np.nextafter(found, 2.0), 1.0 - 1e-12))

    def _calls(self, rule: StoppingRule) -> NDArray[np.int64]:
        """1 where the first is ahead, -1 where the second is, 0 else; (replications, looks)."""
        if (one_metric(rule.metric).label, rule.target) != (self.metric, self.target):
            raise ValueError(
                f"rule must be about {self.metric} on target {self.target!r}, which this study "
                f"simulated; got {rule.metric!r} on {rule.target!r}. Simulate it anew."
            )
        ahead = self.prob_greater >= rule.prob
        return ahead.astype(np.int64) - (self.prob_greater <= 1.0 - rule.prob)

    def _outcome(self, rule: StoppingRule) -> tuple[NDArray[np.intp], NDArray[np.str_]]:
        """Look at which every evaluation ends, and how."""
        calls = self._calls(rule)
        narrow = np.zeros(calls.shape, bool)
        if rule.width is not None:
            narrow = self.upper - self.lower <= rule.width
        stops = (calls != 0) | narrow
        when = np.where(stops.any(axis=1), stops.argmax(axis=1), len(self.looks) - 1)
        rows = np.arange(len(when))
        call, better = calls[rows, when], np.sign(self.truth[rows, when])
        kind = np.where(call == better, "right", "wrong")
        kind = np.where(call == 0, np.where(narrow[rows, when], "precise", "running"), kind)
        return when, kind


def one_metric(metric: object) -> Metric:
    """Return the one metric of right and wrong that is meant, or refuse."""
    (chosen, *others) = parse(metric)  # type: ignore[arg-type]
    if others or chosen.voted:
        raise ValueError(f"metric must be one metric of right and wrong at one k; got {metric!r}.")
    return chosen
