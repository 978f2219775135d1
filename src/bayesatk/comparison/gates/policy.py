"""The rules of a gate, stated before its data, and the rates of its verdicts.

Policies come from Python or a TOML file, and have a digest. For rates of verdicts (the same system
run twice, a stated difference, the same design again) posteriors of differences are taken to be
normal, with a mean that varies between runs of the same questions by the posterior sd. A verdict is
then an event of a normal variable. docs/gates.md compares these rates with simulated gates.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from bayesatk._tools.messages import (
    Argument,
    ArgumentError,
    proper_probability,
    real_number,
    whole_number,
)
from bayesatk._tools.words import probability_words
from bayesatk.comparison.plans.pilots import pilots_of
from bayesatk.comparison.plans.planning import information_of
from bayesatk.metrics.grid import Metric, parse
from bayesatk.posterior.observed import question_shares
from bayesatk.results.result import Fit, Result
from bayesatk.results.schema import TARGETS, metric_values

RULES = ("non-inferiority", "superiority")
FLIPS = 0.05  # rate of changed verdicts for which the number of trials is stated


@dataclass(frozen=True)
class GatePolicy:
    """Rules by which a new system passes or fails against a baseline.

    Parameters
    ----------
    metric : str
        One metric at one k.
    margin : float
        Under non-inferiority, how much worse the new system may be (> 0); under superiority, by
        how much it must be better (0 or more).
    rule : {"non-inferiority", "superiority"}
        The new system passes if its difference to the baseline (new minus baseline; baseline minus
        new, where lower scores are better) is above
        ``-margin`` (non-inferiority) or above ``+margin`` (superiority) with posterior probability
        of at least `ci_prob`. It fails if the difference is below that threshold with probability
        of at least `ci_prob`.
    ci_prob : float
        Posterior probability that a verdict needs, in (0.5, 1), and of the interval that is shown.
    target : {"questions", "population"}
        ``"questions"``: the mean over these questions, the same in every run; ``"population"``:
        over questions like these. Where a system has one trial of each question, which says too
        little of these alone, questions like these decide in any case.
    effect : float, optional
        A difference (new minus baseline) at which the power of the gate is reported.
    floors : mapping, optional
        Smallest acceptable value of the metric (the largest, where lower scores are better) by
        question label, or by name of a group in `groups` or in the data (``group=`` of
        `bayesatk.tally`). The new system fails if one value is below its floor, and passes only if
        none is, each with a confidence of ``1 - (1 - ci_prob) / number of floors``, from the trials
        of its own questions alone.
    groups : mapping {name: sequence of question labels}, optional
        Groups for `floors`; the value of a group is the mean over its questions.
    pooling : {"partial", "none", "complete"}
        As in `bayesatk.evaluate`.
    pooled_floors : bool
        Whether floors are judged by posterior probabilities under `pooling`, in which other
        questions speak for those that have a floor. False passes may then be frequent where these
        are harder than the others.

    See Also
    --------
    bayesatk.decide.gate : applies a policy.

    Examples
    --------
    >>> policy = GatePolicy("pass@1", margin=0.02, effect=-0.05)
    >>> policy.threshold, len(policy.sha256)
    (-0.02, 64)
    """

    metric: str
    margin: float
    rule: Literal["non-inferiority", "superiority"] = "non-inferiority"
    ci_prob: float = 0.95
    target: Literal["questions", "population"] = "questions"
    effect: float | None = None
    floors: Mapping[Any, float] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)
    pooling: Literal["partial", "none", "complete"] = "partial"
    pooled_floors: bool = False

    def __post_init__(self) -> None:
        self._check_words()
        real_number("margin", self.margin)
        least = "> 0" if self.rule == RULES[0] else "0 or more"
        if not (self.margin > 0.0 or (self.margin == 0.0 and self.rule == RULES[1])):
            rule = f" must be {least} for {self.rule}; got {self.margin}. Try 0.02."
            if self.margin == 0.0:
                rule += " The rule superiority takes 0: better by any amount."
            raise ArgumentError("margin", rule)
        proper_probability("ci_prob", self.ci_prob, 0.95, least=0.5)
        if self.effect is not None:
            real_number("effect", self.effect)
        self._check_floors()

    def _check_words(self) -> None:
        (_, *more_metrics) = parse(self.metric)
        if more_metrics:
            raise ArgumentError("metric", f" must be one metric at one k; got {self.metric!r}.")
        poolings = ("partial", "none", "complete")
        for name, allowed in (("rule", RULES), ("target", TARGETS), ("pooling", poolings)):
            value = getattr(self, name)
            if value not in allowed:
                raise ArgumentError(
                    name, f" must be one of {', '.join(allowed)}; got {value!r:.80}."
                )

    def _check_floors(self) -> None:
        pooled: object = self.pooled_floors
        if not isinstance(pooled, bool):
            rule = f" must be true or false; got {pooled!r:.80}. Leave it out for false."
            raise ArgumentError("pooled_floors", rule)
        for name in ("floors", "groups"):
            if not isinstance(getattr(self, name), Mapping):
                rule = f" must be a mapping; got {getattr(self, name)!r:.80}."
                raise ArgumentError(name, rule)
        for label, floor in self.floors.items():
            real_number(f"floors: of {label!r}", floor)
        for label, questions in self.groups.items():
            if not isinstance(questions, list | tuple) or not questions:
                raise ArgumentError(
                    "groups",
                    f" must name the questions of each group; got {questions!r:.80} for {label!r}.",
                )
        unused = [label for label in self.groups if label not in self.floors]
        if unused:
            raise ArgumentError(
                "groups", f" must each have a floor; {unused[0]!r} has none in floors."
            )

    @property
    def asked(self) -> Metric:
        """The metric."""
        return parse(self.metric)[0]

    @property
    def threshold(self) -> float:
        """Difference (new minus baseline) above which the new system passes."""
        return self.margin if self.rule == RULES[1] else -self.margin

    @property
    def sha256(self) -> str:
        """SHA-256 of all rules, as JSON with sorted keys; comments in a file do not change it."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return the rules in a form that JSON can store; labels are text."""
        rules = asdict(self)
        rules["floors"] = {str(label): float(floor) for label, floor in self.floors.items()}
        rules["groups"] = {
            name: [str(question) for question in questions]
            for name, questions in self.groups.items()
        }
        return {name: value for name, value in rules.items() if value not in (None, {})}

    @classmethod
    def read(cls, path: str | Path) -> "GatePolicy":
        r"""Read a TOML file whose keys are the parameters.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "gate.toml"
        >>> _ = path.write_text('metric = "pass@1"\nmargin = 0.02\n[floors]\n"q7" = 0.9\n')
        >>> GatePolicy.read(path).floors
        {'q7': 0.9}
        """
        try:
            rules = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"policy must be a TOML file; {path} is none: {error}.") from None
        keys = [parameter.name for parameter in fields(cls)]
        unknown = [name for name in rules if name not in keys]
        missing = [name for name in ("metric", "margin") if name not in rules]
        if unknown or missing:
            problem = f"it has {unknown[0]!r}" if unknown else f"it lacks {missing[0]!r}"
            raise ValueError(f"policy must have keys from {', '.join(keys)}; in {path} {problem}.")
        return cls(**rules)


