"""The gate: whether a new system passes against a baseline, by a policy stated beforehand."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Array, Flags
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk._tools.seeding import RandomSource
from bayesatk._tools.threads import one_thread
from bayesatk._tools.words import few_names, near_words, printable, probability_words, share_error
from bayesatk.comparison.gates.floors import FloorCheck, Verdict, check_floors, decided
from bayesatk.comparison.gates.policy import (
    RULES,
    GateDesign,
    GatePolicy,
    GateRates,
    check_policy,
    design_of,
    run_noise,
)
from bayesatk.comparison.pairs.systems import check_difference, compare
from bayesatk.comparison.pairs.together import deciding_target, joint_draws
from bayesatk.comparison.pairs.verdicts import PairSentences, named
from bayesatk.data.capabilities import require_operation
from bayesatk.data.outcomes import Outcomes, with_stopping
from bayesatk.data.roles import GROUP, WEIGHT
from bayesatk.data.study import outcome_values
from bayesatk.data.tally import tally
from bayesatk.posterior.evaluate import evaluate
from bayesatk.posterior.observed import observed_value
from bayesatk.results.result import Fit, Result, analysis_group, with_analysis
from bayesatk.results.schema import TARGET_NAMES, TARGETS

_DENSITY_POINTS = 201  # at which the density of the difference is stored
EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 3}


@dataclass(frozen=True)
class Gate:
    """The verdict of a gate, its evidence, and the rate at which another run would change it.

    Parameters
    ----------
    verdict : {"pass", "fail", "inconclusive"}
        Of the difference and all floors together.
    probability : float
        Posterior probability that the difference is above the policy's threshold.
    error : float
        Monte Carlo standard error of the probability.
    observed : dict
        Unbiased estimate of the metric by system (NaN where k exceeds the trials).
    difference : dict
        Posterior of new minus baseline: mean, sd, ci_lower, ci_upper.
    replication : float
        Probability that the same design, run again on the same questions, gives the same verdict on
        the difference, averaged over what this run leaves open about the difference. If the systems
        do not differ, it is ``design.same_system.of(verdict)`` instead.
    design : GateDesign
        Rates of verdicts if the new system is the same as the baseline, and at the policy's effect.
    floors : tuple of FloorCheck
        Result of each floor.
    policy : GatePolicy
        The rules.
    claim : str
        The sentence of `bayesatk.claim` about the two systems.
    compared : Result
        Of the two systems.
    draws : ndarray
        Of the difference.
    systems : tuple
        Labels of the new system and of the baseline.
    left_out : int
        Questions that only one of them tried.
    """

    verdict: Verdict
    probability: float
    error: float
    observed: dict[str, float]
    difference: dict[str, float]
    replication: float
    design: GateDesign
    floors: tuple[FloorCheck, ...]
    policy: GatePolicy
    claim: str
    compared: Result
    draws: Array
    systems: tuple[object, object]
    left_out: int

    @property
    def target(self) -> str:
        """The target whose difference decides: with one trial of each question not the policy's."""
        return TARGETS[deciding_target(self.compared, TARGETS.index(self.policy.target))]

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return EXIT_CODES[self.verdict]

    @property
    def origin(self) -> dict[str, Any]:
        """Digest of the counts, seed and versions."""
        attrs = self.compared.tree.attrs
        return {
            "input_sha256": attrs["input_sha256"],
            "input_files": self.compared.described("input_files"),
            "seed": attrs["seed"],
            "versions": self.compared.described("versions"),
            "created_at": attrs["created_at"],
            "questions": self.compared.trials.shape[1],
            "questions_left_out": self.left_out,
        }

    def group(self) -> xr.Dataset:
        """Return the group ``gate``: the difference and all floors, and what was decided."""
        policy, above = self.policy, self.probability
        rows = [
            {
                "check": "difference",
                **self.difference,
                "threshold": policy.threshold,
                "above": above,
                "below": 1.0 - above,
                "verdict": decided(above, policy.ci_prob),
                "sentence": self._verdict(),
            },
            *(
                {
                    "check": f"floor {floor.label}",
                    "mean": floor.value,
                    "threshold": floor.floor,
                    "above": floor.above,
                    "below": floor.below,
                    "verdict": floor.verdict,
                    "sentence": floor.sentence,
                }
                for floor in self.floors
            ),
        ]
        record = self.as_dict()
        attrs = {
            **{name: record[name] for name in ("verdict", "exit_code", "policy_sha256")},
            "metric": policy.metric,
            "target": self.target,
            "ci_prob": policy.ci_prob,
            "seed": record["origin"]["seed"],
            "record": record,
        }
        group = analysis_group(pd.DataFrame(rows), ["check"], attrs, sentences=self._reasons())
        at, density = _density(self.draws)
        return group.assign(density=("difference", density)).assign_coords(difference=at)

    def as_dict(self) -> dict[str, Any]:
        """Return everything in a form that JSON can store; docs/schema.md describes it."""
        return {
            "schema": "bayesatk-gate/1",
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "policy": self.policy.as_dict(),
            "policy_sha256": self.policy.sha256,
            "target": self.target,
            "systems": dict(zip((NEW, BASELINE), map(str, self.systems), strict=True)),
            "probability": self.probability,
            "monte_carlo_error": self.error,
            "observed": {k: None if np.isnan(v) else v for k, v in self.observed.items()},
            "difference": self.difference,
            "replication": self.replication,
            "design": self.design.as_dict(),
            "floors": [
                asdict(check) | {"value": None if np.isnan(check.value) else check.value}
                for check in self.floors
            ],
            "claim": self.claim,
            "notes": self.compared.notes_on(),
            "origin": self.origin,
        }

    def sentences(self) -> list[str]:
        """Return the verdict, its reasons and its long run, a sentence or two each."""
        floors = [check.sentence for check in self.floors]
        return [self._verdict(), *floors, *self._reasons()]

    def _verdict(self) -> str:
        policy, (new, baseline) = self.policy, map(named, self.systems)
        worse = policy.rule == RULES[0]
        chance, level = probability_words(self.probability), policy.ci_prob
        draws = self.compared.group("comparison").attrs["effective_draws"]
        near = near_words(self.probability, level, draws)
        near = near or near_words(self.probability, 1.0 - level, draws)
        stated = TARGET_NAMES[policy.target]
        alone = decided(self.probability, level)
        floors = [check.label for check in self.floors if check.verdict == self.verdict != alone]
        return (
            f"{self.verdict.upper()}: {f'floor {few_names(floors)}; ' if floors else ''}"
            f"in {policy.metric} on {TARGET_NAMES[self.target]} {new} is "
            f"{'not worse' if worse else 'better'} than {baseline} by more than {policy.margin:g} "
            f"with probability {chance} (pass at {level:g}, fail at {1.0 - level:g})"
            f"{f', alone: {alone}' if floors else ''}."
            + near
            + f" One trial of each question says too little of {stated} alone, the policy's target."
            * (self.target != policy.target)
        )

    def _reasons(self) -> list[str]:
        """Return what was found of both systems, what other runs would find, and notes."""
        notes = self.compared.notes_on()
        return [self.claim, *self._repeated(), *self.design.lines(), *notes]

    def _repeated(self) -> list[str]:
        """Say how often a second run gives this verdict, by what this one found."""
        verdict = decided(self.probability, self.policy.ci_prob)
        return [
            "If both systems are run again on these questions, the verdict on the difference is "
            f"{verdict} again with probability {probability_words(self.replication)}, by what this "
            "run says of them."
        ]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def markdown(self) -> str:
        """Return a summary for a pull request."""
        mark = {"pass": "✅", "fail": "❌", "inconclusive": "❔"}[self.verdict]
        first, *reasons = (escaped(sentence) for sentence in self.sentences())
        rules = ", ".join(f"{k} {v}" for k, v in self.policy.as_dict().items() if k != "groups")
        lines = [f"### {mark} {first}", "", *(f"* {sentence}" for sentence in reasons), ""]
        lines += [
            f"Policy: {escaped(rules)}; SHA-256 `{self.policy.sha256[:16]}`. Counts: SHA-256 "
            f"`{self.origin['input_sha256'][:16]}`. bayesatk {self.origin['versions']['bayesatk']}."
        ]
        return "\n".join(lines) + "\n"

    _repr_markdown_ = markdown


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, and no link of a bare address."""
    marked = "".join(
        f"\\{character}" if character in "\\`*_{}[]<>#|~$" else character
        for character in printable(text)
    )
    return marked.replace("://", "\\://").replace("www.", "www\\.")


NEW, BASELINE = "new", "baseline"


@one_thread()
@np.errstate(under="ignore")  # what vanishes below 1e-308 is zero here, however strict the caller
def gate(
    new: object,
    baseline: object,
    policy: GatePolicy | None = None,
    *,
    metric: str | None = None,
    margin: float | None = None,
    rule: Literal["non-inferiority", "superiority"] = "non-inferiority",
    ci_prob: float = 0.95,
    target: Literal["questions", "population"] = "questions",
    effect: float | None = None,
    shared: bool = False,
    judge: object = None,
    rng: RandomSource = 0,
) -> xr.DataTree:
    """Decide whether a new system passes against a baseline on the same questions.

    Parameters
    ----------
    new, baseline : array_like, table, Outcomes, ...
        The outcomes of one system each, as `bayesatk.tally` takes them, or from `bayesatk.load`.
        Or `new` is a result of two systems, from `bayesatk.evaluate` with whatever model was
        declared there (groups, covariates, earlier trials, a judge, a prior), and `baseline` the
        label of one of them.
    policy : GatePolicy, optional
        All rules; give either this or the arguments from `metric` to `effect`.
    metric, margin, rule, ci_prob, target, effect
        As in `GatePolicy`.
    shared : bool
        Use the questions that both tried. By default it is an error if one did not try a question
        that the other tried, because a system that crashes on hard questions would look better.
    judge : JudgeError, mapping, table or path, optional
        As in `bayesatk.evaluate`, of the systems ``"new"`` and ``"baseline"``: the gate is then one
        of what is true. Data with trials of known truth (``truth=`` of `bayesatk.tally`) need none.
    rng : int, numpy.random.Generator or None
        Seed of the draws for pooled floors and for questions like these. With the default, the same
        data always get the same verdict.

    Returns
    -------
    xarray.DataTree
        The result of both systems after `bayesatk.compare`, with the group ``gate``. Systems
        without names, or of one name, are called ``"new"`` and ``"baseline"`` in it, too.
        ``bayesatk.table(tree, "gate")`` shows verdict and reasons, with a row for the difference
        and for each floor: ``check``, ``mean`` (of a floor the estimate),
        ``sd``, ``ci_lower`` and ``ci_upper`` of the difference, ``threshold``, the probability (of
        a floor the confidence) that the value is ``above`` and ``below`` it, ``verdict`` and
        ``sentence``. Attributes of the group: ``verdict`` of the difference and all floors,
        ``exit_code`` (0 pass, 1 fail, 3 inconclusive), ``policy_sha256``, and ``record``, the
        JSON document of docs/schema.md. ``density`` is that of the difference. ``bayesatk gate
        --markdown`` writes a summary for a pull request.

    Raises
    ------
    ValueError
        If the systems did not try the same questions, a floor names no question and no group, or a
        result has another pooling or ``ci_prob`` than the policy.

    See Also
    --------
    bayesatk.plots.plot_gate : the posterior of the difference, and the threshold.
    bayesatk.decide.gate_design : how often verdicts change between runs, and power; no data needed.
    bayesatk.claim : the sentence that a comparison supports without a policy.

    Notes
    -----
    The probability that the difference is above ``-margin`` (non-inferiority) or ``+margin``
    (superiority) is the one that `bayesatk.compare` computes with ``rope=margin``. The gate passes
    if it is `ci_prob` or more, fails if it is ``1 - ci_prob`` or less, and is inconclusive
    otherwise; a floor that fails, or is inconclusive, does the same to the gate.
    Floors are tests of the trials of their own questions, with binomial tails, so that a verdict on
    one that is false is as rare as `ci_prob` says, whatever the other questions are.

    Replication probabilities: in a new run the mean of the difference is normal around the present
    one, with the sum of the posterior variance and of the variance of new trials, and the run
    passes if its mean exceeds the threshold by z posterior sds, with z the normal quantile of
    `ci_prob`. Where a judge errs, another run has its marks and its labels anew: the means of runs
    are taken to vary as much as the posterior.

    Examples
    --------
    >>> old = [[1, 1, 1, 0, 1, 1, 1, 1]] * 20 + [[0, 1, 0, 0, 1, 0, 0, 1]] * 20
    >>> release = gate(old, old, metric="pass@1", margin=0.1)
    >>> release["gate"].attrs["verdict"], release["gate"].attrs["exit_code"]
    ('pass', 0)
    >>> bool(release["gate"]["above"].sel(check="difference") > 0.99)
    True

    The harder half has sources of another kind, which both systems find harder:

    >>> import bayesatk
    >>> data = bayesatk.tally({"v1": old, "v2": old}, covariates={"web": [0] * 20 + [1] * 20})
    >>> fit = bayesatk.evaluate(data, "pass@1", covariates=["web"], rng=1)
    >>> gate(fit, "v1", metric="pass@1", margin=0.1)["gate"].attrs["verdict"]
    'pass'
    """
    fit = Result.of(new) if isinstance(new, Fit) else None
    if policy is None:
        if metric is None or margin is None:
            raise ArgumentError(
                "a gate must have its rules stated: give a policy, or ",
                Argument("metric", metric or "pass@1"),
                " and ",
                Argument("margin", 0.02 if margin is None else margin),
                ".",
            )
        policy = GatePolicy(metric, margin, rule, ci_prob, target, effect)
        if fit is not None and not fit.own:
            policy = replace(policy, pooling=fit.pooling)
    elif metric is not None or margin is not None:
        raise ArgumentError("metric", " and margin must be left out with a policy.")
    check_policy(policy)
    if fit is not None:
        for name, value in (("shared", shared), ("judge", judge)):
            if value:
                raise ArgumentError(
                    name,
                    f" must be left out with a result, which has its data and judge; got "
                    f"{value!r:.80}.",
                )
        decision = gate_of_result(fit, baseline, policy)
        return with_analysis(decision.compared.tree, "gate", gate=decision.group())
    if policy.asked.voted:
        raise ArgumentError(
            "metric",
            " must judge marks or scores here; for votes evaluate both "
            "systems together, and pass the result and the label of the baseline.",
        )
    data = joined_outcomes(new, baseline)
    judge = _of_labels(judge, data.systems)
    decision = gate_of(data, policy, shared=shared, judge=judge, rng=rng)
    return with_analysis(decision.compared.tree, "gate", gate=decision.group())


def joined_outcomes(new: object, baseline: object) -> Outcomes:
    """Return the outcomes of two systems, each given by itself, aligned on their questions."""
    both = {NEW: tally(new), BASELINE: tally(baseline)}
    for name, outcomes in both.items():
        if len(outcomes.systems) == 1:
            require_operation("gate", outcome_values(outcomes), name)
    common = {name: _common_column(both, name) for name in (WEIGHT, GROUP)}
    for name, outcomes in both.items():
        if len(outcomes.systems) != 1:
            raise ArgumentError(
                name,
                f" must be of one system; it has {outcomes.systems!r:.200}. Give one: "
                f"bayesatk.tally(data).sel(system={outcomes.systems[0]!r:.60}).",
            )
    scores = _common_scores(both)
    counts = [
        dataset.assign_coords(system=[name])
        for name, dataset in zip(_labels(both), _counts(both), strict=True)
    ]
    joined = xr.concat(counts, dim="system", join="outer", fill_value=0)
    joined = joined.assign_coords(score=scores.variable).astype(np.int64)
    joined = joined.assign_coords(
        {
            name: column.sel(question=joined["question"])
            for name, column in common.items()
            if column is not None
        }
    )
    policies = {
        str(outcomes.dataset.attrs.get("missing_policy", "error")) for outcomes in both.values()
    }
    if len(policies) > 1:
        policies.discard("error")  # nothing is missing there
    notes = tuple(dict.fromkeys(note for outcomes in both.values() for note in outcomes.notes))
    sources = tuple(source for outcomes in both.values() for source in outcomes.sources)
    joined.attrs["missing_policy"] = "ignore" if len(policies) > 1 else policies.pop()
    joined.attrs.pop("stopping", None)  # of the first, by another name
    stopped = [outcomes.stopped.item() for outcomes in both.values()]
    return Outcomes(with_stopping(joined, stopped), notes, None, sources)


def _of_labels(judge: object, systems: list[Any]) -> object:
    """Return a judge of each system by its label, where it was given by "new" and "baseline"."""
    if not isinstance(judge, Mapping):
        return judge
    labels = dict(zip((NEW, BASELINE), systems, strict=True))
    return {labels.get(str(system), system): errors for system, errors in judge.items()}


def _labels(both: dict[str, Outcomes]) -> list[str]:
    """Return the names of two systems; of one name, with what they are."""
    names = [outcomes.systems[0] for outcomes in both.values()]
    if not all(isinstance(name, str) for name in names) or names == ["system"] * 2:
        return [*both]
    if names[0] == names[1]:
        return [f"{name} ({kind})" for name, kind in zip(names, both, strict=True)]
    return names


def _counts(both: dict[str, Outcomes]) -> list[xr.Dataset]:
    """Return what is counted of both systems: truths too, where some are known."""
    labelled = ["truth_count" in outcomes.dataset for outcomes in both.values()]
    if any(labelled) and not all(labelled):
        raise ArgumentError(
            list(both)[labelled.index(False)],
            " must have trials of known truth beside "
            "others where the other system has them. Read both with ",
            Argument("truth", ..., "tally"),
            "; of a system whose every truth is known, leave one out.",
        )
    names = ["count", "missing", *(["truth_count"] if all(labelled) else [])]
    return [outcomes.dataset[names].reset_coords(drop=True) for outcomes in both.values()]


def _common_scores(both: dict[str, Outcomes]) -> xr.DataArray:
    """Return the scores of the categories, with their direction, which are those of both."""
    new, old = (outcomes.dataset["score"] for outcomes in both.values())
    scales = [scores.to_series().to_dict() for scores in (new, old)]
    if scales[0] != scales[1]:
        raise ArgumentError(
            NEW, f" must have the scores of baseline; got {scales[0]} and {scales[1]}."
        )
    if both[NEW].direction != both[BASELINE].direction:
        raise ArgumentError(
            NEW,
            " and baseline must be read with the same better=; lower scores are "
            "better in one of them only.",
        )
    return new


def _common_column(both: dict[str, Outcomes], name: str) -> xr.DataArray | None:
    """Return weights or groups of all questions, which both systems must have alike."""
    held = {system: name in outcomes.dataset.coords for system, outcomes in both.items()}
    if not all(held.values()):
        if any(held.values()) and name == WEIGHT:
            rule = f" of the questions must be given for both; got {held}. Give the same to both."
            raise ArgumentError(name, rule)
        return None
    new, old = (outcomes.dataset[name] for outcomes in both.values())
    new, old = (
        xr.DataArray(column.values, {"question": column["question"].values}, ["question"])
        for column in (new, old)
    )
    new_shared, old_shared = xr.align(new, old, join="inner")
    if (new_shared.values != old_shared.values).any():
        mismatch = int((new_shared.values != old_shared.values).argmax())
        first, second = new_shared.values.tolist()[mismatch], old_shared.values.tolist()[mismatch]
        raise ArgumentError(
            name,
            " of a question must be the same for both systems; that of "
            f"{new_shared['question'].values.tolist()[mismatch]!r} is {first!r} and {second!r}. "
            "Give the same to both.",
        )
    return new.combine_first(old)


def gate_of(
    data: Outcomes,
    policy: GatePolicy,
    *,
    shared: bool = False,
    judge: object = None,
    rng: RandomSource = 0,
) -> Gate:
    """Return the verdict on outcomes of two systems, the new one first."""
    data, lacking = _shared_questions(data, shared)
    # With 2500 draws per chain a probability of 0.95 has a standard error of 0.002.
    pooled = bool(policy.floors) and policy.pooled_floors
    fit = evaluate(
        data,
        policy.metric,
        pooling=policy.pooling,
        keep=["p"] if pooled else (),
        rng=rng,
        draws=2500,
        progress=False,
        ci_prob=policy.ci_prob,
        judge=judge,
        group=False,
    )
    new, baseline = data.systems
    return _gate(Result.of(fit), policy, new, baseline, lacking)


def gate_of_result(fit: Result, baseline: object, policy: GatePolicy) -> Gate:
    """Return the verdict on two systems of a result, under the model that it declares."""
    (position, *_) = fit.positions(baseline, BASELINE)
    if len(fit.systems) != 2:
        raise ArgumentError(
            NEW,
            f" must be a result of two systems; it has {len(fit.systems)}. Choose two: "
            f"fit.sel(system={fit.systems[:2]!r:.80}).",
        )
    for name in ("ci_prob",) if fit.own else ("pooling", "ci_prob"):
        stated, declared = getattr(policy, name), getattr(fit, name)
        if stated != declared:
            raise ArgumentError(
                "policy",
                f" must have the {name} of the result, {declared!r}; got {stated!r}. "
                "Evaluate the same data with ",
                Argument(name, stated),
                ".",
            )
    if policy.asked not in [*fit.grid]:
        raise ArgumentError(
            "metric",
            f" must be one of the result, {' '.join(member.label for member in fit.metrics)}; got "
            f"{policy.metric}. Evaluate the same data for it: ",
            Argument("metrics", policy.metric),
            ".",
        )
    _check_tried(fit.trials > 0, "evaluate those that both tried: data.shared()")
    return _gate(fit, policy, fit.systems[1 - position], fit.systems[position])


def _gate(
    fit: Result, policy: GatePolicy, new: object, baseline: object, left_out: int = 0
) -> Gate:
    """Return the verdict on two systems of a result."""
    check_difference(fit, "margin", policy.margin)
    compared = Result.of(compare(fit.tree, rope=policy.margin))
    positions = {NEW: compared.systems.index(new), BASELINE: compared.systems.index(baseline)}
    i, j = positions.values()
    sentences = PairSentences(compared)
    target = deciding_target(compared, TARGETS.index(policy.target))
    rows = sentences.rows(policy.asked, i, j)
    on_target, question_sd = rows[target], rows[0]["sd"]
    probability = probability_above(policy, on_target)
    verdict, floors = decided(probability, policy.ci_prob), check_floors(compared, i, policy)
    sd, noise = (np.sqrt(2.0) * np.array(run_noise(compared, j, policy.asked))).tolist()
    # New trials move the difference as they do on these questions, however alike two runs are.
    run_sd, target_sd = max(noise, question_sd), max(on_target["sd"], question_sd)
    scale = target_sd / question_sd if question_sd > 0.0 else 1.0
    gap = compared.scale.direction * on_target["mean"] - policy.threshold
    of_systems = joint_draws(compared)[target, [*compared.grid].index(policy.asked)]
    observed = {
        name: observed_value(compared, k, policy.asked, of_all=True)
        for name, k in positions.items()
    }
    return Gate(
        _worst_verdict([verdict, *(floor.verdict for floor in floors)]),
        probability,
        float(share_error(probability, compared.group("comparison").attrs["effective_draws"])),
        observed,
        {name: on_target[name] for name in ("mean", "sd", "ci_lower", "ci_upper")},
        _repeat_probability(gap, verdict, target_sd, question_sd, run_sd, policy.ci_prob),
        GateDesign.of(policy, *design_of(compared, j), scale * sd, noise, compared.scale.direction),
        floors,
        policy,
        sentences.of(policy.asked, i, j, as_given=True).sentences[target],
        compared,
        of_systems[i] - of_systems[j],
        (new, baseline),
        left_out,
    )


def probability_above(policy: GatePolicy, contrast: Mapping[str, float]) -> float:
    """Return the probability that decides: of a difference above the policy's threshold."""
    if policy.rule == RULES[0]:
        return 1.0 - contrast["prob_below_rope"]
    return contrast["prob_above_rope"]


