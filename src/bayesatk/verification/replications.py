"""What `calibrate` was asked, checked, and its replications: truth, data, draws, places."""

from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from bayesatk._tools.arrays import Array, Rng
from bayesatk._tools.batches import misshapen
from bayesatk._tools.messages import ArgumentError, one_of
from bayesatk.core.costs.prior import CostPrior
from bayesatk.data.scales import RIGHT_WRONG, Scored
from bayesatk.data.study import population_of
from bayesatk.judge_error import JudgeError, Judges
from bayesatk.metrics.grid import parse
from bayesatk.models.building import one_latent_family
from bayesatk.priors import (
    AnswerPrior,
    BetaPrior,
    CrossedPrior,
    Families,
    HyperPrior,
    Pooling,
)
from bayesatk.priors.choice import describe_prior, prior_of, with_families
from bayesatk.verification.kinds import (
    NEW,
    CostKind,
    CountKind,
    Kind,
    PooledVoteKind,
    PyMCForm,
    Structure,
    VoteKind,
    count_study,
)

Engine = Literal["closed_form", "pymc"]
BATCH = 50


@dataclass(frozen=True)
class Replications:
    """Everything that a replication depends on, bar its number; the arguments of `calibrate`."""

    questions: int
    trials: int
    metrics: str
    pooling: Pooling
    prior: Any
    engine: Engine
    seed: int
    form: PyMCForm | None = None
    scores: tuple[float, ...] | None = None
    judge: JudgeError | None = None
    cost: CostPrior | None = None
    structure: Structure | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All of it, as a file of results holds it, but for later options that are not used."""
        later = ("judge", "cost", "structure")
        plain = asdict(self) | {"prior": describe_prior(self.prior)}
        return {name: value for name, value in plain.items() if value or name not in later}

    def rng(self, replication: int) -> Rng:
        """Return the randomness of one replication, whatever the others do."""
        return np.random.default_rng([self.seed, replication])

    def quantities(self) -> list[str]:
        """Return the names of the places that every replication has."""
        return sorted(_kind(self).simulate(self.rng(0))[0])

    def run_batch(self, start: int) -> dict[str, list[float]]:
        """Places of the truth for one batch of replications."""
        rows = [self.replicate(start + i) for i in range(BATCH)]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def replicate(self, replication: int) -> dict[str, float]:
        """Places of the truth among draws of its posterior."""
        rng, kind = self.rng(replication), _kind(self)
        truth, data = kind.simulate(rng)
        draws = kind.sampled(data, rng) if self.engine == "pymc" else kind.exact(data, rng)
        return {name: _place(value.item(), draws[name], rng) for name, value in truth.items()}


@cache
def _kind(asked: Replications) -> Kind:
    """Return the model that is drawn from and fitted, compiled once in every process."""
    size, metrics = (asked.questions, asked.trials), parse(asked.metrics)
    if asked.cost is not None:
        return CostKind(*size, metrics, asked.prior, asked.cost)
    if isinstance(asked.prior, AnswerPrior):
        return VoteKind(*size, metrics, asked.prior)
    voted = metrics[0].voted
    study = count_study(
        asked.questions + NEW * voted, asked.trials, asked.structure,
        2 if asked.form == "crossed" else 1, asked.scores,
        metrics=parse("pass@1") if voted else metrics, pooling=asked.pooling, prior=asked.prior,
        judges=asked.judge and Judges((asked.judge,)), population=population_of(asked.pooling),
    )  # fmt: skip
    marks = CountKind(study, asked.form)
    return PooledVoteKind(marks, asked.questions, metrics) if voted else marks


def batch_fault(names: list[str], values: Any) -> str:
    """Say what is wrong with a batch that was read from a file; "" if nothing is."""
    if not isinstance(values, dict) or sorted(values) != names:
        got = list(values) if isinstance(values, dict) else values
        return f"{got!r:.80} where {', '.join(names)} must be"
    for places in values.values():
        if wrong := misshapen(places, BATCH):
            return wrong
        outside = [share for share in places if not 0.0 <= share <= 1.0]
        if outside:
            return f"{outside[0]} where a probability must be"
    return ""


def _place(value: float, draws: Array, rng: Rng) -> float:
    """Rank of the truth among the draws, ties and the gap it falls in broken at random."""
    below, same = int((draws < value).sum()), int((draws == value).sum())
    rank = below + rng.integers(0, same + 1)
    return float((rank + rng.random()) / (len(draws) + 1))


def checked(asked: Replications, difficulty: Families) -> Replications:
    """Return what was asked with its prior resolved, or refuse what has no model to simulate."""
    one_of("engine", asked.engine, ("closed_form", "pymc"))
    if asked.form is not None and asked.engine != "pymc":
        raise ArgumentError(
            "form",
            f" must be left out for engine='closed_form'; got {asked.form!r}. Use engine='pymc'.",
        )
    if asked.structure is not None:
        prior = _prior_of_structure(asked, difficulty)
    else:
        prior = _prior_of_questions(asked, difficulty)
    resolved = replace(asked, prior=prior)
    _check_verified(resolved)
    _check_votes(resolved)
    _check_judge(resolved)
    closed = resolved.engine == "closed_form" and isinstance(prior, HyperPrior)
    more = resolved.scores or resolved.judge or resolved.structure
    if resolved.cost is not None and (more or not closed):
        raise ValueError(
            "cost_prior goes with right and wrong, pooling='partial', engine='closed_form', no "
            f"judge and no structure; got {type(prior).__name__} with engine={asked.engine!r}."
        )
    return resolved


def _prior_of_questions(asked: Replications, difficulty: Families) -> Any:
    """Return the prior of questions without structure."""
    prior = _default_prior(asked)
    if difficulty is not None:
        prior = with_families(prior, difficulty)
    by_default = asked.prior is None and difficulty is None
    # The sampled model of scored levels is of one family.
    alone = asked.scores is not None and asked.engine != "closed_form"
    prior = one_latent_family(prior, asked.form or "marginal", by_default, alone)
    if isinstance(prior, HyperPrior) and not prior.proper:
        raise ArgumentError(
            "prior",
            f" must be proper to simulate data from it; got icc={prior.icc}. The default is.",
        )
    return prior


def _prior_of_structure(asked: Replications, difficulty: Families) -> HyperPrior:
    """Return the prior of questions with covariates or in groups, of the Beta family."""
    one_of("structure", asked.structure, ("covariates", "groups"))
    options = (asked.scores, asked.form, difficulty)
    if asked.pooling != "partial" or any(option is not None for option in options):
        raise ValueError(
            f"structure={asked.structure!r} is calibrated of right and wrong with Beta "
            "difficulties, pooling='partial' and without a form; got "
            f"pooling={asked.pooling!r}, scores={asked.scores}, form={asked.form!r}, "
            f"difficulty={difficulty!r:.80}. Leave them out."
        )
    kind = f"with structure={asked.structure!r}"
    return prior_of(HyperPrior, asked.prior, kind).of_family("beta")


def _default_prior(asked: Replications) -> Any:
    """Return the prior given, or the default of the kind that the model needs."""
    if asked.form in ("crossed", "logit_normal"):
        if asked.scores is not None or asked.pooling != "partial":
            raise ValueError(
                f"form={asked.form!r} needs pooling='partial' and no scores; got "
                f"pooling={asked.pooling!r}, scores={asked.scores!r:.80}."
            )
        return prior_of(CrossedPrior, asked.prior, "for form='crossed'")
    if isinstance(asked.prior, AnswerPrior):
        return asked.prior
    scale = RIGHT_WRONG if asked.scores is None else Scored(asked.scores)
    return scale.resolve_prior(asked.pooling, asked.prior)


def _check_verified(asked: Replications) -> None:
    """Refuse metrics by a verifier's scores: bins are made of the scores that were seen."""
    labels = [metric.label for metric in parse(asked.metrics) if metric.verified]
    if labels:
        raise ArgumentError(
            "metrics", f" must be of marks or answers here; got {', '.join(labels)}: "
            "scores are put in bins that depend on them, so no prior says how they come. Leave it "
            "out; bayesatk.verify compares it with PyMC on your data.",
        )  # fmt: skip


