"""PyMC models with named coordinates, for the user to take, change and sample."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.judges import read_judges
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.judge_error import Judges
from bayesatk.models.difficulty_families import Shape, add_hyperparameters
from bayesatk.models.forms import Form
from bayesatk.models.marks import RightTrials, mark_rates
from bayesatk.priors import DIFFICULTY_FAMILIES, BetaPrior, HyperPrior, Pooling, Prior
from bayesatk.priors.choice import resolve_prior

_STATES = ("state_successes", "state_trials", "state_count", "state_system")


def build_beta_binomial(
    data: object,
    pooling: Pooling = "partial",
    *,
    prior: Prior | None = None,
    difficulty: str = "beta",
    form: Form | None = None,
    judge: object = None,
) -> pm.Model:
    """Beta-binomial model of successes, one difficulty distribution per system.

    Parameters
    ----------
    data : Outcomes or anything `bayesatk.tally` accepts
        Binary outcomes; trials may differ between cells.
    pooling : {"partial", "none", "complete"}
        ``p ~ Beta(mean_p, icc)`` with both sampled; a fixed Beta prior per question; or one p.
    prior : HyperPrior (partial) or BetaPrior (none, complete), optional
        Default: uniform. A model is of one difficulty family, whatever families the prior averages.
    difficulty : {"beta", "inflated", "mixture"}
        Family of the difficulty distribution, for partial pooling: see `bayesatk.HyperPrior`.
    form : {"full", "marginal"}, optional
        ``full`` has the latent ``p(system, question)`` and an observed Binomial, so prior and
        posterior predictive sampling work. ``marginal`` (partial only) integrates p out over
        distinct counts: its cost does not depend on the number of questions. Default: full for the
        Beta, which alone has it.
    judge : JudgeError, mapping {system: JudgeError}, or table, optional
        Who marked the trials, where it errs, as in `bayesatk.evaluate`. The marginal form adds up
        the numbers of right trials that marks may come from, for each of them.

    Returns
    -------
    pymc.Model
        Variables ``p``, ``mean_p(system)`` and ``icc(system)`` where they exist; inflated
        ``beta_mean(system)``, ``beta_icc(system)``, ``never(system)`` and, of the others,
        ``always_of_rest(system)``; mixture ``part_mean(system, part)``, ``part_icc(system, part)``,
        in no order, and ``first_share(system)``; of judges ``judge_rates``, a row of two each, and
        ``sensitivity(system)`` and ``false_positive_rate(system)``. Coordinates ``system`` and
        ``question``; observed ``successes``.

    See Also
    --------
    bayesatk.evaluate : the exact posterior; of this model with ``difficulty="beta"``.
    bayesatk.sample : samples this model and returns metrics.
    bayesatk.models.compile_beta_binomial : compiles it once for many data sets.

    Examples
    --------
    >>> model = build_beta_binomial([[1, 0], [1, 1]], pooling="none")
    >>> [variable.name for variable in model.free_RVs]
    ['p']
    """
    outcomes = data if isinstance(data, Outcomes) else tally(data)
    prior = resolve_prior(pooling, prior)
    form = _checked_form(pooling, difficulty, form)
    judges = read_judges(judge, outcomes)
    with pm.Model(coords=coordinates(outcomes)) as model:
        if isinstance(prior, HyperPrior):
            shape = add_hyperparameters(prior.of_family(difficulty), difficulty)
            if form == "marginal":
                _marginal_likelihood(outcomes, shape, judges)
            else:
                ((alpha, beta, _),) = shape.betas
                p = pm.Beta("p", alpha[:, None], beta[:, None], dims=("system", "question"))
                observe(outcomes, p, judges)
        elif pooling == "complete":
            shared = pm.Beta("mean_p", prior.alpha, prior.beta, dims="system")
            everywhere = shared[:, None] + pt.zeros(outcomes.trials.shape)
            every = pm.Deterministic("p", everywhere, dims=("system", "question"))
            observe(outcomes, every, judges)
        else:
            p = pm.Beta("p", prior.alpha, prior.beta, dims=("system", "question"))
            observe(outcomes, p, judges)
    return model


def _checked_form(pooling: Pooling, difficulty: str, form: Form | None) -> Form:
    """Return the form asked for, or the default of the family, where the model has it."""
    if difficulty not in DIFFICULTY_FAMILIES:
        raise ArgumentError(
            Argument("difficulty"),
            f" must be one of {', '.join(DIFFICULTY_FAMILIES)}; got {difficulty!r}.",
        )
    if form not in (None, "full", "marginal"):
        raise ArgumentError(Argument("form"), f" must be 'full' or 'marginal'; got {form!r}.")
    if pooling != "partial" and (form == "marginal" or difficulty != "beta"):
        what = f"difficulty={difficulty!r}" if difficulty != "beta" else f"form={form!r}"
        raise ValueError(
            f"{what} needs pooling='partial'; got pooling={pooling!r}, which has no "
            "hyperparameters to keep. Leave it out."
        )
    if form == "full" and difficulty != "beta":
        raise ValueError(
            f"form='full' needs difficulty='beta'; got {difficulty!r}, whose success probabilities "
            "are integrated out. Use form='marginal'."
        )
    return form or ("full" if difficulty == "beta" else "marginal")


def build_families(
    outcomes: Outcomes, pooling: Pooling, prior: Prior, form: Form, judges: Judges | None = None
) -> dict[str, pm.Model]:
    """Return the model of every difficulty family of the prior, or the only one there is."""
    if not isinstance(prior, HyperPrior):
        return {"": build_beta_binomial(outcomes, pooling, prior=prior, form=form, judge=judges)}
    options: dict[str, Any] = {"prior": prior, "form": form, "judge": judges}
    return {
        name: build_beta_binomial(outcomes, pooling, difficulty=name, **options)
        for name in prior.family_prior
    }


def coordinates(outcomes: Outcomes) -> dict[str, list[object]]:
    """Return the labels of systems and questions."""
    dataset = outcomes.dataset
    return {name: dataset[name].values.tolist() for name in ("system", "question")}


def observe(outcomes: Outcomes, p: pt.TensorVariable, judges: Judges | None = None) -> None:
    """Add Binomial successes, or marks, given p, with data in containers that can be exchanged."""
    if judges is not None:
        s, f = mark_rates(judges)
        p = f[:, None] + (s - f)[:, None] * p
    dims = ("system", "question")
    data = model_data(outcomes, "full")
    trials = pm.Data("trials", data["trials"], dims=dims)
    observed = pm.Data("successes_data", data["successes_data"], dims=dims)
    pm.Binomial("successes", n=trials, p=p, observed=observed, dims=dims)


def model_data(outcomes: Outcomes, form: Form) -> dict[str, NDArray[np.generic]]:
    """Return the values of a model's `pymc.Data` containers: all that depends on the data."""
    if form in ("full", "crossed"):
        return {"trials": outcomes.trials.values, "successes_data": outcomes.successes.values}
    pairs = np.stack([outcomes.successes.values, outcomes.trials.values], axis=-1)
    states, count, system = distinct_states(pairs)
    return dict(zip(_STATES, (*states.T, count, system), strict=True))


