"""When to stop an evaluation that grows: a rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import one_of, positive_number, proper_probability
from bayesatk.comparison.order.anytime import check_asked, e_value
from bayesatk.metrics.grid import one_metric
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGETS, metric_values


@dataclass(frozen=True)
class StoppingRule:
    """A rule that stops an evaluation when one system is ahead, or the interval is narrow enough.

    There are two kinds. ``"posterior"``: a system is ahead with a given posterior probability; the
    error rate grows with the number of looks.
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
