"""The certificate of a gate: how often it errs and flips with this design, before any release."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.arrays import Rng
from bayesatk._tools.messages import ArgumentError, proper_probability, whole_number
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk._tools.threads import one_thread
from bayesatk._tools.words import probability_words
from bayesatk.comparison.gates.gate import escaped, together
from bayesatk.comparison.gates.policy import RULES, GatePolicy
from bayesatk.comparison.gates.replay import RATES, Decided, Design, Rates, expected_rates, shifted
from bayesatk.data.capabilities import require
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.study import outcome_values
from bayesatk.data.tally import tally
from bayesatk.posterior.evaluate import evaluate
from bayesatk.results.result import analysis_group, tree_of, with_analyses

_WRONG = {"fail": "falsely fails", "pass": "falsely passes"}
_SAME = "same system"
_ROUNDS = 3  # of whole gates at the smallest design, each where the last round says that it is
_LARGEST = 32  # times as many trials or questions: larger designs are not looked for
_METHOD = "replayed gates, regression estimator"
_FEWEST_GATES = 20
_CLOSE = 0.05  # sizes that differ by this share are taken to be the same
_SHARE = 0.4  # of the whole gates, run at each smallest design


@dataclass(frozen=True)
class _Row:
    """Rates of one design under one truth."""

    design: str
    truth: str
    questions: int
    trials: float
    rates: Rates

    @property
    def sentence(self) -> str:
        """What the rates are."""
        passes, fails, unclear, flip = (_rate_words(self.rates, name) for name in RATES)
        who = "the same system" if self.truth == _SAME else f"a system that {self.truth}"
        return (
            f"{self.questions} questions, {self.trials:.3g} trials each: {who} passes with "
            f"probability {passes}, fails with {fails}, and is inconclusive with {unclear}; two "
            f"such gates get different verdicts with {flip}."
        )

    def columns(self) -> dict[str, Any]:
        """Return the row of the table."""
        rates = self.rates
        named = {name: getattr(self, name) for name in ("design", "truth", "questions", "trials")}
        for name in RATES:
            column = "inconclusive" if name == "inconclusive" else f"prob_{name}"
            named |= {column: rates.rate[name], f"{column}_error": rates.error[name],
                      f"{column}_sd": rates.sd[name]}  # fmt: skip
        return named | {"sentence": self.sentence}


def _rate_words(rates: Rates, name: str) -> str:
    """Return a rate with its standard error: Monte Carlo, and what the baseline leaves open."""
    words = probability_words(rates.rate[name])
    if words[0] in "<>":
        return words
    return f"{words} ± {np.hypot(rates.error[name], rates.sd[name]):.3f}"


@dataclass(frozen=True)
class Certificate:
    """How often a gate errs, is inconclusive and flips with a design; prints as sentences.

    Parameters
    ----------
    policy : GatePolicy
    rows : tuple of _Row
        Of this design, and of the smallest ones.
    limits : dict
        Largest acceptable rate by verdict.
    gates : int
        Whole gates that were run for this design.
    unreached : tuple of str
        What no design reaches, in words.
    seed : str
    digest : str
        SHA-256 of the baseline's counts; empty for stated difficulties.
    """

    policy: GatePolicy
    rows: tuple[_Row, ...]
    limits: dict[str, float]
    gates: int
    unreached: tuple[str, ...]
    seed: str
    digest: str

    @property
    def reached(self) -> bool:
        """Whether the rates of this design are within the limits."""
        rate = self.rows[0].rates.rate
        return all(rate[name] <= limit for name, limit in self.limits.items())

    @property
    def exit_code(self) -> int:
        """0 if the rates are within the limits, else 1."""
        return 0 if self.reached else 1

    def _verdict(self) -> str:
        """Return the line for a pull request."""
        row, policy = self.rows[0], self.policy
        wrong = next(name for name in self.limits if name != "inconclusive")
        stated = (
            f"{words} in {_rate_words(row.rates, name)} of gates (limit {self.limits[name]:g})"
            for name, words in ((wrong, _WRONG[wrong]), ("inconclusive", "is inconclusive"))
        )
        powers = [
            f"; a system that {other.truth} fails in {_rate_words(other.rates, 'fail')} and passes "
            f"in {_rate_words(other.rates, 'pass')}"
            for other in self.rows
            if other.design == row.design and other.truth != _SAME
        ]
        return (
            f"{'CERTIFIED' if self.reached else 'NOT CERTIFIED'}: a gate on {policy.metric} with "
            f"margin {policy.margin:g}, {row.questions} questions and {row.trials:.3g} trials "
            f"each, {' and '.join(stated)} if nothing changed; two such gates differ in "
            f"{_rate_words(row.rates, 'flip')}{''.join(powers)}."
        )

    def _smallest(self) -> list[str]:
        """Say which designs are the smallest within the limits."""
        designs = {
            row.design: f"{row.trials:.3g} trials of these {row.questions} questions"
            if row.design == "fewest trials"
            else f"{row.questions} questions like these with {row.trials:.3g} trials each"
            for row in self.rows
            if row.design in ("fewest trials", "fewest questions")
        }
        if not designs:
            return list(self.unreached)
        return [f"The smallest within the limits: {', or '.join(designs.values())}.",
                *self.unreached]  # fmt: skip

    def sentences(self) -> list[str]:
        """Return the line for a pull request, the smallest designs, and how it was found."""
        origin = (
            f"Rates are of both systems run anew with replayed success probabilities; {self.gates} "
            f"whole gates were run for them. ± is a standard error: Monte Carlo, and what the "
            f"baseline leaves open."
        )
        return [self._verdict(), *self._smallest(), origin]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def markdown(self) -> str:
        """Return a summary for a pull request."""
        mark = "✅" if self.reached else "❌"
        first, *others = (escaped(sentence) for sentence in self.sentences())
        lines = [f"### {mark} {first}", "", *(f"* {sentence}" for sentence in others)]
        lines += ["", f"Policy: SHA-256 `{self.policy.sha256[:16]}`."]
        return "\n".join(lines) + "\n"

    def table(self) -> pd.DataFrame:
        """Return a row for each design and truth."""
        return pd.DataFrame([row.columns() for row in self.rows])

    def as_dict(self) -> dict[str, Any]:
        """Return everything in a form that JSON can store; docs/schema.md describes it."""
        return {
            "schema": "bayesatk-certificate/1", "reached": self.reached,
            "exit_code": self.exit_code, "limits": self.limits, "policy": self.policy.as_dict(),
            "policy_sha256": self.policy.sha256,
            "rates": [
                {"design": row.design, "truth": row.truth, "questions": row.questions,
                 "trials": row.trials, "rate": dict(row.rates.rate),
                 "monte_carlo_error": dict(row.rates.error), "sd": dict(row.rates.sd)}
                for row in self.rows
            ],
            "unreached": list(self.unreached), "gates": self.gates, "seed": self.seed,
            "input_sha256": self.digest, "sentence": self._verdict(),
        }  # fmt: skip

    def group(self) -> xr.Dataset:
        """Return the group ``certificate``."""
        attrs = {
            "reached": int(self.reached), "exit_code": self.exit_code, "limits": self.limits,
            "metric": self.policy.metric, "policy_sha256": self.policy.sha256, "gates": self.gates,
            "seed": self.seed, "method": _METHOD, "citations": [], "record": self.as_dict(),
        }  # fmt: skip
        return analysis_group(self.table(), ["design", "truth"], attrs, sentences=self.sentences())


def certify(
    baseline: object,
    policy: GatePolicy,
    *,
    questions: int | None = None,
    trials: int | None = None,
    most_wrong: float = 0.02,
    most_inconclusive: float = 0.15,
    smallest: bool = True,
    gates: int = 60,
    rng: RandomSource = 0,
    progress: bool | None = None,
    client: Any = None,
) -> xr.DataTree:
    """Certify a gate before any release: how often it errs, is inconclusive and flips.

    The baseline's success probabilities are replayed: they are drawn from its posterior, both
    systems are run anew with them, and the gate decides. With the same probabilities for both (an
    A/A test) a verdict against the new system is wrong.

    Parameters
    ----------
    baseline : array_like, table, Outcomes or (mean, icc)
        Right and wrong outcomes of the baseline, as `bayesatk.tally` takes them; or the mean and
        intraclass correlation of the success probabilities of questions.
    policy : GatePolicy
        The rules of the gate, without pooled floors. At its ``effect`` the power is certified, too.
    questions, trials : int, optional
        Of the design: for ``(mean, icc)``, which needs both. Default: those of the data; with
        `trials` the data's questions are replayed with so many trials each.
    most_wrong : float
        Largest acceptable rate of wrong verdicts if nothing changed: of ``fail`` (non-inferiority)
        or ``pass`` (superiority).
    most_inconclusive : float
        Largest acceptable rate of inconclusive verdicts if nothing changed.
    smallest : bool
        Whether to look for the fewest trials of these questions, and the fewest questions like
        these, with which both rates are within the limits.
    gates : int
        Whole gates that are run; standard errors fall as one over their square root.
    rng : int, numpy.random.Generator or None
        Seed of the replayed runs.
    progress : bool, optional
        Show a progress bar. Default: after two seconds, if the output is a terminal.
    client : dask.distributed.Client, optional
        Run whole gates as tasks of this cluster.

    Returns
    -------
    xarray.DataTree
        The result of the baseline with the group ``certificate``, which
        ``bayesatk.table(tree, "certificate")`` shows, a row for each ``design`` ("this design",
        "fewest trials", "fewest questions") and ``truth`` ("same system", "differs by -0.05"):
        ``questions``, ``trials``, and the rates ``prob_pass``, ``prob_fail``, ``inconclusive`` and
        ``prob_flip`` (two such gates get different verdicts), each with its Monte Carlo standard
        error (``_error``) and its posterior sd (``_sd``), over the success probabilities that the
        baseline leaves open. Attributes: ``reached`` (1 or 0), ``exit_code`` (0 or 1), and
        ``record``, the JSON document of docs/schema.md.

    Raises
    ------
    ValueError
        If the outcomes are not right and wrong, the policy has pooled floors, or floors and no data
        to have their questions, or the effect is out of reach.

    See Also
    --------
    bayesatk.decide.gate : the verdict on a new system.
    bayesatk.decide.gate_design : the same rates from a normal approximation, at once.

    Notes
    -----
    Truths: draws of the baseline's success probabilities by question, under partial pooling
    whatever the policy says, for without pooling those of a few trials are too near to 1/2. At a
    difference all odds of a draw are multiplied by one number, so that the mean metric over the
    questions differs by it. Both systems are run anew on the same questions.

    A gate's verdict is a threshold on the normal score of one probability. In `gates` replayed runs
    it comes from the gate itself. There it is regressed on the observed difference over its
    standard error; rates are those of the regression over 4,000 runs, including its residuals
    (two-phase sampling: Cochran 1977, Sampling Techniques, chapter 12). Their standard errors are
    of both phases, by the bootstrap. Floors are decided in every one of the 4,000 runs.
    docs/how_to/gate.md compares the rates with simulated gates.

    The smallest design is searched by the regression, and confirmed or corrected by whole gates
    at the design that it names.

    Examples
    --------
    >>> policy = GatePolicy("pass@1", margin=0.3, pooling="none")
    >>> tree = certify([[1, 1, 1, 1]] * 12 + [[0, 0, 0, 1]] * 8, policy, gates=20, smallest=False)
    >>> row = tree["certificate"].sel(design="this design", truth="same system")
    >>> float(row["prob_fail"]) < 0.01, tree["certificate"].attrs["reached"]
    (True, 1)
    """
    certificate = certificate_of(
        baseline, policy, questions=questions, trials=trials, most_wrong=most_wrong,
        most_inconclusive=most_inconclusive, smallest=smallest, gates=gates, rng=rng,
        progress=progress, client=client,
    )  # fmt: skip
    tree = tree_of(_outcomes(baseline), _METHOD, certificate.seed)
    return with_analyses(tree, {"certificate": certificate.group()})


@one_thread()
@np.errstate(under="ignore")
def certificate_of(
    baseline: object, policy: GatePolicy, *, questions: int | None = None,
    trials: int | None = None, most_wrong: float = 0.02, most_inconclusive: float = 0.15,
    smallest: bool = True, gates: int = 60, rng: RandomSource = 0,
    progress: bool | None = False, client: Any = None,
) -> Certificate:  # fmt: skip
    """Return the certificate that `certify` keeps in a result."""
    _check_policy(policy)
    wrong = "fail" if policy.rule == RULES[0] else "pass"
    limits = {
        wrong: proper_probability("most_wrong", most_wrong, 0.02),
        "inconclusive": proper_probability("most_inconclusive", most_inconclusive, 0.15),
    }
    whole_number("gates", gates, _FEWEST_GATES)
    generator, seed = resolve_rng(rng)
    data = _outcomes(baseline)
    design = (
        _stated_design(baseline, policy, questions, trials, generator)
        if data is None
        else _replayed_design(data, policy, questions, trials, generator)
    )
    decide = _Decider(limits, generator, progress, client)
    effects = {_SAME: 0.0}
    if policy.effect is not None:
        _check_effect(design, policy.effect)
        effects[f"differs by {policy.effect:+g}"] = policy.effect
    per_truth = -(-gates // len(effects))
    rows, decided = decide.rows("this design", design, effects, per_truth)
    unreached: list[str] = []
    if smallest:
        smallest_rows, unreached = _smallest_designs(design, decided, decide, gates)
        rows += smallest_rows
    digest = "" if data is None else data.sha256()
    return Certificate(
        policy, tuple(rows), limits, per_truth * len(effects), tuple(unreached), seed, digest
    )


def _check_policy(policy: object) -> None:
    """Refuse what is no policy, and policies whose verdicts are not replayed."""
    if not isinstance(policy, GatePolicy):
        raise ArgumentError(
            "policy", f" must be a GatePolicy; got {type(policy).__name__}. Use "
            "GatePolicy('pass@1', margin=0.02), or GatePolicy.read('gate.toml').",
        )  # fmt: skip
    if policy.pooled_floors:
        raise ArgumentError(
            "policy", " must have no pooled floors to be certified: they take a whole "
            "posterior of every replayed run. Leave out pooled_floors: floors are then tests of "
            "their own questions.",
        )  # fmt: skip
    if not policy.asked.of_marks:
        raise ArgumentError(
            "metric", " must judge marks to be certified, such as 'pass@1' or 'pass^4'; "
            f"got {policy.metric!r}.",
        )  # fmt: skip


def _outcomes(baseline: object) -> Outcomes | None:
    """Return the outcomes of a baseline, or None for the pair (mean, icc)."""
    numbers = isinstance(baseline, tuple | list) and len(baseline) == 2
    if numbers and all(isinstance(number, float) for number in baseline):  # type: ignore[attr-defined]
        return None
    data = tally(baseline)
    require("certify", outcome_values(data), "baseline")
    return data


def _replayed_design(
    data: Outcomes, policy: GatePolicy, questions: int | None, trials: int | None,
    rng: Rng,
) -> Design:  # fmt: skip
    """Return the design of a baseline's data, with draws of its success probabilities."""
    if questions is not None:
        raise ArgumentError(
            "questions", f" must be left out with data, which have theirs; got "
            f"{questions!r:.80}. Give it with (mean, icc).",
        )  # fmt: skip
    template = together(data, data)
    fit = evaluate(
        data, policy.metric, keep=["p"], draws=250, rng=int(rng.integers(2**31)), progress=False
    )
    p = fit["posterior"]["p"].isel(system=0).transpose("chain", "draw", "question")
    p = p.sel(question=template.dataset["question"].values)
    trials_of = template.trials.isel(system=0).values
    if trials is not None:
        trials_of = np.full_like(trials_of, whole_number("trials", trials))
    values = np.clip(p.values.reshape(-1, p.shape[-1]), 0.0, 1.0)  # rounding may exceed them
    return Design(policy, template, trials_of, values)