def distinct_states(
    tables: NDArray[np.generic],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Distinct rows of (system, question, column), how often each comes, and its system."""
    found = [np.unique(own, axis=0, return_counts=True) for own in tables]
    states, count = (np.concatenate(each).astype(np.float64) for each in zip(*found, strict=True))
    return states, count, np.repeat(np.arange(len(found)), [len(own) for own, _ in found])


def _marginal_likelihood(outcomes: Outcomes, shape: Shape, judges: Judges | None) -> None:
    """Add the log-likelihood of each system's distinct counts, or marks."""
    data = model_data(outcomes, "marginal")
    c, n, count, system = (pm.Data(name, data[name]) for name in _STATES)
    if judges is None:
        pm.Potential("log_likelihood", count * shape.log_states(c, n, system))
        return
    marks, trials, _, of = (data[name].astype(int) for name in _STATES)
    known = RightTrials(marks, trials)
    right = known.right
    each = (np.repeat(one, right.shape[1]) for one in (trials, of))
    log_right = shape.log_states(right.ravel(), *each).reshape(right.shape)
    rates = (one[of] for one in mark_rates(judges))
    pm.Potential("log_likelihood", count * known.log_marks(log_right, *rates))


__all__ = ["BetaPrior", "HyperPrior", "build_beta_binomial"]
