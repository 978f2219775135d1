"""Metrics for Inspect: exact posteriors of all epochs, written into the log and its viewer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

import bayesatk as bk
from bayesatk._tools.packages import INSPECT, require

if TYPE_CHECKING:
    import pandas as pd

require(*INSPECT)

from inspect_ai.scorer import Metric, SampleScore, metric  # noqa: E402

# Inspect imports this module whenever it looks for a metric, so the library is imported by what
# computes: `bk` imports names when they are used.
Scores = Mapping[Any, float] | Literal["numbers"] | None
# Scores of the marks of Inspect; 1 and 0 are equal to True and False.
_USUAL_SCORES = {"C": 1.0, "I": 0.0, True: 1.0, False: 0.0}
_SEED = 0  # of draws: rescoring a log gives the same numbers


def _of_epochs[**P](factory: Callable[P, Metric]) -> Callable[P, Metric]:
    """Register a metric that takes the score of every epoch, whatever reducer the task has."""
    return wraps(factory)(metric(scores="unreduced")(factory))


@_of_epochs
def evaluate(
    metrics: str | Sequence[str] = "pass@1",
    *,
    group: str | None = None,
    pooling: Literal["partial", "none", "complete"] = "partial",
    ci_prob: float = 0.95,
    scores: Scores = None,
) -> Metric:
    """Compute metrics of an Inspect task with their credible intervals, from all its epochs.

    Every epoch of a sample is a trial of a question: write ``Task(..., epochs=5)``, with any
    reducer, or none. (It asks Inspect for unreduced scores, so that ``Epochs(5, "collect")`` is not
    needed.)

    Parameters
    ----------
    metrics : str or sequence of str
        As in `bayesatk.evaluate`: ``"pass@1,4 pass^4 mean"``; ``"mean"`` is the mean score.
    group : str, optional
        Key of the samples' metadata, such as ``"category"``: every group is reported too.
    pooling : {"partial", "none", "complete"}
        As in `bayesatk.evaluate`.
    ci_prob : float
        Probability of the credible intervals.
    scores : mapping or "numbers", optional
        Score of every mark that may occur, as in ``{"C": 1, "P": 0.5, "I": 0}``; ``"numbers"``
        takes numbers as they are. Default: C and 1 are right, I and 0 are wrong.

    Returns
    -------
    inspect_ai.scorer.Metric
        Its values by name: ``pass@1``, the unbiased estimate; ``pass@1 questions mean``,
        ``pass@1 questions ci_lower``, ``pass@1 questions ci_upper`` (these samples);
        the same with ``population`` (samples like these); with `group`, also
        ``algebra: pass@1``, ``algebra: pass@1 questions mean``, ...

    See Also
    --------
    bayesatk.evaluate : computes them.

    Notes
    -----
    Samples that ended in an error and unscored samples are not counted, as in Inspect's own
    metrics, which report their number. The numbers are those of
    ``bayesatk.evaluate(bayesatk.load(log), metrics)``, where ``missing="ignore"`` leaves such
    samples out.

    Examples
    --------
    >>> from inspect_ai.scorer import Score
    >>> marks = [("q1", "C"), ("q2", "I"), ("q1", "C"), ("q2", "C")]  # two epochs
    >>> scores = [SampleScore(score=Score(value=mark), sample_id=name) for name, mark in marks]
    >>> values = evaluate("pass@1 pass^2", pooling="none")(scores)
    >>> values["pass@1"], values["pass^2"]  # (1 + 1/2)/2 and (1 + 0)/2
    (0.75, 0.5)
    >>> round(values["pass@1 questions mean"], 4)  # (3/4 + 2/4)/2, with a uniform prior
    0.625
    """
    _check(metrics)

    def values(scores_of_epochs: list[SampleScore]) -> dict[str, float]:
        data = _outcomes(scores_of_epochs, scores, group)
        grouping: Any = {} if group is None else {"group": "group"}
        fit = bk.evaluate(
            data, metrics, pooling=pooling, ci_prob=ci_prob, rng=_SEED, progress=False, **grouping
        )
        tables = [bk.table(fit)]
        if group is not None:
            tables.append(bk.table(fit, by="group"))
        return _by_name(*tables)

    return values


@_of_epochs
def compare(
    baseline: str,
    metrics: str | Sequence[str] = "pass@1",
    *,
    rope: float = 0.0,
    ci_prob: float = 0.95,
    scores: Scores = None,
) -> Metric:
    """Compare an Inspect task with the log of a baseline: paired differences, sample by sample.

    Parameters
    ----------
    baseline : str
        Log of one run of the same samples, as `bayesatk.load` reads it.
    metrics : str or sequence of str
        As in `bayesatk.evaluate`.
    rope : float
        Half-width of the region of practical equivalence.
    ci_prob : float
        Probability of the credible intervals.
    scores : mapping or "numbers", optional
        As for `evaluate`; of the baseline's marks too.

    Returns
    -------
    inspect_ai.scorer.Metric
        Its values by name, of this task minus the baseline:
        ``pass@1 difference questions mean``, ``... ci_lower``, ``... ci_upper`` and
        ``... prob_greater``, the probability that this task is better; and the same with
        ``population`` (samples like these).

    See Also
    --------
    bayesatk.compare : computes them.
    """
    _check(metrics)
    earlier = _labelled_by_text(bk.load(baseline, scores=scores))

    def values(scores_of_epochs: list[SampleScore]) -> dict[str, float]:
        from bayesatk.comparison.gates.gate import joined_outcomes

        data = joined_outcomes(_outcomes(scores_of_epochs, scores, None), earlier)
        fit = bk.evaluate(data, metrics, ci_prob=ci_prob, rng=_SEED, progress=False)
        compared = bk.compare(fit, rope=rope)
        new, old = data.systems
        rows = bk.table(compared, "comparison", of=new, against=old)
        rows["metric"] += " difference"
        return _by_name(rows)

    return values


def _check(metrics: str | Sequence[str]) -> None:
    """Refuse what is no metric, before anything runs."""
    from bayesatk.metrics.grid import parse

    parse(metrics)


def _by_name(*tables: "pd.DataFrame") -> dict[str, float]:
    """Return the numbers of tables by name."""
    from bayesatk.results.tables import values_by_name

    return {name: value for rows in tables for name, value in values_by_name(rows).items()}


def _outcomes(epochs: list[SampleScore], scores: Scores, group: str | None) -> "bk.Outcomes":
    """Read the scores of all epochs as trials of questions."""
    if not epochs:
        raise bk.OutcomeError("scores must have at least one scored sample; got none.")
    import pandas as pd

    from bayesatk.io.log_rows import CORRECT_INCORRECT

    rows = pd.DataFrame(_rows(epochs, scores, group))
    scale: Any = scores
    if scores is None and any(isinstance(mark, str) for mark in rows["outcome"]):
        scale = CORRECT_INCORRECT  # as `bayesatk.load` has them
    return bk.tally(rows, scores=scale, group=None if group is None else "group")


def _rows(epochs: list[SampleScore], scores: Scores, group: str | None) -> Iterator[dict[str, Any]]:
    """Yield question, outcome and group of every scored epoch."""
    from bayesatk.data.validation import shown

    score_of_mark = _USUAL_SCORES if scores is None else scores
    for epoch in epochs:
        value: Any = epoch.score.value
        if isinstance(score_of_mark, Mapping) and value not in score_of_mark:
            raise bk.OutcomeError(
                f"scores must have a score for every mark; got {shown(value)} of sample "
                f"{shown(epoch.sample_id)}, and know {list(score_of_mark)}. Pass scores={{'C': 1, "
                "'P': 0.5, 'I': 0}, say, or for numbers of metrics scores='numbers'."
            )
        row = {"question": str(epoch.sample_id), "outcome": value}
        if group is not None:
            metadata = epoch.sample_metadata or {}
            if group not in metadata:
                raise bk.OutcomeError(
                    f"group must be a key of every sample's metadata; {group!r} is none of sample "
                    f"{shown(epoch.sample_id)}, which has {list(metadata)}."
                )
            row["group"] = str(metadata[group])
        yield row


def _labelled_by_text(outcomes: "bk.Outcomes") -> "bk.Outcomes":
    """Return outcomes whose questions are labelled by text, as samples are here."""
    labels = [str(label) for label in outcomes.dataset["question"].values.tolist()]
    return replace(outcomes, dataset=outcomes.dataset.assign_coords(question=labels))
