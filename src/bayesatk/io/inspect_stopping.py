"""Inspect's early stopping by evidence that may be looked at after every sample."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array, Ints, Rng
from bayesatk._tools.messages import ArgumentError
from bayesatk._tools.seeding import RandomSource, resolve_rng
from bayesatk.comparison.order.anytime import refuse_weights
from bayesatk.comparison.order.stopping import StoppingRule
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.data.validation import OutcomeError, check_scores, shown
from bayesatk.results.selection import outcomes_of

# Score of the marks of Inspect; 1 and 0 are equal to True and False.
USUAL_SCORES = {"C": 1.0, "I": 0.0, True: 1.0, False: 0.0}


def score_of(mark: object, scores: Mapping[Any, float], where: str) -> float:
    """Return the score of a mark, or refuse one that has none."""
    if isinstance(mark, str | int | float) and mark in scores:
        return scores[mark]
    raise OutcomeError(
        f"scores must have a score for every mark; got {shown(mark)} of {where}, and know "
        f"{list(scores)}. Pass scores={{'C': 1, 'P': 0.5, 'I': 0}}, say, or for numbers of metrics "
        "scores='numbers'."
    )


class InspectStopping:
    """Stop an Inspect evaluation once a `StoppingRule` has decided, with its error rate.

    It implements the protocol `inspect_ai.util.EarlyStopping`: pass it to a task as
    ``early_stopping``. Once the rule has decided, samples that have not begun are skipped.

    Parameters
    ----------
    rule : StoppingRule
        Of kind "anytime", with as many trials as the task has epochs; with a threshold, or to
        compare with a baseline.
    baseline : xarray.DataTree, or data of one system, optional
        Outcomes of the system to compare with, questions labelled by sample ids, as
        `bayesatk.load` reads them from its log. Its trials of a question are assigned to the
        epochs at random.
    scorer : str, optional
        Scorer whose marks are used; it may be left out if there is only one.
    scores : mapping, optional
        Score, 0 or 1, of every mark that may occur. Default: ``{"C": 1, "I": 0}``, numbers 1 and 0.
    rng : int, numpy.random.Generator or None
        Seed of this assignment.

    Attributes
    ----------
    decision : str or None
        Reason of the rule when it stopped; None before.

    See Also
    --------
    bayesatk.decide.StoppingRule : the rule.

    Notes
    -----
    Inspect runs all samples of an epoch before the next epoch. Each epoch of a question enters the
    e-value as a separate term, as with ``earlier`` of `bayesatk.decide.e_value`. Samples are used
    in the order of the data set, each once all before it are complete, because the samples that end
    first may be those that succeed. A sample that ends in an error therefore delays those after it.
    For a mean (a rule with a metric) each question is used once, with its first k epochs, so that
    more questions add evidence but more epochs do not. A rule without a metric uses all epochs.

    Examples
    --------
    >>> rule = StoppingRule("pass@1", kind="anytime", trials=1, threshold=0.5)
    >>> stopping = InspectStopping(rule)  # Task(..., epochs=1, early_stopping=stopping)
    >>> stopping.decision is None
    True
    """

    def __init__(
        self,
        rule: StoppingRule,
        baseline: object = None,
        *,
        scorer: str | None = None,
        scores: Mapping[Any, float] | None = None,
        rng: RandomSource = None,
    ) -> None:
        if not isinstance(rule, StoppingRule) or rule.kind != "anytime":
            raise ArgumentError(
                "rule", " must be a StoppingRule of kind 'anytime', whose error rate "
                f"holds at every look; got {shown(rule)}. Pass kind='anytime'.",
            )  # fmt: skip
        if (baseline is None) == (rule.threshold is None):
            raise ArgumentError(
                "baseline", " must be given for a rule without a threshold, and left out "
                f"for one with; got threshold={rule.threshold} and "
                f"{'no' if baseline is None else 'a'} baseline.",
            )  # fmt: skip
        self.rule, self.scorer = rule, scorer
        self.decision: str | None = None
        self._scores = dict(check_scores(USUAL_SCORES if scores is None else scores))
        self._rng, self.seed = resolve_rng(rng)
        self._baseline = None
        if baseline is not None:
            outcomes = outcomes_of(baseline, "e_value")
            if rule.metric is not None:
                refuse_weights(outcomes)
            self._baseline = _marks_of(outcomes, self._rng)
        self._order: list[str] = []
        self._marks: Array = np.empty((0, 0))
        self._counted = 0

    async def start_task(self, task: Any, samples: list[Any], epochs: int) -> str:
        """Store the samples and epochs of the task, and check that the rule can be used for it."""
        if epochs != self.rule.trials:
            raise ValueError(
                f"rule must plan as many trials as the task has epochs; got {self.rule.trials} and "
                f"{epochs} epochs. Pass trials={epochs} to the rule."
            )
        self._order = [str(sample.id) for sample in samples]
        if self._baseline is not None:
            lost = [name for name in self._order if name not in self._baseline]
            if lost:
                raise ValueError(
                    f"baseline must have every sample; it lacks {shown(lost)}. Pass the outcomes "
                    "of the same questions, labelled by their ids, or leave these samples out."
                )
        self._marks = np.full((len(self._order), epochs), np.nan)
        self._counted, self.decision = 0, None
        return "bayesatk"

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        """Skip a sample if the rule has decided."""
        if self.decision is None:
            return None
        from inspect_ai.util import EarlyStop  # whoever calls this has it

        return EarlyStop(id=id, epoch=epoch, reason=self.decision)

    async def complete_sample(self, id: str | int, epoch: int, scores: Mapping[str, Any]) -> None:
        """Store the mark of a sample, and apply the rule if all samples before it are complete."""
        self._marks[self._order.index(str(id)), epoch - 1] = self._mark(scores)
        incomplete = np.isnan(self._marks.T.ravel())  # epoch by epoch
        counted = int(np.argmax(np.append(incomplete, True)))
        if self.decision is None and counted > self._counted:
            self._counted = counted
            self.decision = self._decide()

    async def complete_task(self) -> dict[str, Any]:
        """Return the decision, for the log."""
        return {
            "decision": self.decision, "alpha": self.rule.alpha, "metric": self.rule.metric,
            "threshold": self.rule.threshold, "samples_counted": self._counted, "seed": self.seed,
        }  # fmt: skip

    def _mark(self, scores: Mapping[str, Any]) -> float:
        names = list(scores)
        if self.scorer is None and len(names) != 1:
            raise OutcomeError(
                f"scorer must be named where there are {len(names)}: choose among {names}."
            )
        name = names[0] if self.scorer is None else self.scorer
        if name not in scores:
            raise OutcomeError(f"scorer must be one of {names}; got {name!r}.")
        return score_of(scores[name].score.value, self._scores, f"scorer {name!r}")

    def _decide(self) -> str | None:
        """Return what the rule says of what counts so far, or None to go on."""
        epochs, begun_samples = divmod(self._counted, len(self._order))
        ends = epochs + (np.arange(len(self._order)) < begun_samples)
        looks = range(1, int(ends.max()) + 1)
        *earlier, last = [self._look(np.minimum(ends, epoch)) for epoch in looks]
        decision = self.rule.decide(last, earlier=earlier).iloc[0]
        return str(decision["reason"]) if decision["stop"] else None

    def _look(self, end: Ints) -> Outcomes:
        """Outcomes of so many epochs of every sample, and of the baseline for these epochs."""
        epochs = self._marks.shape[1]
        marks = [row[:last] for row, last in zip(self._marks, end.tolist(), strict=True)]
        systems = {"this evaluation": marks}
        if self._baseline is not None:
            dealt = [self._baseline[name] for name in self._order]
            systems["baseline"] = [
                question_marks[np.arange(len(question_marks)) % epochs < last]
                for question_marks, last in zip(dealt, end, strict=True)
            ]
        return tally(
            [[int(marks.sum()) for marks in by_question] for by_question in systems.values()],
            trials=[[len(marks) for marks in by_question] for by_question in systems.values()],
            systems=list(systems), questions=self._order, missing="ignore",
        )  # fmt: skip


def _marks_of(data: Outcomes, rng: Rng) -> dict[str, Array]:
    """Return the marks of one system by question, in random order."""
    if len(data.systems) != 1:
        raise ValueError(
            f"baseline must have one system; got {shown(data.systems)}. Pass the outcomes of one."
        )
    successes, trials = data.successes.values[0], data.trials.values[0]
    labels = data.dataset["question"].values.tolist()
    return {
        str(label): rng.permutation(np.repeat([1.0, 0.0], [c, n - c]))
        for label, c, n in zip(labels, successes, trials, strict=True)
    }
