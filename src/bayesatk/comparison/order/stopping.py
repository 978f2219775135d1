"""When to stop an evaluation that grows: a rule, and what it does in the long run, simulated."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesatk._tools.arrays import Array, Indices, Ints
from bayesatk._tools.messages import one_of, positive_number, proper_probability
from bayesatk.comparison.order.anytime import check_asked, e_value
from bayesatk.metrics.grid import one_metric
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values


@dataclass(frozen=True)
class StoppingRule:
    """A rule that stops an evaluation when one system is ahead, or the interval is narrow enough.

    There are two kinds. ``"posterior"``: a system is ahead with a given posterior probability; the
    error rate grows with the number of looks, and `bayesatk.decide.simulate_stopping` estimates it.
    ``"anytime"``: the e-value of `bayesatk.decide.e_value` reaches ``1/alpha``; the probability,
    over the trials, of ever calling one of two equal systems ahead is at most `alpha` for any
    number of looks.

    Parameters
    ----------
    metric : str, optional
        One metric at one k. It is optional for kind "anytime". Equal systems are then those with
        the same success probability on every question; with a metric, those with the same mean on
        questions like these, which must be in random order.
    ci_prob : float
        For kind "posterior": probability that the leader is better, in (0.5, 1).
    width : float, optional
        Stop too if the interval of the difference is at most this wide, in units of the metric.
    target : {"population", "questions"}
        For kind "posterior": ``"population"``: the mean over questions like these;
        ``"questions"``: over these questions.
    kind : {"posterior", "anytime"}
        See above.
    alpha : float
        For kind "anytime": error rate of every pair, and one minus the coverage of the interval.
    trials : int, optional
        For kind "anytime", which needs it: the number of trials of every question and system,
        fixed before the evaluation. Questions are used in the order of the data, each once it has
        this number.
    threshold : float, optional
        For kind "anytime": decide for each system whether its mean is above or below this value.
    sd : float
        For kind "anytime" without a metric: as in `bayesatk.decide.e_value`.

    See Also
    --------
    bayesatk.decide.e_value : the evidence behind kind "anytime".
    bayesatk.decide.simulate_stopping : error rates of a rule.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 30, "b": [[1, 0, 1, 0]] * 30}
    >>> compared = bayesatk.compare(bayesatk.evaluate(runs, "bayes", rng=1), rng=1)
    >>> StoppingRule("bayes", ci_prob=0.99).decide(compared)["stop"].tolist()
    [True]
    >>> StoppingRule("bayes", kind="anytime", trials=4).decide(runs)["reason"].tolist()
    ['a is ahead']
    """

    metric: str | None = None
    ci_prob: float = 0.99
    width: float | None = None
    target: Literal["population", "questions"] = "population"
    kind: Literal["posterior", "anytime"] = "posterior"
    alpha: float = 0.05
    trials: int | None = None
    threshold: float | None = None
    sd: float = 1.0

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ("posterior", "anytime"))
        if self.metric is not None:
            one_metric(self.metric)
        proper_probability("ci_prob", self.ci_prob, 0.95, least=0.5)
        if self.width is not None:
            positive_number("width", self.width, "Try 0.1.")
        one_of("target", self.target, TARGETS)
        proper_probability("alpha", self.alpha)
        if self.kind == "anytime":
            self._check_anytime()
        elif self.metric is None:
            raise ValueError("metric must be given for kind='posterior', as in 'pass@1'; got None.")
        elif self.trials is not None or self.threshold is not None:
            raise ValueError(
                "trials and threshold must be left out for kind='posterior'; got "
                f"trials={self.trials}, threshold={self.threshold}. Pass kind='anytime'."
            )

    def _check_anytime(self) -> None:
        if self.trials is None:
            raise ValueError(
                "trials must be given for kind='anytime': the number of trials of every question "
                "and system, fixed before any is seen; got None. Pass trials=4, say."
            )
        check_asked(self.metric, self.threshold, self.trials, self.sd)

    def decide(self, compared: object, earlier: Sequence[object] | None = None) -> pd.DataFrame:
        """Apply the rule: one row per pair, or per system if there is a threshold.

        For kind "posterior" a system is called ahead on questions like these only if it is also
        more likely than not to be ahead on these questions. Otherwise a difference that comes from
        the prior alone, as where all trials succeed, could stop the evaluation.

        Parameters
        ----------
        compared : xarray.DataTree
            From `bayesatk.compare`, with the metric. For kind "anytime": any result or data, with
            everything that was evaluated so far.
        earlier : sequence, optional
            For kind "anytime": the earlier looks, if any, as in `bayesatk.decide.e_value`. Pass
            questions only if they are complete, in their order.

        Returns
        -------
        pandas.DataFrame
            ``system``, ``other`` (or ``threshold``), ``stop``, and ``reason``: who is ahead (or
            above, or below), "precise enough" or "go on".
        """
        if self.kind == "anytime":
            return self._by_evidence(compared, earlier)
        result = Result.of(compared, "comparison")  # type: ignore[arg-type]
        if one_metric(self.metric) not in result.metrics:
            raise ValueError(
                f"compared must have {self.metric}, which the rule is about; it has "
                f"{' '.join(metric.label for metric in result.metrics)}. Evaluate it."
            )
        values = metric_values(result.group("comparison"), one_metric(self.metric))
        systems = values["system"].values.tolist()
        rows = []
        for first, second in combinations(systems, 2):
            pair = values.sel(system=first, other=second)
            target_values = pair.sel(target=self.target)
            low, high = (
                float(target_values.sel(contrast=f"ci_{end}")) for end in ("lower", "upper")
            )
            ahead = [
                f"{leader} is ahead"
                for leader, rival in ((first, second), (second, first))
                if self._is_ahead(values.sel(system=leader, other=rival, contrast="prob_greater"))
            ]
            decision = self._decision(ahead[0] if ahead else "", low, high)
            rows.append({"system": first, "other": second, **decision})
        return pd.DataFrame(rows)

    def _by_evidence(self, data: object, earlier: Sequence[object] | None) -> pd.DataFrame:
        """Decide by e-values."""
        evidence = e_value(
            data, self.metric, threshold=self.threshold, sd=self.sd, alpha=self.alpha,
            trials=self.trials if earlier is None else None, earlier=earlier or (),
        )  # fmt: skip
        rows = []
        against = "other" if self.threshold is None else "threshold"
        for _, row in evidence.iterrows():
            call = int(self.call(row[["log_e_above", "log_e_below"]].to_numpy(float)))
            reason = ""
            if call and self.threshold is not None:
                reason = f"{row['system']} is {'above' if call > 0 else 'below'} {self.threshold:g}"
            elif call:
                reason = f"{row['system'] if call > 0 else row['other']} is ahead"
            decision = self._decision(reason, row["ci_lower"], row["ci_upper"])
            rows.append({"system": row["system"], against: row[against], **decision})
        return pd.DataFrame(rows)

    def _decision(self, called: str, low: float, high: float) -> dict[str, object]:
        """Return whether to stop and why: what was called if anything, or the interval's width."""
        narrow = self.width is not None and high - low <= self.width
        reason = called or ("precise enough" if narrow else "go on")
        return {"stop": bool(called or narrow), "reason": reason}

    def call(self, log_e: Array) -> Ints:
        """Return 1 where log e-values call the first system ahead, -1 the second, 0 neither.

        The last axis has the one-sided log e-values (above, below); the mean of both e-values is
        evidence against equal systems. Each kind of error has probability of at most `alpha`.
        """
        above, below = log_e[..., 0], log_e[..., 1]
        enough = np.logaddexp(above, below) - np.log(2.0) >= -np.log(self.alpha)
        return np.where(enough, np.where(above > below, 1, -1), 0)

    def _is_ahead(self, prob_greater: xr.DataArray) -> bool:
        """Whether a system is ahead on the target, and leads on the questions that were asked."""
        ahead = float(prob_greater.sel(target=self.target)) >= self.ci_prob
        return ahead and float(prob_greater.sel(target="questions")) > 0.5


