"""Rates of the verdicts of a gate, from gates on simulated runs."""

from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit

from bayesatk._tools.arrays import Array, Flags, Ints, Rng
from bayesatk._tools.batches import in_batches
from bayesatk._tools.messages import Argument, ArgumentError, one_of, whole_number
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.words import share_error
from bayesatk.comparison.gates.gate import EXIT_CODES, gate_of, joined_outcomes
from bayesatk.comparison.gates.policy import GatePolicy, check_policy
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.roles import GROUP, WEIGHT
from bayesatk.data.tally import tally
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.models_of import system_model
from bayesatk.posterior.observed import question_shares
from bayesatk.posterior.questions import draw_new_p
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGETS
from bayesatk.results.views import ShownTable

SHIFT_MAX = 40.0  # of success probabilities, in logits


@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def gate_rates(
    fit: Fit,
    policy: GatePolicy,
    *,
    target: Literal["questions", "population"] = "questions",
    trials: int | None = None,
    gates: int = 100,
    rng: RandomSource = 0,
    progress: bool | None = None,
    client: Any = None,
) -> pd.DataFrame:
    """Simulate repetitions of a gate, and count its verdicts: the long run, before any release.

    In every repetition success probabilities are drawn from the posterior of the baseline; trials
    of the baseline and of a new system are drawn with them; and `bayesatk.decide.gate` decides.

    Parameters
    ----------
    fit : xarray.DataTree
        Of the baseline alone, right and wrong, from `bayesatk.evaluate`; for these questions with
        ``keep=["p"]``.
    policy : GatePolicy
        The rules. The new system is the same as the baseline; where the policy has an ``effect``
        there is a second row, in which the new system differs by it.
    target : {"questions", "population"}
        ``"questions"``: new trials of these questions; ``"population"``: in every repetition new
        questions like these, for a result with ``pooling="partial"``.
    trials : int, optional
        Trials of each question in a repetition. Default: those of the result.
    gates : int
        Repetitions of each row, about half a second each.
    rng : int, numpy.random.Generator or None
        Seed of the repetitions.
    progress : bool, optional
        Show a progress bar. Default: after two seconds, if the output is a terminal.
    client : dask.distributed.Client, optional
        Run gates as tasks of this cluster.

    Returns
    -------
    pandas.DataFrame
        A row for each ``difference`` (new minus baseline): ``questions``, ``trials`` (their mean),
        ``gates``, and the rates ``prob_pass``, ``prob_fail`` and ``prob_inconclusive``, each with
        its binomial standard error (``_error``; of a rate of 0 or 1 as if one gate had differed),
        and a ``sentence``. Two independent gates differ with probability one minus the sum of the
        squared rates.

    Raises
    ------
    ValueError
        If the result is of several systems, lacks the draws, or leaves no room for the effect.

    See Also
    --------
    bayesatk.decide.gate : the verdict on a new system.
    bayesatk.decide.gate_design : the rates by a normal approximation, at once, also without data.

    Notes
    -----
    Both systems of a repetition have the same success probabilities. At a difference the odds of
    all questions are multiplied by one number, so that the metric, averaged over the questions,
    differs by it. Rates are averages over what the baseline leaves open. The gate sees counts,
    weights and groups of the questions; its model is that of the policy.

    Examples
    --------
    >>> import bayesatk
    >>> runs = [[1, 1, 1, 1]] * 12 + [[0, 0, 0, 1]] * 8
    >>> fit = bayesatk.evaluate(runs, "pass@1", keep=["p"], rng=1)
    >>> policy = bayesatk.decide.GatePolicy("pass@1", margin=0.3, pooling="none")
    >>> row = gate_rates(fit, policy, gates=10).iloc[0]
    >>> bool(row["prob_pass"] > 0.9), float(row["prob_fail"])
    (True, 0.0)
    """
    result = _baseline(fit, policy)
    one_of("target", target, TARGETS)
    whole_number("gates", gates)
    tried = np.full(result.trials.shape[1], True) if trials else result.trials[0] > 0
    trial_counts = (
        np.full(len(tried), whole_number("trials", trials)) if trials else result.trials[0]
    )
    trial_counts, share = trial_counts[tried], question_shares(result.study, tried)
    generator, seed = resolve_rng(rng)
    p = draw_success_probabilities(result, target, gates, generator)[:, tried]
    template, rows = _template(result, tried, trial_counts), []
    for difference in dict.fromkeys([0.0, policy.effect or 0.0]):
        new = shifted(p, difference, policy.asked, share)
        right = generator.binomial(
            trial_counts, np.stack([new, p], axis=1)
        )  # (gates, 2, questions)
        decide = partial(_verdict, template, policy, right, trial_counts)
        simulated = in_batches(decide, range(gates), client, "Simulating gates", progress)
        verdicts = [verdict for _, verdict in simulated]
        row: dict[str, Any] = {
            "difference": difference,
            "questions": len(trial_counts),
            "trials": trial_counts.mean(),
            "gates": gates,
        }
        for name in EXIT_CODES:
            rate = verdicts.count(name) / gates
            row |= {f"prob_{name}": rate, f"prob_{name}_error": float(share_error(rate, gates))}
        rows.append(row | {"sentence": _sentence(row)})
    return ShownTable.of(rows, "gate_rates", seed=seed, policy_sha256=policy.sha256)


