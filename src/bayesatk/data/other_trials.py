"""Trials beside those of the data: earlier ones of the same questions, and some marked twice."""

from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import betaln, ndtr

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.core.question.dirichlet_multinomial import log_ordered
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tables import is_table
from bayesatk.data.tally import tally
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.judge_error import (
    JUDGE_WORDS,
    Grades,
    JudgeError,
    Judges,
    Panel,
    PooledJudge,
    rate_of_others,
)
from bayesatk.priors import Pooling

_FEWEST_JUDGES = 3  # whose marks alone tell how often each of them errs
_MOST_GRADES = 6  # levels of which the shares among right and wrong trials are estimated
_MOST_TRIALS = 256  # of a question: what is worked out for all numbers of right trials and marks


def read_judges(judge: object, outcomes: Outcomes) -> Judges | None:
    """Return the judge of every system; None where marks are taken to be right.

    Parameters
    ----------
    judge : JudgeError, mapping {system: JudgeError}, table, path, text, Judges or None
        A table, or a file of it (.csv), has a row for each trial that was marked twice: columns
        ``mark`` (by the judge), ``truth``, and ``system`` where the judge may treat systems
        differently. Other text, where the truth of some trials is known: whose error rates these
        tell.
    outcomes : Outcomes
    """
    labelled = "truth_count" in outcomes.dataset
    if isinstance(judge, Judges) or (judge is None and not labelled):
        return judge
    if outcomes.graded:
        return _of_levels(judge, outcomes)
    systems, judges = outcomes.systems, judge
    if isinstance(judge, str | Path) and str(judge).endswith(".csv"):
        judges = judge = pd.read_csv(judge, dtype={"system": str})  # labels of systems are text
    if judge is None or isinstance(judge, str):
        _check_words(judge, labelled)
        names = [str(system) if judge != "shared" else "" for system in systems]
        judges = {
            system: JudgeError(0, 0, 0, 0, name)
            for system, name in zip(systems, names, strict=True)
        }
        if judge == "pooled":
            judges = _pooled(outcomes)
    if not isinstance(judge, JudgeError) and is_table(judge):
        judges = judge_of_table(judge)
    if isinstance(judges, JudgeError):
        judges = dict.fromkeys(systems, judges)
    if not isinstance(judges, Mapping):
        raise ArgumentError(
            "judge", " must be a JudgeError, a mapping from systems to them, or a table "
            f"with columns 'mark' and 'truth'; got {judge!r:.80}. Count the trials that were "
            "marked twice: JudgeError(tp=178, p=197, fp=2, n=401).",
        )  # fmt: skip
    fit = all(isinstance(judge_of_system, JudgeError) for judge_of_system in judges.values())
    if not fit or set(judges) != set(systems):
        raise ArgumentError(
            "judge", f" must have a JudgeError for each of {systems}; got "
            f"{judges!r:.160}. Give one JudgeError where one judge marked all systems.",
        )  # fmt: skip
    by_system = Judges(tuple(judges[system] for system in systems))
    _check_labels(by_system, outcomes, labelled)
    return by_system


def _pooled(outcomes: Outcomes) -> dict[Any, JudgeError]:
    """Return a judge for each system, of whose rates the labels of the others tell."""
    labels = outcomes.kinds.sum(axis=1)
    marked, size = labels[:, [7, 4]], labels[:, [6, 3]] + labels[:, [7, 4]]
    judges: dict[Any, JudgeError] = {}
    for index, system in enumerate(outcomes.systems):
        other_systems = np.arange(len(labels)) != index
        shapes = [
            rate_of_others(k[other_systems], n[other_systems])
            for k, n in zip(marked.T, size.T, strict=True)
        ]
        judges[system] = PooledJudge(0, 0, 0, 0, str(system), before=(*shapes[0], *shapes[1]))
    return judges