@dataclass(frozen=True)
class GateRates:
    """Probabilities of the three verdicts of one run.

    Parameters
    ----------
    passes, fails : float

    Examples
    --------
    >>> rates = GateRates(0.9, 0.0)
    >>> round(rates.inconclusive, 12), round(rates.flip, 12)
    (0.1, 0.18)
    """

    passes: float
    fails: float

    @property
    def inconclusive(self) -> float:
        """Probability of neither."""
        return max(0.0, 1.0 - self.passes - self.fails)

    @property
    def flip(self) -> float:
        """Probability that two independent runs have different verdicts."""
        return max(0.0, 1.0 - self.passes**2 - self.fails**2 - self.inconclusive**2)

    def of(self, verdict: str) -> float:
        """Return the probability of a verdict."""
        named = {"pass": self.passes, "fail": self.fails, "inconclusive": self.inconclusive}
        return named[verdict]

    @classmethod
    def at(cls, gap: float, sd: float, noise: float, level: float) -> "GateRates":
        """Return the rates if the true difference exceeds the threshold by `gap`.

        Parameters
        ----------
        gap : float
        sd : float
            Posterior sd of the difference.
        noise : float
            Standard deviation of its mean over runs.
        level : float
        """
        z, sd_min = ndtri(level), 1e-300
        passes = ndtr((gap - z * sd) / max(noise, sd_min))
        return cls(float(passes), float(ndtr((-gap - z * sd) / max(noise, sd_min))))