def _stated_design(
    source: Any, policy: GatePolicy, questions: int | None, trials: int | None,
    rng: Rng,
) -> Design:  # fmt: skip
    """Return the design of stated difficulties: Beta draws for every question."""
    if policy.floors:
        raise ArgumentError(
            "policy", " must be without floors where difficulties are stated: no "
            "question has a name. Give the baseline's outcomes, or leave the floors out.",
        )  # fmt: skip
    mean, icc = (
        proper_probability(name, number, 0.5)
        for name, number in zip(("mean", "icc"), source, strict=True)
    )
    for name, value in (("questions", questions), ("trials", trials)):
        if value is None:
            raise ArgumentError(name, " must be given with (mean, icc).")
        whole_number(name, value)
    assert questions is not None
    assert trials is not None
    total = (1.0 - icc) / icc
    p = rng.beta(mean * total, (1.0 - mean) * total, (1000, questions))
    full = np.full(questions, trials)
    template = together((full, full), (full, full))
    return Design(policy, template, full.astype(np.int64), p)


def _check_effect(design: Design, effect: float) -> None:
    """Refuse a difference that no success probabilities have."""
    metric, share = design.policy.asked, design.share
    moved = metric.latent(shifted(design.p, effect, metric, share)) @ share
    differences = moved - metric.latent(design.p) @ share
    if np.abs(differences - effect).max() > 1e-3:
        mean = float((metric.latent(design.p) @ share).mean())
        raise ArgumentError(
            "effect", f" must leave the metric between its ends; got {effect:+g}, and "
            f"the baseline's {metric.label} is about {mean:.2f}. Take a smaller one.",
        )  # fmt: skip