def _worst_verdict(verdicts: list[Verdict]) -> Verdict:
    return max(verdicts, key=("pass", "inconclusive", "fail").index)


def _shared_questions(data: Outcomes, shared: bool) -> tuple[Outcomes, int]:
    """Return outcomes on the questions that both tried, and how many only one of them tried."""
    require_operation("gate", outcome_values(data), "data")
    tried = (data.trials > 0).values
    if not shared or not tried.all(axis=0).any():
        _check_tried(tried, "use those that both tried: ", Argument("shared", True))
    return data if tried.all() else data.shared(), int((tried[0] != tried[1]).sum())


def _check_tried(tried: Flags, *remedy: str | Argument) -> None:
    """Refuse questions (system, question) that one of both systems did not try."""
    if not tried.all(axis=0).any():
        raise ArgumentError(
            NEW,
            " must have tried questions of the baseline; it shares none of "
            f"{tried.shape[1]} with it. Run both on the same questions.",
        )
    lacking = int((tried[0] != tried[1]).sum())
    if lacking:
        raise ArgumentError(
            f"both systems must have tried the same questions; {lacking} of {tried.shape[1]} were "
            "tried by one of them only. Run them, or ",
            *remedy,
            ".",
        )


def _density(draws: Array) -> tuple[Array, Array]:
    """Return equidistant points over the range of draws, and the density; NaN if all are equal.

    A normal kernel estimate with Scott's bandwidth, sd / n^(1/5), as in `scipy.stats.gaussian_kde`,
    whose import takes half a second.
    """
    low, high = np.quantile(draws, [0.0005, 0.9995]).tolist()
    points = np.linspace(low, high, _DENSITY_POINTS)
    if not high - low > 1e-9:
        return points, np.full(_DENSITY_POINTS, np.nan)
    width = float(draws.std(ddof=1)) * len(draws) ** -0.2
    kernels = np.exp(-0.5 * ((points[:, None] - draws) / width) ** 2)
    return points, kernels.mean(axis=1) / (width * np.sqrt(2.0 * np.pi))


def _repeat_probability(
    gap: float, verdict: str, sd: float, question_sd: float, noise: float, level: float
) -> float:
    """Probability of the same verdict from new trials of the same questions.

    `gap` is by how much the posterior mean of the difference exceeds the threshold.
    """
    moved = np.hypot(question_sd, noise)
    if not (sd > 0.0 and moved > 0.0):
        return 1.0
    return GateRates.at(gap, sd, moved, level).of(verdict)