def _check_votes(asked: Replications) -> None:
    """Refuse votes without a law that data can be drawn from, and their prior without votes."""
    prior = asked.prior
    voted = [metric.voted for metric in parse(asked.metrics)]
    if not isinstance(prior, AnswerPrior) and not any(voted):
        return
    counted = isinstance(prior, AnswerPrior) and prior.choices is not None and prior.unseen_correct
    drawn = counted and asked.pooling == "none"
    if isinstance(prior, HyperPrior) and asked.pooling == "partial":
        drawn = asked.engine == "closed_form"
    plain = (asked.form, asked.scores, asked.structure, asked.judge) == (None,) * 4
    if not (drawn and plain and all(voted)):
        raise ValueError(
            "votes between answers are calibrated on their own, with pooling='partial' and "
            "engine='closed_form', or with pooling='none' and prior=AnswerPrior(choices=) (one of "
            "them right), without form, scores, judge or structure; got metrics "
            f"{asked.metrics}, pooling={asked.pooling!r}, engine={asked.engine!r} and {prior}."
        )


def _check_judge(asked: Replications) -> None:
    """Refuse a judge where there is no closed form of its marks to calibrate."""
    judge: object = asked.judge
    if judge is None:
        return
    updated = isinstance(judge, JudgeError) and judge.updated
    plain = asked.scores is None and asked.structure is None
    plain = plain and isinstance(asked.prior, BetaPrior | HyperPrior)
    if asked.engine != "closed_form" or not (updated and plain):
        raise ValueError(
            "judge must be a JudgeError, of right and wrong, engine='closed_form' and no "
            f"structure; got {judge!r:.80} with engine={asked.engine!r} and a "
            f"{type(asked.prior).__name__}. Leave it out."
        )


def score_values(scores: object) -> tuple[float, ...] | None:
    """Return the scores of the categories, checked."""
    if scores is None:
        return None
    try:
        values = tuple(float(score) for score in scores)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        values = ()
    rising = all(low < high for low, high in pairwise(values))
    if len(values) < 2 or not rising or not np.isfinite(values).all():
        raise ArgumentError(
            "scores",
            f" must be two or more finite numbers in rising order; got {scores!r:.80}.",
        )
    return values