def _of_levels(judge: object, outcomes: Outcomes) -> Judges:
    """Return several judges of every system, or who graded it, whose rates are its own."""
    if judge not in (None, "system"):
        raise ArgumentError(
            "judge", " must be left out where several judges marked the trials, or one "
            f"gave grades: their rates are those of each system; got {judge!r:.80}.",
        )  # fmt: skip
    labels = outcomes.dataset["truth_count"].sum(["question", "mark"]).values
    names, kinds = outcomes.judges, outcomes.dataset["category"].values.tolist()
    if names and len(names) < _FEWEST_JUDGES and not labels.any():
        raise ArgumentError(
            Argument("truth", ..., "tally"), f" must be known of some trials where {len(names)} "
            "judges marked them: their marks alone do not tell how often both err. Mark some by "
            f"hand, or ask {_FEWEST_JUDGES} judges or more.",
        )  # fmt: skip
    if names:
        return Judges(tuple(Panel(names, tuple(kinds), str(one)) for one in outcomes.systems))
    for system, (wrong, right) in zip(outcomes.systems, labels.tolist(), strict=True):
        if not (wrong and right):
            raise ArgumentError(
                "truth", f" must have right and wrong trials with grades; of "
                f"{system!s:.160} it has {right} right and {wrong} wrong ones. Mark more by hand, "
                f"of those that may be {'wrong' if right else 'right'}.",
            )  # fmt: skip
    bins = binned_grades(outcomes)
    return Judges(tuple(Grades(*bins, str(system)) for system in outcomes.systems))


