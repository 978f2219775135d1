"""Trials beside the data: prior trials of the same questions, and trials that were marked twice."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtr

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import ArgumentError
from bayesatk.core.question.dirichlet_multinomial import log_sequence_probability
from bayesatk.data.long_tables import is_table
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tally import tally
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.judge_error import JudgeError
from bayesatk.priors import Pooling

_MAX_JUDGED_TRIALS = 256  # of a question; the work grows with all numbers of right trials and marks
_SHARED_CALIBRATION_NOTE = (
    "One calibration set tells the error rates of the judge for every system, and what it leaves "
    "open moves all systems the same way. Here it is taken to be independent between systems, so "
    "their differences are more certain than the intervals of differences say."
)


def read_judges(
    judge: object, outcomes: Outcomes
) -> tuple[tuple[JudgeError, ...] | None, list[str]]:
    """Return the judge of every system, None if marks are taken to be right, and notes.

    Parameters
    ----------
    judge : JudgeError, mapping {system: JudgeError}, table, path or None
        A table, or a file of it (.csv), has a row for each trial that was marked twice: columns
        ``mark`` (by the judge), ``truth``, and ``system`` where the judge may treat systems
        differently.
    outcomes : Outcomes
    """
    labelled = "truth_count" in outcomes.dataset
    if judge is None:
        if not labelled:
            return None, []
        judge = dict.fromkeys(outcomes.systems, JudgeError(0, 0, 0, 0))
    if isinstance(judge, str | Path) and str(judge).endswith(".csv"):
        judge = pd.read_csv(judge, dtype={"system": str})  # labels of systems are text
    judges = judge_of_table(judge) if is_table(judge) else judge
    notes = []
    if isinstance(judges, JudgeError):
        if judges.p + judges.n and len(outcomes.systems) > 1:
            notes.append(_SHARED_CALIBRATION_NOTE)
        judges = dict.fromkeys(outcomes.systems, judges)
    if not isinstance(judges, Mapping):
        raise ArgumentError(
            "judge",
            " must be a JudgeError, a mapping from systems to them, or a table or file "
            f".csv with columns 'mark' and 'truth'; got {judge!r:.80}. Count the trials that were "
            "marked twice: bayesatk.JudgeError(tp=178, p=197, fp=2, n=401).",
        )
    fit = all(isinstance(judge_of_system, JudgeError) for judge_of_system in judges.values())
    if not fit or set(judges) != set(outcomes.systems):
        raise ArgumentError(
            "judge",
            f" must have a JudgeError for each of {outcomes.systems}; got "
            f"{judges!r:.160}. Give one JudgeError where one calibration set is of all systems.",
        )
    for index, system in enumerate(outcomes.systems):
        _check_labels(judges[system], outcomes, index, labelled)
    return tuple(judges[system] for system in outcomes.systems), notes


def _check_labels(judge: JudgeError, outcomes: Outcomes, system: int, labelled: bool) -> None:
    """Refuse a judge without trials known to be right, or without trials known to be wrong.

    Without trials of known truth in the data, its marks must also tell right from wrong.
    """
    counted = judge
    if labelled:
        counted = judge.with_labels(outcomes.kinds[system].sum(axis=0))
    else:
        judge.check_direction(outcomes.systems[system])
    if (1.0, 1.0) in counted.shapes:
        raise ArgumentError(
            "truth" if labelled else "judge",
            " must have right and wrong trials with marks; of "
            f"{outcomes.systems[system]!s:.160} it has {counted.p} right and {counted.n} wrong "
            f"ones. Mark more by hand, of those that may be {'wrong' if counted.p else 'right'}.",
        )


def judge_of_table(table: Any) -> JudgeError | dict[Any, JudgeError]:
    """Return the error counts of trials that were marked twice, by system if the table has them.

    Examples
    --------
    >>> import pandas as pd
    >>> twice = pd.DataFrame({"mark": [1, 1, 1, 0, 0, 0] * 5, "truth": [1, 1, 1, 0, 0, 0] * 5})
    >>> judge_of_table(twice)
    JudgeError(tp=15, p=15, fp=0, n=15, by_question=True)
    """
    import narwhals as nw  # for tables only: it takes long to import

    frame = nw.from_native(table)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not {"mark", "truth"} <= set(frame.columns):
        raise ArgumentError(
            "judge",
            " must be a table with a column 'mark', of the judge, and a column "
            f"'truth', one row for each trial that was marked twice; it has {list(frame.columns)}. "
            "Rename its columns.",
        )
    mark, truth = (_flags(frame[name].to_list(), name) for name in ("mark", "truth"))
    named = "system" in frame.columns
    systems = frame["system"].to_list() if named else [""] * len(mark)
    rows, judges = list(zip(systems, truth, mark, strict=True)), {}
    for system in dict.fromkeys(systems or [""]):
        right, wrong = (
            [marked for of, is_right, marked in rows if of == system and is_right == side]
            for side in (True, False)
        )
        counts = sum(right), len(right), sum(wrong), len(wrong)
        judges[system] = JudgeError(*counts)
    return judges if named else judges[""]


def _flags(values: Sequence[object], name: str) -> list[bool]:
    """Return marks as flags, or refuse the first that is neither 0 nor 1."""
    for row, value in enumerate(values):
        if isinstance(value, str) or value not in (0, 1):
            raise ArgumentError(
                "judge",
                f" must have 0 or 1 (or False and True) in column {name!r}; "
                f"got {value!r:.40} in row {row}. Leave out trials that have not been marked "
                "twice.",
            )
    return list(map(bool, values))


def check_judged_trials(outcomes: Outcomes, pooling: Pooling) -> None:
    """Refuse too many trials of a question for the model of a judge."""
    most = int(outcomes.trials.max())
    if most > _MAX_JUDGED_TRIALS and pooling != "complete":
        raise ArgumentError(
            "judge",
            f" must be left out beyond {_MAX_JUDGED_TRIALS} trials of a question; "
            f"got {most}. Evaluate {_MAX_JUDGED_TRIALS} trials of each, or without it.",
        )


def check_weight(weight: object) -> None:
    """Refuse a weight of prior trials outside [0, 1]."""
    if not (isinstance(weight, Real) and 0.0 <= float(weight) <= 1.0):
        raise ArgumentError(
            "prior_weight",
            f" must lie in [0, 1]; got {weight!r:.40}. With 0.5 a prior trial "
            "counts as half a trial.",
        )


def read_prior_trials(
    outcomes: Outcomes, prior_trials: object, weight: float
) -> tuple[Array | None, list[str]]:
    """Return discounted prior trials, aligned with the data, and notes on their agreement.

    Parameters
    ----------
    outcomes : Outcomes
    prior_trials : Outcomes or anything `bayesatk.tally` accepts
        Of the same systems, in any order, and questions; of other systems they are passed over.
    weight : float
        Weight of a prior trial, in [0, 1]; 0 leaves them out.

    Returns
    -------
    counts : ndarray, shape (system, question, category), or None
    notes : list of str
        On questions without prior trials, if any, then one per system.
    """
    check_weight(weight)
    if prior_trials is None or weight == 0.0:
        return None, []
    dataset = outcomes.dataset
    labels, values = (dataset[name].values.tolist() for name in ("category", "score"))
    prior_outcomes = prior_trials
    if not isinstance(prior_outcomes, Outcomes):
        prior_outcomes = _tallied(prior_outcomes, dict(zip(labels, values, strict=True)))
    questions = dataset["question"].values.tolist()
    prior_questions, notes = prior_outcomes.dataset["question"].values.tolist(), []
    if {*prior_questions} < {*questions} and prior_questions != list(
        range(len(prior_questions))
    ):  # labelled, not numbered by default
        without_prior = [label for label in questions if label not in {*prior_questions}]
        notes.append(
            f"Prior trials: {len(without_prior)} of {len(questions)} questions have none (first: "
            f"{shown(without_prior[0], 60)}); is it the same label in both?"
        )
        aligned = prior_outcomes.dataset[["count"]].reindex(question=questions, fill_value=0)
        prior_outcomes = replace(prior_outcomes, dataset=aligned)
    elif {*prior_questions} == {*questions}:
        prior_outcomes = replace(
            prior_outcomes, dataset=prior_outcomes.dataset.sel(question=questions)
        )
    for name in ("category", "score", "question"):
        data_labels, prior_labels = (
            data[name].values.tolist() for data in (dataset, prior_outcomes.dataset)
        )
        if data_labels != prior_labels:
            raise OutcomeError(
                f"prior_trials must have the {name} labels of the data; "
                f"got {len(prior_labels)} ({shown(prior_labels, 60)}) for {len(data_labels)} "
                f"({shown(data_labels, 60)}). Use "
                "bayesatk.tally(data, scores=..., questions=...) for both; a question without "
                "prior trials is a row of None, with missing='ignore'."
            )
    prior_systems = prior_outcomes.systems
    if len(prior_systems) > 1 and {*outcomes.systems} <= {*prior_systems}:
        others = [label for label in prior_systems if label not in outcomes.systems]
        if others:
            notes.append(f"Prior trials of other systems are not used: {shown(others, 60)}.")
        chosen = prior_outcomes.dataset.sel(system=outcomes.systems)
        prior_outcomes = replace(prior_outcomes, dataset=chosen)
    one_system = len(prior_outcomes.systems) == len(outcomes.systems) == 1  # whatever their names
    if prior_outcomes.systems != outcomes.systems and not one_system:
        raise OutcomeError(
            f"prior_trials must be of the same systems as the data, {shown(outcomes.systems)}; got "
            f"{shown(prior_outcomes.systems)}. Give every system its own, as {{system: trials}}."
        )
    counts = prior_outcomes.dataset["count"].values
    notes += [
        _conflict_note(system, data_labels, prior_labels, dataset["score"].values, weight)
        for system, data_labels, prior_labels in zip(
            outcomes.systems, dataset["count"].values, counts, strict=True
        )
    ]
    return counts * float(weight), notes


def _tallied(prior_trials: object, scores: dict[str, float]) -> Outcomes:
    """Count prior trials by the scores of the data, whose labels may have been numbers.

    Counts have scores of their own, or are of right and wrong.
    """
    if isinstance(prior_trials, xr.Dataset) or scores == {"0": 0.0, "1": 1.0}:
        return tally(prior_trials)
    try:
        return tally(prior_trials, scores=scores)
    except OutcomeError:
        return tally(
            prior_trials, scores={_number_of_text(name): value for name, value in scores.items()}
        )


def _number_of_text(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _conflict_note(name: object, new: Ints, old: Ints, scores: Array, weight: float) -> str:
    r"""Return a note on the agreement of new and prior trials of a system.

    If new and prior trials of a question are exchangeable, the :math:`n` new ones are a simple
    random sample without replacement from all :math:`N`, with mean score :math:`\mu` and variance
    of the scores :math:`\sigma^2`. Their mean score then has mean :math:`\mu` and variance
    :math:`\frac{\sigma^2}{n} \frac{N - n}{N - 1}`. The note has the z score of the sum over
    questions, and the log Bayes factor of one vector of probabilities for both, with prior trials
    at their weight, against two vectors.
    """
    both = (new.sum(axis=1) > 0) & (old.sum(axis=1) > 0)
    new, old = new[both], old[both]
    trials, total = new.sum(axis=1), (new + old).sum(axis=1)
    mean = (new + old) @ scores / total
    score_variance = np.einsum("ac,ac->a", new + old, (scores - mean[:, None]) ** 2) / total
    variance = score_variance / trials * (total - trials) / np.maximum(total - 1.0, 1.0)
    difference, sd = float((new @ scores / trials - mean).sum()), float(np.sqrt(variance.sum()))
    z = difference / sd if sd > 0.0 else 0.0
    log_probabilities = (
        log_sequence_probability(1.0 + weight * old, new),
        log_sequence_probability(1.0, new),
    )
    log_bayes_factor = float((log_probabilities[0] - log_probabilities[1]).sum())
    p_value = 2.0 * float(ndtr(-abs(z)))
    verdict, remedy = "no conflict", "leave them out, or lower prior_weight"
    if p_value < 0.01:
        verdict = f"the prior trials conflict with the data: {remedy}"
    elif log_bayes_factor < -np.log(10.0):
        verdict = f"the prior trials conflict with the data on single questions: {remedy}"
    return (
        f"{name}: prior trials are worth {weight * old.sum(axis=1).mean():.4g} trials per question "
        f"(weight {weight:g}); if old and new trials were alike, the new mean score would be "
        f"{z:+.1f} sds from its expectation (p = {p_value:.2g}); log Bayes factor of agreement "
        f"question by question {log_bayes_factor:+.1f}: {verdict}."
    )