def _baseline(fit: Fit, policy: GatePolicy) -> Result:
    """Return the result of a baseline, or refuse what is no policy or cannot be simulated."""
    check_policy(policy)
    result = Result.of(fit)
    if len(result.systems) != 1:
        rule = f" must be a result of the baseline alone; it has {len(result.systems)} systems."
        raise ArgumentError("fit", rule)
    result.require("gate_rates")
    if policy.asked.voted:
        raise ArgumentError(
            "policy",
            " must have a metric of right and wrong, which repetitions are drawn of; got "
            f"{policy.metric}. Take one, such as 'maj@3' or 'pass@1'.",
        )
    return result


def draw_success_probabilities(result: Result, target: str, size: int, rng: Rng) -> Array:
    """Draw success probabilities (size, questions): of these questions, or of new ones like them.

    A new question has the group, the covariates and the number of trials of the one it replaces.
    """
    if target == TARGETS[1]:
        if result.pooling != "partial":
            raise ArgumentError(
                "fit",
                " must have a law from which new questions come; got "
                f"pooling={result.pooling!r}. Evaluate with ",
                Argument("pooling", "partial"),
                ".",
            )
        return draw_new_p(system_model(result.study, 0), size, rng)[0]
    if "p" not in result.posterior:
        of_law = result.pooling == "partial"
        raise ArgumentError(
            "fit",
            " must have the draws of p of these questions. Evaluate the same data with ",
            Argument("keep", ["p"]),
            *((", or pass ", Argument("target", TARGETS[1])) if of_law else ()),
            ".",
        )
    p = result.posterior["p"].isel(system=0).transpose("chain", "draw", "question").values
    flat = p.reshape(-1, p.shape[-1])
    return np.asarray(np.clip(flat[rng.choice(len(flat), size, len(flat) < size)], 0.0, 1.0))


def shifted(p: Array, difference: float, metric: Metric, share: Array) -> Array:
    """Return success probabilities (draws, questions) whose mean metric is larger by `difference`.

    The logits of all questions are shifted by the same number.

    Examples
    --------
    >>> from bayesatk.metrics.grid import parse
    >>> p = np.array([[0.5, 0.5]])
    >>> shifted(p, -0.1, parse("pass@1")[0], np.array([0.5, 0.5])).round(6).tolist()
    [[0.4, 0.4]]
    """
    if difference == 0.0:
        return p

    def excess(shift: float, logits: Array, wanted: float) -> float:
        return float(metric.latent(expit(logits + shift)) @ share) - wanted

    moved = np.empty_like(p)
    for row, logits in enumerate(logit(np.clip(p, 1e-9, 1.0 - 1e-9))):
        wanted = float(metric.latent(p[row]) @ share) + difference
        ends = [excess(end, logits, wanted) for end in (-SHIFT_MAX, SHIFT_MAX)]
        if ends[0] * ends[1] >= 0.0:
            raise ArgumentError(
                "effect",
                f" must leave the metric between its ends; got {difference:+g}, where "
                f"{metric.label} of the baseline is {wanted - difference:.2f}. Take a smaller one.",
            )
        moved[row] = expit(logits + brentq(excess, -SHIFT_MAX, SHIFT_MAX, (logits, wanted)))
    return moved


def _template(result: Result, tried: Flags, trials: Ints) -> Outcomes:
    """Return outcomes of two systems on the questions of a baseline, whose counts are replaced."""
    dataset = result.data.dataset.isel(question=np.flatnonzero(tried))
    columns: dict[str, Any] = {
        name: dataset[name].values for name in (WEIGHT, GROUP) if name in dataset.coords
    }
    outcomes = tally((trials, trials), questions=dataset["question"].values.tolist(), **columns)
    return joined_outcomes(outcomes, outcomes)


def _verdict(template: Outcomes, policy: GatePolicy, right: Ints, trials: Ints, index: int) -> str:
    """Return the verdict of one gate, on successes (2, questions) of the new and the old system."""
    counts = np.stack([trials - right[index], right[index]], axis=-1)
    dataset = template.dataset.assign(count=(("system", "question", "category"), counts))
    return gate_of(Outcomes(dataset, template.notes), policy).verdict


def _sentence(row: dict[str, Any]) -> str:
    passes, fails, undecided = (
        f"{row[f'prob_{name}']:.3f} ± {row[f'prob_{name}_error']:.3f}" for name in EXIT_CODES
    )
    system = f"differs by {row['difference']:+g}" if row["difference"] else "is the same"
    return (
        f"{row['questions']} questions, {row['trials']:.3g} trials each: a system that {system} "
        f"passes with probability {passes}, fails with {fails}, and is inconclusive with "
        f"{undecided} ({row['gates']} gates)."
    )