def binned_grades(outcomes: Outcomes) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the levels of grades, and the level of every category.

    Beyond six grades neighbours are put together, so that about as many trials of known truth are
    at each level; their scores are averaged.

    Examples
    --------
    >>> data = tally([[1, 2, 3]], scores="numbers", truth=[[1, 0, 0]])
    >>> binned_grades(data)
    ((1.0, 2.0, 3.0), (0, 1, 2))
    """
    scores = outcomes.dataset["score"].values
    order, counts = np.argsort(scores, kind="stable"), outcomes.dataset["truth_count"]
    level = np.arange(len(scores))
    if len(scores) > _MOST_GRADES:
        labels = counts.sum(["system", "question", "truth"]).values[1:][order]
        middle = (np.cumsum(labels) - 0.5 * labels) / labels.sum()
        level = np.unique((middle * _MOST_GRADES).astype(int).clip(0, _MOST_GRADES - 1),
                          return_inverse=True)[1]  # fmt: skip
    means = [float(scores[order][level == number].mean()) for number in range(level.max() + 1)]
    of_category = np.empty_like(level)
    of_category[order] = level
    return tuple(means), tuple(of_category.tolist())


def _check_words(judge: object, labelled: bool) -> None:
    """Refuse words that are none, and those that say nothing without trials of known truth."""
    if judge not in (None, *JUDGE_WORDS):
        raise ArgumentError(
            "judge", " must be 'system', 'shared' or 'pooled' where it is text, or a "
            f"file .csv; got {judge!r:.80}. 'system': the judge has error rates of its own for "
            "each system; 'shared': the same for all; 'pooled': similar ones.",
        )  # fmt: skip
    if not labelled:
        raise ArgumentError(
            "judge", f" must be counts where the truth of no trial is known; got "
            f"{judge!r}. Use JudgeError(tp=178, p=197, fp=2, n=401), or say what is true of some "
            "trials: ", Argument("truth", ..., "tally"), ".",
        )  # fmt: skip


def _check_labels(judges: Judges, outcomes: Outcomes, labelled: bool) -> None:
    """Refuse judges of whom no right, or no wrong, trial is known.

    Without trials of known truth the marks must also tell right from wrong.
    """
    for judge, places in judges.calibrated().items():
        if not labelled:
            judge.check_direction()
        counted = judge
        if labelled:
            counted = judge.with_labels(outcomes.kinds[places].sum(axis=(0, 1)))
        if (1.0, 1.0) not in counted.shapes:
            continue
        of = ", ".join(str(outcomes.systems[system]) for system in places)
        lacking = "right" if not counted.p else "wrong"
        also = ", or pass judge='pooled', by which labels of other systems tell, too"
        raise ArgumentError(
            "truth" if labelled else "judge", f" must have right and wrong trials with "
            f"marks; of {of:.160} it has {counted.p} right and {counted.n} wrong ones. Mark more "
            f"by hand, of those that may be {lacking}{also * (len(judges.groups()) > 1)}.",
        )  # fmt: skip


def label_notes(judges: Judges | None, outcomes: Outcomes) -> list[str]:
    """Say where systems that share a judge have labels that speak for rates of their own.

    The log Bayes factor of one pair of rates for all against a pair for each, both uniform, is
    that of Beta-binomials; below -log(10) it is said.
    """
    notes = []
    for judge, systems in ({} if judges is None else judges.calibrated()).items():
        empty = JudgeError(0, 0, 0, 0)
        by_system = [empty.with_labels(outcomes.kinds[system].sum(axis=0)) for system in systems]
        together = empty.with_labels(outcomes.kinds[systems].sum(axis=(0, 1)))
        factor = _log_marks(together) - sum(map(_log_marks, by_system))
        if len(systems) > 1 and factor < -np.log(10.0):
            names = ", ".join(str(outcomes.systems[system]) for system in systems)
            whose = f"judge {judge.name!r}" if judge.name else "the judge"
            notes.append(
                f"The labels of {names:.160} contradict error rates of {whose} that are the same "
                f"for all (log Bayes factor {factor:.1f}). judge='system' gives each its own."
            )
    return notes


def _log_marks(judge: JudgeError) -> float:
    """Log probability of the marks of trials of known truth, rates uniform."""
    return float(sum(betaln(a, b) for a, b in judge.shapes))


def judge_of_table(table: Any) -> JudgeError | dict[Any, JudgeError]:
    """Count trials that were marked twice; by system, where the table names systems.

    Examples
    --------
    >>> import pandas as pd
    >>> twice = pd.DataFrame({"mark": [1, 1, 1, 0, 0, 0] * 5, "truth": [1, 1, 1, 0, 0, 0] * 5})
    >>> judge_of_table(twice)
    JudgeError(tp=15, p=15, fp=0, n=15, name='', updated=True, by_question=True)
    """
    import narwhals as nw  # for tables only: it takes long to import

    frame = nw.from_native(table)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not {"mark", "truth"} <= set(frame.columns):
        raise ArgumentError(
            "judge", " must be a table with a column 'mark', of the judge, and a column "
            f"'truth', one row for each trial that was marked twice; it has {list(frame.columns)}. "
            "Rename its columns.",
        )  # fmt: skip
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
        judges[system] = JudgeError(*counts, str(system))
    return judges if named else judges[""]


def _flags(values: Sequence[object], name: str) -> list[bool]:
    """Return marks as flags, or refuse the first that is neither 0 nor 1."""
    for row, value in enumerate(values):
        if isinstance(value, str) or value not in (0, 1):
            raise ArgumentError(
                "judge", f" must have 0 or 1 (or False and True) in column {name!r}; "
                f"got {value!r:.40} in row {row}. Leave out trials that have not been marked "
                "twice.",
            )  # fmt: skip
    return list(map(bool, values))


def check_trials(outcomes: Outcomes, pooling: Pooling) -> None:
    """Refuse more trials of a question than marks of a judge are worked out for."""
    most = int(outcomes.trials.max())
    if most > _MOST_TRIALS and pooling != "complete":
        raise ArgumentError(
            "judge", f" must be left out beyond {_MOST_TRIALS} trials of a question; "
            f"got {most}. Evaluate {_MOST_TRIALS} trials of each, or without it.",
        )  # fmt: skip


def check_weight(weight: object) -> None:
    """Refuse a weight of prior trials that is no number in [0, 1]."""
    if not (isinstance(weight, Real) and 0.0 <= float(weight) <= 1.0):
        raise ArgumentError(
            "prior_weight", f" must lie in [0, 1]; got {weight!r:.40}. With 0.5 a prior trial "
            "counts as half a trial.",
        )  # fmt: skip


def read_prior_trials(
    outcomes: Outcomes, prior_trials: object, weight: float
) -> tuple[Array | None, list[str]]:
    """Return discounted prior trials, aligned with the data, and how well they agree with it.

    Parameters
    ----------
    outcomes : Outcomes
    prior_trials : Outcomes or anything `bayesatk.tally` accepts
        Of the same systems and questions.
    weight : float
        Weight of a prior trial, in [0, 1]; with 0 there are none.

    Returns
    -------
    counts : ndarray, shape (system, question, category), or None
    notes : list of str
        One per system.
    """
    check_weight(weight)
    if prior_trials is None or weight == 0.0:
        return None, []
    if outcomes.graded:
        raise ArgumentError(
            "prior_trials", " must be left out where several judges marked trials, or "
            "one gave grades: earlier trials are of right and wrong.",
        )  # fmt: skip
    dataset = outcomes.dataset
    labels, values = (dataset[name].values.tolist() for name in ("category", "score"))
    before = prior_trials
    if not isinstance(before, Outcomes):
        before = _tallied(before, dict(zip(labels, values, strict=True)))
    for name in ("category", "score", "question"):
        new, old = (data[name].values.tolist() for data in (dataset, before.dataset))
        if new != old:
            raise OutcomeError(
                f"prior_trials must have the same {name} labels as the data, in the same order; "
                f"got {len(old)} ({shown(old, 60)}) for {len(new)} ({shown(new, 60)}). Use "
                "bayesatk.tally(data, scores=..., questions=...) for both; a question without "
                "prior trials is a row of None, with missing='ignore'."
            )
    alone = len(before.systems) == len(outcomes.systems) == 1  # whatever their names
    if before.systems != outcomes.systems and not alone:
        raise OutcomeError(
            f"prior_trials must be of the same systems as the data, {shown(outcomes.systems)}; got "
            f"{shown(before.systems)}. Give every system its own, as {{system: trials}}."
        )
    counts = before.dataset["count"].values
    notes = [
        _conflict_note(system, new, old, dataset["score"].values, weight)
        for system, new, old in zip(outcomes.systems, dataset["count"].values, counts, strict=True)
    ]
    return counts * float(weight), notes


def _tallied(prior_trials: object, scores: dict[str, float]) -> Outcomes:
    """Tally prior trials by the scores of the data, whose labels may have been numbers.

    Counts take no scores: they have their own, or are of right and wrong.
    """
    if isinstance(prior_trials, xr.Dataset) or scores == {"0": 0.0, "1": 1.0}:
        return tally(prior_trials)
    try:
        return tally(prior_trials, scores=scores)
    except OutcomeError:
        return tally(prior_trials, scores={_number(name): value for name, value in scores.items()})


def _number(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _conflict_note(name: object, new: Ints, old: Ints, scores: Array, weight: float) -> str:
    """Compare new trials with prior ones.

    If a question's old and new trials are alike, which of them are new is a matter of chance: the
    mean score of the new ones has a known mean and variance given all (sampling without
    replacement). And the log Bayes factor of one vector of probabilities for both, at the weight
    given, against two.
    """
    both = (new.sum(axis=1) > 0) & (old.sum(axis=1) > 0)
    new, old = new[both], old[both]
    trials, total = new.sum(axis=1), (new + old).sum(axis=1)
    mean = (new + old) @ scores / total
    spread = np.einsum("ac,ac->a", new + old, (scores - mean[:, None]) ** 2) / total
    variance = spread / trials * (total - trials) / np.maximum(total - 1.0, 1.0)
    gap, sd = float((new @ scores / trials - mean).sum()), float(np.sqrt(variance.sum()))
    z = gap / sd if sd > 0.0 else 0.0
    factor = float((log_ordered(1.0 + weight * old, new) - log_ordered(1.0, new)).sum())
    p_value = 2.0 * float(ndtr(-abs(z)))
    verdict = "no conflict"
    if factor < -np.log(10.0) or p_value < 0.01:
        verdict = "the prior trials conflict with the data: leave them out, or lower prior_weight"
    return (
        f"{name}: prior trials are worth {weight * old.sum(axis=1).mean():.4g} trials per question "
        f"(weight {weight:g}); if old and new trials were alike, the new mean score would be "
        f"{z:+.1f} sds from its expectation (p = {p_value:.2g}); log Bayes factor of agreement "
        f"{factor:+.1f}: {verdict}."
    )