@dataclass(frozen=True)
class GateDesign:
    """Rates of a policy's verdicts with given numbers of questions and trials.

    Parameters
    ----------
    questions : int
        Number of questions of a run.
    trials : float
        Trials of a question and system; the mean if they differ.
    sd : float
        Expected posterior sd of the difference of two such systems.
    same_system : GateRates
        Rates if the new system is the same as the baseline.
    effect : float or None
        Difference at which `at_effect` is computed.
    at_effect : GateRates or None
        Rates at a true difference of `effect`.
    more_trials : float or None
        Factor by which the number of trials must grow for a flip rate of 5% if the system is the
        same. None if the rate is lower already, and for superiority, where no number is enough.
    """

    questions: int
    trials: float
    sd: float
    same_system: GateRates
    effect: float | None
    at_effect: GateRates | None
    more_trials: float | None

    @classmethod
    def of(
        cls,
        policy: GatePolicy,
        questions: int,
        trials: float,
        sd: float,
        noise: float,
        direction: int = 1,
    ) -> "GateDesign":
        """Compute the rates for a posterior sd of the difference and its noise between runs.

        Parameters
        ----------
        policy : GatePolicy
        questions, trials, sd
            As above.
        noise : float
            Standard deviation over runs of the posterior mean of the difference.
        direction : int
            1 where higher values of the metric are better, -1 where lower ones are.
        """
        level, gap = policy.ci_prob, -policy.threshold
        same = GateRates.at(gap, sd, noise, level)
        at_effect = None
        if policy.effect is not None:
            at_effect = GateRates.at(direction * policy.effect + gap, sd, noise, level)
        more = None
        if policy.rule == RULES[0] and same.flip > FLIPS and sd > 0.0:
            # Hardly any run fails, so the share x that passes solves 1 - x^2 - (1 - x)^2 = FLIPS.
            share = 0.5 * (1.0 + np.sqrt(1.0 - 2.0 * FLIPS))
            more = float(((ndtri(level) * sd + ndtri(share) * noise) / gap) ** 2)
        return cls(questions, trials, sd, same, policy.effect, at_effect, more)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON keeps them."""
        numbers = asdict(self)
        for name in ("same_system", "at_effect"):
            rates: GateRates | None = getattr(self, name)
            if rates is not None:
                more = {"inconclusive": rates.inconclusive, "flip": rates.flip}
                numbers[name] = asdict(rates) | more
        return numbers

    def __str__(self) -> str:
        sizes = f"{self.questions} questions, {self.trials:g} trials each."
        return "\n".join([sizes, *self.lines()])

    def markdown(self) -> str:
        """Return the sizes and the sentences as a Markdown list."""
        return "".join(f"* {line}\n" for line in str(self).splitlines())

    def lines(self) -> list[str]:
        """Return the rates as sentences."""
        same = self.same_system
        passes, fails, flips = map(probability_words, (same.passes, same.fails, same.flip))
        sentence = (
            f"If the systems do not differ, a run passes with probability {passes} and fails with "
            f"{fails}, and two runs get different verdicts with probability {flips}"
        )
        if self.more_trials is not None:
            times = float(f"{self.more_trials:.2g}")
            sentence += (
                f"; for that to be {FLIPS:g} it takes about {times:,.12g} times as many trials"
            )
        sentences = [f"{sentence}."]
        if self.at_effect is not None:
            passes, fails = map(probability_words, (self.at_effect.passes, self.at_effect.fails))
            sentences.append(
                f"At a true difference of {self.effect:+g} it passes with probability "
                f"{passes}, fails with {fails}, and is inconclusive otherwise."
            )
        return sentences


def check_policy(policy: object) -> None:
    """Refuse what is no policy."""
    if not isinstance(policy, GatePolicy):
        raise ArgumentError(
            "policy",
            f" must be a GatePolicy; got {policy!r:.80}. Use "
            "bayesatk.decide.GatePolicy('pass@1', margin=0.02), or its "
            "GatePolicy.read('gate.toml').",
        )


def gate_design(
    policy: GatePolicy,
    source: object,
    *,
    questions: int | None = None,
    trials: int | None = None,
) -> GateDesign:
    """Compute how often verdicts of a gate change between runs, and its power, before it is used.

    Probabilities are over the trials of two future runs of the same questions.

    Parameters
    ----------
    policy : GatePolicy
    source : result or (mean, icc)
        A result of the baseline alone, or the difficulty of its questions: mean and intraclass
        correlation of their success probabilities.
    questions, trials : int, optional
        Number of questions of every run, and of trials of each question. Default for a result:
        its own.

    Returns
    -------
    GateDesign

    Raises
    ------
    ValueError
        If the source is none of these, or if the runs have single trials and the metric has k > 1.

    See Also
    --------
    bayesatk.decide.gate : the verdict.
    bayesatk.plan : questions and trials for the width of an interval.

    Notes
    -----
    With s the posterior sd of the difference of two runs of one system, sqrt(2) times that of its
    mean over the questions, v its sd over runs, d the true difference less the threshold, and z the
    normal quantile of the level: P(pass) = Phi((d - z s) / v), P(fail) = Phi((-d - z s) / v).
    v is taken to be s or, for mean scores of right and wrong, the larger of s and the binomial sd:
    single trials do not identify which part of their spread another run would repeat, and all of
    it is then taken for noise. Without data, s is that of `bayesatk.plan`, and the binomial sd
    follows from mean and icc. For questions like these, the variance due to the choice of questions
    is common to both runs and is left out.

    Examples
    --------
    >>> policy = GatePolicy("pass@1", margin=0.02, effect=-0.05)
    >>> design = gate_design(policy, (0.6, 0.3), questions=300, trials=8)
    >>> round(design.same_system.flip, 2), round(design.at_effect.fails, 2)
    (0.5, 0.81)
    """
    check_policy(policy)
    baseline = Result.of(source) if isinstance(source, Fit) else None
    if baseline is not None and questions is None and trials is None:
        if len(baseline.systems) != 1:
            number = len(baseline.systems)
            rule = f" must be a result of the baseline alone; it has {number} systems."
            raise ArgumentError("source", rule)
        sd, noise = (np.sqrt(2.0) * np.array(run_noise(baseline, 0, policy.asked))).tolist()
        direction = baseline.scale.direction
        return GateDesign.of(policy, *design_of(baseline, 0), sd, noise, direction)
    for name, value in (("questions", questions), ("trials", trials)):
        if value is None:
            raise ArgumentError(name, " must be given with one of the two, or (mean, icc).")
        whole_number(name, value)
    assert questions is not None
    assert trials is not None
    pilots = pilots_of(source, policy.asked)
    information = information_of(pilots, trials)
    if len(pilots) != 1:
        raise ArgumentError("source", f" must be of one system; got {len(pilots)}.")
    if not information:
        raise ArgumentError(
            "trials",
            " must be 2 or more for each question, as k > 1; got 1. Take ",
            Argument("trials", 2),
            ", or a metric of single trials.",
        )
    sd = float(
        np.sqrt(np.mean([question.variance(float(questions))[0] for (question,) in information]))
    )
    noise = sd
    if baseline is None and policy.asked.k == 1:
        mean, icc = np.asarray(source, float).tolist()
        noise = max(sd, float(np.sqrt(mean * (1.0 - mean) * (1.0 - icc) / (questions * trials))))
    root = float(np.sqrt(2.0))
    return GateDesign.of(policy, questions, float(trials), root * sd, root * noise)


def design_of(result: Result, system: int) -> tuple[int, float]:
    """Return the number of questions that a system tried, and the mean number of trials."""
    trials = result.trials[system]
    return int((trials > 0).sum()), float(trials[trials > 0].mean())


def run_noise(result: Result, system: int, metric: Metric) -> tuple[float, float]:
    """Return the posterior sd of a mean over these questions, and its sd over runs.

    For a question with c of n trials right, c (n - c) / (n^2 (n - 1)) is an unbiased estimate of
    the variance of its rate over runs; for single trials m (1 - m), with m the mean over all
    questions, bounds its average. Posterior means vary as the rates do, shrunk by the prior of
    every question if there is no pooling. Where a judge errs, another run has other labels, too:
    its mean is taken to vary by the posterior sd.
    """
    values = metric_values(result.statistics, metric).isel(system=system)
    sd = float(values.sel(target="questions", statistic="sd"))
    if metric.k > 1 or result.scale.axes or metric.voted or result.judges is not None:
        return sd, sd
    right, trials = (counts[system] for counts in result.right_of_all("gate"))
    tried = trials > 0
    share = question_shares(result.study, tried)
    right, trials = right[tried].astype(float), trials[tried].astype(float)
    mean = (right / trials).mean()
    denominator = np.maximum(trials - 1.0, 1.0) * trials**2
    question_variance = np.where(
        trials > 1, right * (trials - right) / denominator, mean * (1.0 - mean)
    )
    if result.pooling == "none":  # a fixed prior shrinks every rate towards its mean
        prior_trials = (
            0.0 if result.prior_counts is None else result.prior_counts[system].sum(axis=1)
        )
        prior_trials = np.broadcast_to(prior_trials, tried.shape)[tried]
        shrinkage = trials / (trials + prior_trials + result.prior.alpha + result.prior.beta)
        return sd, float(np.sqrt(question_variance @ (share * shrinkage) ** 2))
    return sd, max(sd, float(np.sqrt(question_variance @ share**2)))
