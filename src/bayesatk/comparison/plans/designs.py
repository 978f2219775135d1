"""What an evaluation that is planned would teach, from a pilot or a stated difficulty."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError, real_number
from bayesatk.comparison.plans.pilots import DRAWS, ComposedPilot, Design
from bayesatk.metrics.grid import Metric
from bayesatk.results.result import Fit, Result

# Given a number of trials per question: the expected variance.
Question = Callable[[int], Design]
# Given a number of trials: by draw of the difficulty distribution, and by system. None where so few
# trials cannot tell: a question tried once says nothing of how questions differ.
Expected = Sequence[Sequence[Design]]
Designs = Callable[[int], Expected]


def designs_of(
    source: object, metric: Metric, scores: Sequence[float] | None
) -> tuple[Designs, int]:
    """Return the designs as a function of the trials, and the number of systems."""
    if scores is not None:
        scores = _checked_scores(scores)
    if not isinstance(source, Fit):
        questions_by_draw = _stated(source, metric, scores)
    else:
        check_pilot(Result.of(source), scores)
        questions_by_draw = _of_pilot(Result.of(source), metric)
    systems = len(questions_by_draw[0])
    alike = isinstance(source, Fit) and Result.of(source).pooling == "complete"

    def by_draw(trials: int) -> Expected:
        if trials == 1 and metric.k > 1 and not alike:
            return []
        return [[question(trials) for question in row] for row in questions_by_draw]

    return by_draw, systems


def _checked_scores(scores: object) -> list[float]:
    if not isinstance(scores, Sequence | np.ndarray) or isinstance(scores, str):
        rule = f" must be a sequence of numbers; got {scores!r:.80}."
        raise ArgumentError("scores", rule)
    values = [real_number("scores: each", score) for score in scores]
    if len(set(values)) < 2 or not np.isfinite(values).all():
        rule = f" must be finite and not all the same; got {values}."
        raise ArgumentError("scores", rule)
    return values


def _check_systems(systems: Sequence[object]) -> None:
    if len(systems) > 2:
        raise ArgumentError(
            "source", f" must be of one system or two; got {len(systems)}. Plan for two "
            "at a time; of a pilot choose them: ", Argument("system", list(systems[:2])), ".",
        )  # fmt: skip


def check_pilot(pilot: Result, scores: object) -> None:
    """Refuse a pilot without a plan, and scores beside it."""
    if scores is not None:
        raise ArgumentError("scores", " must be left out for a pilot, which has them.")
    pilot.require("plan", "source")


def _of_pilot(pilot: Result, metric: Metric) -> list[list[Question]]:
    """Questions at some draws of the pilot's difficulty distribution, by draw and system."""
    _check_systems(pilot.systems)
    if pilot.grouping is not None and pilot.pooling != "complete":
        raise ArgumentError(
            "source", " must be without groups here: only the plan of a width takes "
            f"them. Got {len(pilot.grouping.labels)} groups. Evaluate the same data without ",
            "group", ".",
        )  # fmt: skip
    by_system = [
        ComposedPilot.of(pilot, system, metric, DRAWS).questions()
        for system in range(len(pilot.systems))
    ]
    return [list(row) for row in zip(*by_system, strict=True)]


def _inside(values: ArrayLike) -> Array:
    return np.asarray(np.clip(values, 1e-6, 1.0 - 1e-6), float)


def _stated(source: Any, metric: Metric, scores: Sequence[float] | None) -> list[list[Question]]:
    stated = list(source.values()) if isinstance(source, Mapping) else [source]
    _check_systems(list(source) if isinstance(source, Mapping) else [])
    size = 1 if scores is None else len(scores)
    try:
        pairs = [(np.atleast_1d(np.array(mean, float)), float(icc)) for mean, icc in stated]
    except (TypeError, ValueError):
        pairs = []
    ok = bool(pairs) and all(
        mean.shape == (size,)
        and ((mean > 0) & (mean < 1)).all()
        and (size == 1 or abs(mean.sum() - 1.0) < 1e-9)
        and 0.0 < icc < 1.0
        for mean, icc in pairs
    )
    if not ok:
        shape = "mean one share per score, adding up to 1," if scores is not None else "both"
        raise ArgumentError(
            "source", f" must be a result, (mean, icc) or {{system: (mean, icc)}}, "
            f"{shape} strictly between 0 and 1; got {source!r:.80}. Scored categories need ",
            Argument("scores", ...), ".",
        )  # fmt: skip
    return [[
        ComposedPilot.stated(metric, scores, _inside(mean), float(_inside(icc))).questions()[0]
        for mean, icc in pairs
    ]]  # fmt: skip
