"""The joint posterior of all systems, from which everything said of several systems comes.

Systems that answered the same questions, by right and wrong, marks of judges or scores, under
partial pooling and the default prior, share the difficulty of questions: one model of all
(`bayesatk.core.one_factor`). Where something else is declared (groups, covariates, votes, a prior,
no pooling), every system
keeps the posterior of its own model; those are paired by the correlation of the observed rates
(`bayesatk.comparison.joint.paired`). Draws of a user's own model are joint already.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import xarray as xr

from bayesatk._tools.arrays import Array, Flags, Rng
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.words import number_words
from bayesatk.comparison.joint.contrasts import Drawn
from bayesatk.comparison.joint.draws import Subset, SystemSampler, alike_systems
from bayesatk.comparison.joint.paired import paired_draws
from bayesatk.comparison.joint.shared import Board, board_of
from bayesatk.priors import HyperPrior, LeaderboardPrior
from bayesatk.priors.choice import describe_prior, prior_from
from bayesatk.results.result import Result
from bayesatk.results.schema import TARGET_NAMES, metric_values

MUCH = 0.2  # sds between means of the joint model and of a system alone that are said
JointModel = Literal["shared difficulty", "paired", "own"]


@dataclass(frozen=True)
class Joint:
    """Joint draws of the metrics of all systems.

    Parameters
    ----------
    model : {"shared difficulty", "paired", "own"}
    drawn : tuple of Drawn
        By target. Empty where no question was tried by all systems and they are paired.
    systems : list of int
        Place in the result of every column of the draws.
    kept : ndarray of bool, shape (questions,)
        Questions that the means are over; where some are left out every pair has its own.
    seed : int
    sampler : SystemSampler
        Of systems by themselves.
    board : Board, optional
        Of shared difficulties.
    prior : LeaderboardPrior, optional
        Of shared difficulties.
    """

    model: JointModel
    drawn: tuple[Drawn, ...]
    systems: list[int]
    kept: Flags
    seed: int
    sampler: SystemSampler
    board: Board | None = None
    prior: LeaderboardPrior | None = None

    @property
    def whole(self) -> bool:
        """Whether the means are over all questions."""
        return bool(self.kept.all())

    @property
    def attrs(self) -> dict[str, Any]:
        """What a group that is made of it says of it."""
        effective = [joint.effective for joint in self.drawn]
        attrs: dict[str, Any] = {
            "joint_model": self.model, "joint_seed": self.seed, "ranked_on": int(self.kept.sum()),
            "effective_draws": min(effective, default=0.0),
        }  # fmt: skip
        if self.board is not None and self.prior is not None:
            attrs |= {
                "joint_method": self.board.draws.method, "k_hat": float(self.board.draws.k_hat),
                "joint_prior": json.dumps(describe_prior(self.prior)),
            }  # fmt: skip
        return attrs

    def values(self, metric: int, target: int) -> Array:
        """Return joint draws of a cell of the grid, (draws, systems) in the order of the result."""
        return np.asarray(self.drawn[target].values[:, metric, np.argsort(self.systems)])


def drawn_seed(rng: Rng) -> int:
    """Draw a seed."""
    return int(rng.integers(2**63))


def joint_model(fit: Result, prior: LeaderboardPrior | None = None) -> JointModel:
    """Return which model all systems of a result are compared in; a prior asks for the shared."""
    if fit.own:
        return "own"
    default, alike = fit.scale.resolve_prior("partial", None), False
    if not isinstance(default, HyperPrior):  # scores that are all the same, which have no order
        return "paired"
    if prior is not None:
        fit.require("shared_difficulty")
        return "shared difficulty"
    if isinstance(fit.prior, HyperPrior):
        alike = replace(fit.prior, families=default.families) == default
    return "shared difficulty" if alike and fit.answers("shared_difficulty") else "paired"


def has_ranks(fit: Result) -> bool:
    """Whether there are questions that all systems of a result can be ranked on."""
    return joint_model(fit) != "paired" or bool((fit.trials > 0).all(axis=0).any())


def joint_posterior(
    fit: Result, seed: int, prior: LeaderboardPrior | None = None,
    progress: bool | None = False, client: Any = None,
) -> Joint:  # fmt: skip
    """Draw the joint posterior of all systems; neither their names nor order matter."""
    tried = fit.trials > 0
    _check_shared(fit, tried)
    model = joint_model(fit, prior)
    everything = Subset.whole(fit)
    sampler = SystemSampler(fit, np.random.default_rng(seed), progress)
    if model == "shared difficulty":
        prior = LeaderboardPrior() if prior is None else prior
        subset = Subset.ordered(fit, everything.systems, everything.kept)
        board, alike = board_of(fit, prior, subset.systems, seed), alike_systems(fit, subset)
        drawn = tuple(
            replace(
                Drawn.of(values, values, board.draws.effective_draws), alike=alike,
                direction=fit.scale.direction,
            )
            for values in board.values.transpose(0, 1, 3, 2)
        )  # fmt: skip
        return Joint(model, drawn, subset.systems, subset.kept, seed, sampler, board, prior)
    common = tried.all(axis=0) | (model == "own")
    if not common.any():
        return Joint(model, (), everything.systems, common, seed, sampler)
    subset = Subset.ordered(fit, everything.systems, common)
    drawn = paired_draws(fit, subset, np.random.default_rng(seed), sampler, client)
    return Joint(model, drawn, subset.systems, common, seed, sampler)


def joint_again(
    fit: Result, prior: LeaderboardPrior | None, rng: RandomSource
) -> tuple[Joint, str]:
    """Draw the joint posterior that a result was compared or ranked by, or a first one.

    Returns
    -------
    Joint
    seed : str
        As results record it.
    """
    attrs = joint_attrs(fit)
    if rng is None and attrs:
        if prior is None and "joint_prior" in attrs:
            prior = prior_from(json.loads(attrs["joint_prior"]))
        return joint_posterior(fit, int(attrs["joint_seed"]), prior), str(attrs["seed"])
    generator, seed = resolve_rng(0 if rng is None else rng)
    return joint_posterior(fit, drawn_seed(generator), prior), seed


def joint_attrs(fit: Result) -> dict[Any, Any]:
    """Return what a comparison or leaderboard in a result records of its joint posterior."""
    made_of_it = (name for name in ("comparison", "leaderboard") if fit.has(name))
    return next((fit.group(name).attrs for name in made_of_it), {})


def _check_shared(fit: Result, tried: Flags) -> None:
    """Refuse fewer than two systems, and systems of which no two share a question."""
    if len(tried) < 2:
        raise ArgumentError(
            "fit", " must have at least two systems to compare; got one. Name them: ",
            Argument("source", {"a": "first.csv", "b": "second.csv"}, "load"), ".",
        )  # fmt: skip
    if tried.sum(axis=0).max() < 2:
        raise ArgumentError(
            "fit", " must have two systems that tried the same question; of "
            f"{len(tried)} systems no two did. Run them on the same questions.",
        )  # fmt: skip


def joint_note(fit: Result, joint: Joint, comparison: xr.Dataset) -> str:
    """Say what a reader of a comparison should know of the joint posterior."""
    if joint.board is None:
        return ""
    return " ".join(filter(None, (_chains_note(joint.board), _moved_note(fit, comparison))))


def _chains_note(board: Board) -> str:
    """Say where Markov chains took the place of weights."""
    if board.draws.method != "slice":
        return ""
    return (
        "Importance weights of the model of all systems cannot be trusted (Pareto k "
        f"{board.draws.k_hat:.2f}); Markov chains took their place, with "
        f"{board.draws.effective_draws:.0f} effective draws."
    )


def _moved_note(fit: Result, comparison: xr.Dataset) -> str:
    """Say where the joint means differ most from those of every system alone, if by much."""
    largest, text = MUCH, ""
    dims = ("system", "target")
    for metric in fit.metrics:
        joint = metric_values(comparison, metric).sel(contrast="mean_system")
        # Of the first other system: the mean is the same beside all.
        others = xr.DataArray([1, *[0] * (len(fit.systems) - 1)], dims="system")
        alone = metric_values(fit.statistics, metric)
        means, alone_means, sds = (
            values.transpose(*dims).values
            for values in (
                joint.isel(other=others), alone.sel(statistic="mean"), alone.sel(statistic="sd")
            )
        )  # fmt: skip
        gap = np.divide(abs(means - alone_means), sds, np.zeros_like(sds), where=sds > 0.0)
        if gap.max() > largest:
            largest = float(gap.max())
            cell = np.unravel_index(int(gap.argmax()), gap.shape)
            words = (number_words(float(values[cell])) for values in (means, alone_means))
            text = (
                f"{metric.label} of {fit.systems[cell[0]]!s:.60} on "
                f"{TARGET_NAMES[fit.targets[cell[1]]]} is {' against '.join(words)}"
            )
    if not text:
        return ""
    return (
        "Differences, ranks and tiers come from one model of all systems, which share the "
        f"difficulty of questions. Its means are up to {largest:.1f} sd from those of each system "
        f"alone: {text}."
    )
