"""Arguments of `calibrate`, checked together."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np

from bayesatk._tools.arguments import one_of
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.costs.prior import CostPrior
from bayesatk.data.scales import RIGHT_WRONG, Scored
from bayesatk.judge_error import JudgeError
from bayesatk.metrics.grid import Metric
from bayesatk.models.forms import one_latent_family
from bayesatk.priors import (
    AnswerPrior,
    AnyPrior,
    BetaPrior,
    CrossedPrior,
    Families,
    HyperPrior,
    Pooling,
)
from bayesatk.priors.choice import (
    prior_of,
    with_families,
)
from bayesatk.verification.replications import (
    Engine,
    Structure,
)
from bayesatk.verification.simulators import PyMCForm


def score_values(scores: object) -> tuple[float, ...] | None:
    """Return the scores of the categories, checked."""
    if scores is None:
        return None
    try:
        values = tuple(float(one) for one in scores)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        values = ()
    rising = all(low < high for low, high in pairwise(values))
    if len(values) < 2 or not rising or not np.isfinite(values).all():
        raise ArgumentError(
            Argument("scores"),
            f" must be two or more finite numbers in rising order; got {scores!r:.80}.",
        )
    return values


def chosen_prior(
    pooling: Pooling,
    prior: object,
    engine: Engine,
    form: PyMCForm | None,
    scores: tuple[float, ...] | None,
    difficulty: Families,
    structure: Structure | None = None,
) -> AnyPrior:
    """Return the prior given, checked against the model it is of, or the default."""
    one_of("engine", engine, ("closed_form", "pymc"))
    if form is not None and engine != "pymc":
        raise ArgumentError(
            Argument("form"),
            f" must be left out for engine='closed_form'; got {form!r}. Use engine='pymc'.",
        )
    if structure is not None:
        return _prior_of_structure(structure, pooling, prior, form, scores, difficulty)
    chosen = _default_prior(pooling, prior, form, scores)
    if difficulty is not None:
        chosen = with_families(chosen, difficulty)
    chosen = one_latent_family(chosen, form or "marginal", prior is None and difficulty is None)
    if isinstance(chosen, HyperPrior) and not chosen.proper:
        raise ArgumentError(
            Argument("prior"),
            f" must be proper to simulate data from it; got icc={chosen.icc}. The default is.",
        )
    return chosen


def _prior_of_structure(
    structure: Structure,
    pooling: Pooling,
    prior: object,
    form: PyMCForm | None,
    scores: tuple[float, ...] | None,
    difficulty: Families,
) -> AnyPrior:
    """Return the prior of questions with covariates or in groups, of the Beta family."""
    one_of("structure", structure, ("covariates", "groups"))
    if pooling != "partial" or scores is not None or form is not None or difficulty is not None:
        raise ValueError(
            f"structure={structure!r} is calibrated of right and wrong with Beta difficulties, "
            f"pooling='partial' and without a form; got pooling={pooling!r}, scores={scores}, "
            f"form={form!r}, difficulty={difficulty!r:.80}. Leave them out."
        )
    return prior_of(HyperPrior, prior, f"with structure={structure!r}").of_family("beta")


def _default_prior(
    pooling: Pooling,
    prior: object,
    form: PyMCForm | None,
    scores: tuple[float, ...] | None,
) -> AnyPrior:
    """Return the prior given, or the default of the kind that the model needs."""
    if form in ("crossed", "logit_normal"):
        if scores is not None or pooling != "partial":
            raise ValueError(
                f"form={form!r} needs pooling='partial' and no scores; got pooling={pooling!r}, "
                f"scores={scores!r:.80}."
            )
        return prior_of(CrossedPrior, prior, "for form='crossed'")
    if isinstance(prior, AnswerPrior):
        return prior
    scale = RIGHT_WRONG if scores is None else Scored(scores)
    chosen: AnyPrior = scale.resolve_prior(pooling, prior)
    return chosen


def check_votes(
    requested: Sequence[Metric],
    pooling: Pooling,
    prior: AnyPrior,
    form: PyMCForm | None,
    scores: tuple[float, ...] | None,
) -> None:
    """Refuse votes without an `AnswerPrior` of a known number of answers, and the reverse."""
    voted = [one.label for one in requested if one.voted]
    if not isinstance(prior, AnswerPrior) and not voted:
        return
    known = isinstance(prior, AnswerPrior) and prior.choices is not None and prior.unseen_correct
    right = pooling == "none" and form is None and scores is None and len(voted) == len(requested)
    if not (known and right):
        raise ValueError(
            "votes between answers are calibrated on their own, with pooling='none' and "
            "prior=AnswerPrior(choices=) (one of them right), without form or scores; got metrics "
            f"{' '.join(one.label for one in requested)}, pooling={pooling!r} and {prior}."
        )


def check_judge(
    judge: object,
    engine: Engine,
    scores: tuple[float, ...] | None,
    prior: AnyPrior,
    structure: Structure | None = None,
) -> None:
    """Refuse a judge where there is no closed form of its marks to calibrate."""
    if judge is None:
        return
    known = isinstance(prior, BetaPrior | HyperPrior) and scores is None and structure is None
    known = known and isinstance(judge, JudgeError) and judge.updated
    if not isinstance(judge, JudgeError) or engine != "closed_form" or not known:
        raise ValueError(
            "judge must be a JudgeError, of right and wrong, engine='closed_form' and no "
            f"structure; got {judge!r:.80} with engine={engine!r} and a {type(prior).__name__}. "
            "Leave it out."
        )


def described_cost_prior(
    cost_prior: CostPrior | None, prior: object, engine: Engine, scores: object, judge: object
) -> dict[str, Any] | None:
    """Return the prior of costs as plain data, where there are costs."""
    if cost_prior is None:
        return None
    if engine != "closed_form" or not isinstance(prior, HyperPrior) or scores or judge:
        raise ValueError(
            "cost_prior goes with right and wrong, pooling='partial', engine='closed_form', no "
            f"judge and no structure; got {type(prior).__name__} with engine={engine!r}."
        )
    return asdict(cost_prior)