@dataclass(frozen=True)
class StoppingStudy:
    """Simulated evaluations with repeated looks at the data, made by `simulate_stopping`.

    Parameters
    ----------
    metric, target : str
        What was simulated; a rule about anything else is refused.
    looks : tuple of int
        Number of questions at every look.
    prob_greater, mean, lower, upper, truth : ndarray, shape (replications, looks)
        Posterior of the difference (the first system minus the second) and its true value.
    log_e : ndarray, shape (replications, looks, 2, 2), optional
        Log e-values against identical systems and against equal means (third axis), for the first
        and for the second system being better (last axis). Rules of kind "anytime" need them.
    trials : int, optional
        Trials of every question and system; rules of kind "anytime" must have the same.
    sd : float
        Sd of the prior of the log odds ratio; rules of kind "anytime" must have the same.

    See Also
    --------
    StoppingRule : the rules that it evaluates.
    """

    metric: str
    target: str
    looks: tuple[int, ...]
    prob_greater: Array
    mean: Array
    lower: Array
    upper: Array
    truth: Array
    log_e: Array | None = None
    trials: int | None = None
    sd: float = 1.0

    def table(self, rule: StoppingRule) -> pd.DataFrame:
        """Return the state of the simulated evaluations at each look.

        Returns
        -------
        pandas.DataFrame
            ``questions``; the shares of all evaluations that up to this look have been decided for
            the better system (``right``), for the worse or between equal ones (``wrong``), have
            stopped as ``precise`` enough, or are still ``running``.
        """
        stop_look, kind = self._outcome(rule)
        rows = []
        for look, questions in enumerate(self.looks):
            by_then = stop_look <= look
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
            ``right``, ``wrong`` and ``undecided`` at the end; mean number of ``questions``;
            ``coverage`` of the 95% interval and ``bias`` of the mean where the evaluation stopped;
            ``right_at_end`` and ``wrong_at_end`` with a single look, at the end.
        """
        stop_look, kind = self._outcome(rule)
        rows = np.arange(len(stop_look))
        truth = self.truth[rows, stop_look]
        inside = (self.lower[rows, stop_look] <= truth) & (truth <= self.upper[rows, stop_look])
        last = self._calls(rule)[:, -1]
        better = np.sign(self.truth[:, -1])
        return pd.Series(
            {
                "right": float((kind == "right").mean()),
                "wrong": float((kind == "wrong").mean()),
                "undecided": float(np.isin(kind, ["running", "precise"]).mean()),
                "questions": float(np.array(self.looks)[stop_look].mean()),
                "coverage": float(inside.mean()),
                "bias": float((self.mean[rows, stop_look] - truth).mean()),
                "right_at_end": float(((last != 0) & (last == better)).mean()),
                "wrong_at_end": float(((last != 0) & (last != better)).mean()),
            }
        )

    def threshold(self, alpha: float = 0.05) -> float:
        """Return the smallest ``ci_prob`` at which at most a share ``alpha`` is decided.

        For a study of equal systems, where every decision is wrong: it is the ``ci_prob`` that
        keeps the error rate at ``alpha`` with all these looks.
        """
        proper_probability("alpha", alpha)
        furthest = np.maximum(self.prob_greater, 1.0 - self.prob_greater).max(axis=1)
        allowed = int(np.floor(alpha * len(furthest)))
        quantile = np.sort(furthest)[len(furthest) - 1 - allowed]
        return float(min(np.nextafter(quantile, 2.0), 1.0 - 1e-12))

    def _calls(self, rule: StoppingRule) -> Ints:
        """1 where the first is ahead, -1 where the second is, 0 else; (replications, looks)."""
        if rule.metric is not None:
            target = rule.target if rule.kind == "posterior" else "population"
            if (one_metric(rule.metric).label, target) != (self.metric, self.target):
                raise ValueError(
                    f"rule must be about {self.metric} on target {self.target!r}, which this study "
                    f"simulated; got {rule.metric!r} on {target!r}. Simulate it anew."
                )
        if rule.kind == "anytime":
            return self._anytime_calls(rule)
        ahead = self.prob_greater >= rule.ci_prob
        return ahead.astype(np.int64) - (self.prob_greater <= 1.0 - rule.ci_prob)

    def _anytime_calls(self, rule: StoppingRule) -> Ints:
        rule_settings = (rule.trials, rule.sd, rule.threshold)
        if (
            self.log_e is None
            or rule_settings != (self.trials, self.sd, None)
            or rule.width is not None
        ):
            raise ValueError(
                "rule of kind 'anytime' must have the trials and the sd of the study, no threshold "
                f"and no width; the study has trials={self.trials}, sd={self.sd:g}, the rule "
                f"trials={rule.trials}, sd={rule.sd:g}, threshold={rule.threshold}, "
                f"width={rule.width}. Simulate it anew, or change the rule."
            )
        return rule.call(self.log_e[:, :, 0 if rule.metric is None else 1])

    def _outcome(self, rule: StoppingRule) -> tuple[Indices, NDArray[np.str_]]:
        """Look at which every evaluation ends, and how."""
        calls = self._calls(rule)
        narrow = np.zeros(calls.shape, bool)
        if rule.width is not None:
            narrow = self.upper - self.lower <= rule.width
        stops = (calls != 0) | narrow
        stop_look = np.where(stops.any(axis=1), stops.argmax(axis=1), len(self.looks) - 1)
        rows = np.arange(len(stop_look))
        call, better = calls[rows, stop_look], np.sign(self.truth[rows, stop_look])
        kind = np.where(call == better, "right", "wrong")
        kind = np.where(call == 0, np.where(narrow[rows, stop_look], "precise", "running"), kind)
        return stop_look, kind
