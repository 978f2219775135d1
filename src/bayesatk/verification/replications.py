"""What `calibrate` was asked, checked, and its replications: truth, data, draws, places."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arguments import one_of
from bayesatk._tools.batches import misshapen
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.costs.prior import CostPrior
from bayesatk.data.scales import RIGHT_WRONG, Scored
from bayesatk.judge_error import JudgeError, Judges
from bayesatk.metrics.grid import Metric, parse
from bayesatk.models.building import one_latent_family
from bayesatk.priors import (
    AnswerPrior,
    AnyPrior,
    BetaPrior,
    CrossedPrior,
    Families,
    HyperPrior,
    Pooling,
)
from bayesatk.priors.choice import prior_from, prior_of, with_families
from bayesatk.verification.kinds import (
    CostKind,
    CountKind,
    Kind,
    PyMCForm,
    Structure,
    VoteKind,
    count_study,
)

Engine = Literal["closed_form", "pymc"]
BATCH = 50


@dataclass(frozen=True)
class Replications:
    """Everything that a replication depends on, bar its number."""

    questions: int
    trials: int
    metrics: str
    pooling: Pooling
    prior: dict[str, Any]
    engine: Engine
    seed: int
    form: PyMCForm | None = None
    scores: tuple[float, ...] | None = None
    judge: dict[str, Any] | None = None
    cost: dict[str, Any] | None = None
    structure: Structure | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All of it, as a file of results holds it, but for later options that are not used."""
        later = ("judge", "cost", "structure")
        return {name: value for name, value in asdict(self).items() if value or name not in later}

    def rng(self, replication: int) -> np.random.Generator:
        """Return the randomness of one replication, whatever the others do."""
        return np.random.default_rng([self.seed, replication])

    @property
    def kind(self) -> Kind:
        """The model that is drawn from and fitted, compiled once in every process."""
        return _kind(json.dumps(self.identity))

    def quantities(self) -> list[str]:
        """Return the names of the places that every replication has."""
        return sorted(self.kind.simulate(self.rng(0))[0])

    def run_batch(self, start: int) -> dict[str, list[float]]:
        """Places of the truth for one batch of replications."""
        rows = [self._replicate(start + i) for i in range(BATCH)]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _replicate(self, replication: int) -> dict[str, float]:
        rng, kind = self.rng(replication), self.kind
        truth, data = kind.simulate(rng)
        draws = kind.sampled(data, rng) if self.engine == "pymc" else kind.exact(data, rng)
        return {name: _place(value.item(), draws[name], rng) for name, value in truth.items()}


@cache
def _kind(identity: str) -> Kind:
    """Return the model of a study, whose identity is JSON."""
    asked = Replications(**json.loads(identity))
    prior, metrics = prior_from(asked.prior), parse(asked.metrics)
    size = asked.questions, asked.trials
    if asked.cost is not None:
        return CostKind(*size, metrics, prior, CostPrior(**asked.cost))
    if isinstance(prior, AnswerPrior):
        return VoteKind(*size, metrics, prior)
    scores = None if asked.scores is None else tuple(asked.scores)
    judges = None if asked.judge is None else Judges((JudgeError(**asked.judge),))
    systems = 2 if isinstance(prior, CrossedPrior) and asked.form == "crossed" else 1
    study = count_study(
        *size, asked.structure, systems, scores, metrics=metrics, pooling=asked.pooling,
        prior=prior, judges=judges,
    )  # fmt: skip
    return CountKind(study, asked.form)


def batch_fault(names: list[str], values: Any) -> str:
    """Say what is wrong with a batch that was read from a file; "" if nothing is."""
    if not isinstance(values, dict) or sorted(values) != names:
        got = list(values) if isinstance(values, dict) else values
        return f"{got!r:.80} where {', '.join(names)} must be"
    for places in values.values():
        if wrong := misshapen(places, BATCH):
            return wrong
        outside = [place for place in places if not 0.0 <= place <= 1.0]
        if outside:
            return f"{outside[0]} where a probability must be"
    return ""


def _place(value: float, draws: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Rank of the truth among the draws, ties and the gap it falls in broken at random."""
    below, same = int((draws < value).sum()), int((draws == value).sum())
    rank = below + rng.integers(0, same + 1)
    return float((rank + rng.random()) / (len(draws) + 1))


# Arguments, checked together


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
    voted = [metric.label for metric in requested if metric.voted]
    if not isinstance(prior, AnswerPrior) and not voted:
        return
    known = isinstance(prior, AnswerPrior) and prior.choices is not None and prior.unseen_correct
    right = pooling == "none" and form is None and scores is None and len(voted) == len(requested)
    if not (known and right):
        raise ValueError(
            "votes between answers are calibrated on their own, with pooling='none' and "
            "prior=AnswerPrior(choices=) (one of them right), without form or scores; got metrics "
            f"{' '.join(metric.label for metric in requested)}, pooling={pooling!r} and {prior}."
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
