"""Metrics for lm-evaluation-harness: named in the YAML of a task, computed from all repeats."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import bayesatk as bk

Pooling = Literal["partial", "none", "complete"]
_SEED = 0  # of draws: the same samples give the same numbers


class _Request(NamedTuple):
    """What is evaluated."""

    metrics: str
    pooling: Pooling
    ci_prob: float


class Marks(list[int]):
    """Marks of the repeats of one document, and the number that is reported of all documents.

    lm-eval keeps what a metric returns for a document, logs it, and passes those of all documents
    to the aggregation: as lists they are logged as marks, which `bayesatk.load` reads.
    """

    def __init__(self, marks: Sequence[int], name: str, request: _Request) -> None:
        super().__init__(marks)
        self.name, self.request = name, request


def evaluate(
    references: Sequence[Any],
    predictions: Sequence[Any],
    metrics: str = "pass@1",
    *,
    correct: Callable[[Any, Any], object] | None = None,
    pooling: Pooling = "partial",
    ci_prob: float = 0.95,
) -> dict[str, Marks]:
    """Mark the repeats of a document, as the ``metric`` of a task of lm-evaluation-harness.

    lm-eval calls it for every document; `aggregate` then computes the numbers. In the YAML of the
    task, with filters that keep all repeats::

        repeats: 5
        filter_list:
          - name: repeats
            filter: [{function: take_first_k, k: 5}]
        metric_list:
          - metric: !function bayesatk.lm_eval.evaluate
            aggregation: !function bayesatk.lm_eval.aggregate
            higher_is_better: true
            metrics: pass@1,4 pass^4

    Parameters
    ----------
    references : sequence
        The target of the document, alone.
    predictions : sequence
        The list of its filtered responses, alone.
    metrics : str
        As in `bayesatk.evaluate`.
    correct : callable, optional
        ``correct(reference, response)`` says whether a response is right:
        ``correct: !function utils.same_number``. Default: whether the two are equal.
    pooling : {"partial", "none", "complete"}
        As in `bayesatk.evaluate`.
    ci_prob : float
        Probability of the credible intervals.

    Returns
    -------
    dict
        Marks of the repeats, 1 or 0, for each number that the results will have: ``pass@1``, the
        unbiased estimate; ``pass@1 questions mean``, ``pass@1 questions ci_lower``,
        ``pass@1 questions ci_upper`` (these documents), and the same with ``population`` (documents
        like these).

    Raises
    ------
    ValueError
        If a filter left one response, or there are several targets.

    Examples
    --------
    >>> marks = evaluate(["5"], [["5", "4", "5"]], "pass@1")
    >>> marks["pass@1"], list(marks)[1:3]
    ([1, 0, 1], ['pass@1 questions mean', 'pass@1 questions ci_lower'])
    """
    from bayesatk.metrics.grid import parse
    from bayesatk.results.schema import TARGETS

    (reference,), (responses,) = references, predictions
    if not isinstance(responses, list | tuple):
        raise ValueError(
            "predictions must have all repeats of a document; a filter left one response. Add to "
            "filter_list: {name: repeats, filter: [{function: take_first_k, k: REPEATS}]}."
        )
    judge = correct or (lambda target, response: target == response)
    marks = [int(bool(judge(reference, response))) for response in responses]
    request = _Request(metrics, pooling, ci_prob)
    names = [
        name
        for metric in parse(metrics)
        for name in (
            metric.label,
            *(
                f"{metric.label} {target} {statistic}"
                for target in TARGETS
                for statistic in ("mean", "ci_lower", "ci_upper")
            ),
        )
    ]
    return {name: Marks(marks, name, request) for name in names}


def pass_at_k(
    references: Sequence[Any], predictions: Sequence[Any], k: int | list[int] = 1, **options: Any
) -> dict[str, Marks]:
    """Mark the repeats of a document for pass@k: ``k: [1, 4]``; otherwise as `evaluate`.

    Examples
    --------
    >>> list(pass_at_k(["5"], [["5", "4"]], k=[1, 2]))[::7]
    ['pass@1', 'pass@2']
    """
    return evaluate(references, predictions, f"pass@{_listed(k)}", **options)


def pass_hat_k(
    references: Sequence[Any], predictions: Sequence[Any], k: int | list[int] = 1, **options: Any
) -> dict[str, Marks]:
    """Mark the repeats of a document for pass^k: ``k: [1, 4]``; otherwise as `evaluate`.

    Examples
    --------
    >>> pass_hat_k(["5"], [["5", "4"]], k=2)["pass^2"]
    [1, 0]
    """
    return evaluate(references, predictions, f"pass^{_listed(k)}", **options)


def aggregate(items: Sequence[Marks]) -> float:
    """Compute one number from the marks of all documents, as the ``aggregation`` of a metric.

    Parameters
    ----------
    items : sequence of Marks
        What `evaluate` returned under one name, for every document.

    Returns
    -------
    float
        The number of that name; NaN for the estimate of a metric at a k that more than half of the
        documents have no repeats for.

    Raises
    ------
    ValueError
        If lm-eval reduced the marks itself, as it does where documents have several targets.

    Examples
    --------
    >>> documents = [pass_at_k(["5"], [responses], pooling="none") for responses in ("55", "54")]
    Traceback (most recent call last):
    ...
    ValueError: predictions must have all repeats of a document; a filter left one response. Add to
    filter_list: {name: repeats, filter: [{function: take_first_k, k: REPEATS}]}.
    >>> documents = [pass_at_k(["5"], [list(text)], pooling="none") for text in ("55", "54")]
    >>> aggregate([marks["pass@1"] for marks in documents])
    0.75
    >>> mean = aggregate([marks["pass@1 questions mean"] for marks in documents])
    >>> round(mean, 4)  # (3/4 + 2/4)/2, with a uniform prior
    0.625
    """
    first = items[0]
    if not isinstance(first, Marks):
        raise ValueError(
            f"items must be the marks of bayesatk.lm_eval's metrics; got {first!r:.80}. Of several "
            "targets lm-eval keeps only whether one is met: let doc_to_target return one text, "
            "such as the targets joined by newlines, and judge it by correct=."
        )
    return _values(first.request, tuple(map(tuple, items))).get(first.name, float("nan"))


@lru_cache(maxsize=16)  # every number of a task asks for all of them
def _values(request: _Request, marks: tuple[tuple[int, ...], ...]) -> dict[str, float]:
    from bayesatk.results.tables import values_by_name

    rows = [list(of_document) for of_document in marks]
    fit = bk.evaluate(
        rows,
        request.metrics,
        pooling=request.pooling,
        ci_prob=request.ci_prob,
        rng=_SEED,
        progress=False,
    )
    return values_by_name(bk.table(fit))


def _listed(k: int | list[int]) -> str:
    return ",".join(map(str, k if isinstance(k, list) else [k]))
