"""What evaluations are told of their judges: calibration sets, one for all or one by system."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.data.outcomes import Outcomes
from bayesatk.data.tables import is_table
from bayesatk.judge_error import JudgeError, Judges
from bayesatk.priors import Pooling

_MOST_TRIALS = 256  # of a question: what is worked out for all numbers of right trials and marks


def read_judges(judge: object, outcomes: Outcomes) -> Judges | None:
    """Return the judge of every system; None where marks are taken to be right.

    Parameters
    ----------
    judge : JudgeError, mapping {system: JudgeError}, table, Judges or None
        A table has a row for each trial that was marked twice: columns ``mark`` (by the judge),
        ``truth``, and ``system`` where the judge may treat systems differently.
    outcomes : Outcomes
    """
    systems = outcomes.systems
    if judge is None or isinstance(judge, Judges):
        return judge
    if isinstance(judge, JudgeError):
        return Judges((judge,) * len(systems))
    known: object = judge
    if is_table(judge):
        known = judge_of_table(judge)
        if isinstance(known, JudgeError):
            return Judges((known,) * len(systems))
    if not isinstance(known, Mapping):
        raise ArgumentError(
            Argument("judge"), " must be a JudgeError, a mapping from systems to them, or a table "
            f"with columns 'mark' and 'truth'; got {judge!r:.80}. Count the trials that were "
            "marked twice: JudgeError(tp=178, p=197, fp=2, n=401).",
        )  # fmt: skip
    absent = [one for one in systems if one not in known]
    unknown = [one for one in known if one not in systems]
    wrong = [one for one in known.values() if not isinstance(one, JudgeError)]
    if absent or unknown or wrong:
        raise ArgumentError(
            Argument("judge"), f" must have a JudgeError for each of {systems}; got "
            f"{known!r:.160}. Give one JudgeError where one judge marked all systems.",
        )  # fmt: skip
    return Judges(tuple(known[one] for one in systems))


def judge_of_table(table: Any) -> JudgeError | dict[Any, JudgeError]:
    """Count trials that were marked twice; by system, where the table names systems.

    Examples
    --------
    >>> import pandas as pd
    >>> twice = pd.DataFrame({"mark": [1, 1, 1, 0, 0, 0] * 5, "truth": [1, 1, 1, 0, 0, 0] * 5})
    >>> judge_of_table(twice)
    JudgeError(tp=15, p=15, fp=0, n=15, name='', updated=True)
    """
    import narwhals as nw  # for tables only: it takes long to import

    frame: Any = nw.from_native(table)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    absent = {"mark", "truth"} - set(frame.columns)
    if absent:
        raise ArgumentError(
            Argument("judge"), " must be a table with a column 'mark', of the judge, and a column "
            f"'truth', one row for each trial that was marked twice; it has {list(frame.columns)}. "
            "Rename its columns.",
        )  # fmt: skip
    mark, truth = (_zeros_and_ones(frame[name].to_list(), name) for name in ("mark", "truth"))
    if "system" not in frame.columns:
        return _counted(mark, truth, "")
    found: dict[Any, JudgeError] = {}
    system = frame["system"].to_list()
    for one in dict.fromkeys(system):
        own = [i for i, each in enumerate(system) if each == one]
        found[one] = _counted([mark[i] for i in own], [truth[i] for i in own], str(one))
    return found


def _zeros_and_ones(values: Sequence[object], name: str) -> list[bool]:
    for row, one in enumerate(values):
        if isinstance(one, str) or one not in (0, 1):
            raise ArgumentError(
                Argument("judge"), f" must have 0 or 1 (or False and True) in column {name!r}; "
                f"got {one!r:.40} in row {row}. Leave out trials that have not been marked twice.",
            )  # fmt: skip
    return [bool(one) for one in values]


def _counted(mark: Sequence[bool], truth: Sequence[bool], name: str) -> JudgeError:
    of_right = [m for m, t in zip(mark, truth, strict=True) if t]
    of_wrong = [m for m, t in zip(mark, truth, strict=True) if not t]
    return JudgeError(sum(of_right), len(of_right), sum(of_wrong), len(of_wrong), name)


def check_trials(outcomes: Outcomes, pooling: Pooling) -> None:
    """Refuse more trials of a question than marks of a judge are worked out for."""
    most = int(outcomes.trials.max())
    if most > _MOST_TRIALS and pooling != "complete":
        raise ArgumentError(
            Argument("judge"), f" must be left out beyond {_MOST_TRIALS} trials of a question; "
            f"got {most}. Evaluate {_MOST_TRIALS} trials of each, or without it.",
        )  # fmt: skip