@dataclass(frozen=True)
class _Decider:
    """Runs whole gates, and searches designs by their regression."""

    limits: dict[str, float]
    rng: Rng
    progress: bool | None
    client: Any

    def rows(
        self, name: str, design: Design, effects: dict[str, float], gates: int
    ) -> tuple[list[_Row], Decided]:
        """Return a row for each effect, and the whole gates: so many of each."""
        runs = [design.runs(effect, self.rng) for effect in effects.values()]
        decided = Decided.together([self._decided(design, right, gates) for right in runs])
        questions, trials = len(design.trials), float(design.trials.mean())
        rows = [
            _Row(name, truth, questions, trials, Rates.of(design, right, decided))
            for truth, right in zip(effects, runs, strict=True)
        ]
        return rows, decided

    def _decided(self, design: Design, right: Any, gates: int) -> Decided:
        """Decide runs of different truths by whole gates."""
        run, truth = np.divmod(np.arange(gates), len(right))
        return Decided.of(design, right[truth, run], self.progress, self.client)

    def reached(self, rate: Mapping[str, float]) -> bool:
        """Whether rates are within the limits."""
        return all(rate[name] <= limit for name, limit in self.limits.items())

    def smallest(
        self, name: str, sized: Callable[[int], Design], start: int, decided: Decided, gates: int
    ) -> _Row | None:
        """Return rates at the smallest size within the limits, confirmed by whole gates."""
        confirmed: list[_Row] = []
        size = self._searched(sized, start, decided)
        for _ in range(_ROUNDS):
            if size is None:
                break
            (row,), decided = self.rows(name, sized(size), {_SAME: 0.0}, gates)
            if self.reached(row.rates.rate):
                confirmed.append(row)
            previous, size = size, self._searched(sized, start, decided)
            if confirmed and size is not None and abs(size - previous) <= _CLOSE * previous:
                break
        return min(confirmed, key=lambda row: row.questions * row.trials, default=None)

    def _searched(self, sized: Callable[[int], Design], start: int, decided: Decided) -> int | None:
        """Return the smallest size that the regression says is within the limits."""

        def within(size: int) -> bool:
            design, rng = sized(size), np.random.default_rng(1)
            return self.reached(expected_rates(design, design.runs(0.0, rng), decided))

        low, high = 0, start
        while not within(high):
            low, high = high, 2 * high
            if high > _LARGEST * start:
                return None
        while high - low > max(1, int(_CLOSE * low)):
            middle = (low + high) // 2
            low, high = (low, middle) if within(middle) else (middle, high)
        return high


def _resized(design: Design, name: str, size: int) -> Design:
    """Return a design with another number of trials or questions."""
    return design.sized(**{name: size})


def _smallest_designs(
    design: Design, decided: Decided, decide: _Decider, gates: int
) -> tuple[list[_Row], list[str]]:
    """Return the smallest designs within the limits, and what is out of reach in words."""
    rows, unreached = [], []
    number = max(_FEWEST_GATES, int(_SHARE * gates))
    sizes = [("trials", "trials of these questions", round(float(design.trials.mean())))]
    if design.policy.floors:
        unreached.append("Floors name questions, so no other number of questions was looked for.")
    else:
        sizes.append(("questions", "questions like these", len(design.trials)))
    for name, words, start in sizes:
        resize = partial(_resized, design, name)
        row = decide.smallest(f"fewest {name}", resize, start, decided, number)
        if row is None:
            unreached.append(
                f"No number of {words} up to {_LARGEST * start} was found to be within the limits."
            )
        else:
            rows.append(row)
    return rows, unreached
