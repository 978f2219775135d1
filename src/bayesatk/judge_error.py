"""Who marked trials and may err: a judge with a calibration set, several judges, or grades."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, betaincinv, betaln

from bayesatk._tools.arrays import Array, Ints
from bayesatk._tools.messages import ArgumentError, whole_number

Shape = tuple[float, float]
RATES = ("sensitivity", "false_positive_rate")  # of a judge: hyperparameters, and variables
RATE_ICC = "rate_icc"  # how alike the judge's errors on one question are, a variable, too
RATE_ICC_PRIOR = (0.5, 4.0)  # Beta: a tenth on average, most of it near none
JUDGE_WORDS = ("system", "shared", "pooled")  # whose error rates labels tell
GRADES = ("grades_of_wrong", "grades_of_right")  # shares of grades among such trials
CORRELATION = "mark_correlation"  # of what several judges say of a trial, given its truth
# Dimensions of the rates of several judges, and of shares of grades.
LEVEL_AXES = {
    **dict.fromkeys(RATES, "judge"), CORRELATION: "truth", **dict.fromkeys(GRADES, "grade")
}  # fmt: skip
MOST_VARYING = 8  # marks of a question up to which its own rates are integrated
_MARKED = [0, 1, 3, 4, 6, 7]  # kinds of trials that have a mark
_WRONG_WAY = 1e-3  # probability that s <= f from which a judge is refused
_LEVELS = 2000  # quantiles of f that this probability is averaged over


def rates_of(drawn: Mapping[str, Array]) -> Array:
    """Return draws of a judge's rates side by side; (draws, 2), or 3 where they vary."""
    return np.stack([drawn[name] for name in (*RATES, RATE_ICC) if name in drawn], axis=1)


@dataclass(frozen=True)
class JudgeError:
    """Calibration set of a judge: trials of known truth, and how many of them it marked right.

    A priori the sensitivity (probability that a right trial is marked right) and the false positive
    rate (probability that a wrong trial is marked right) are uniform. Given the calibration set
    they are ``Beta(tp + 1, p - tp + 1)`` and ``Beta(fp + 1, n - fp + 1)``. They are assumed to be
    the same for all trials, and, without trials of the evaluation whose truth is known, for all
    questions. ``JudgeError(0, 0, 0, 0)`` has no calibration set: then the truth of some trials must
    be known (``truth=`` of `bayesatk.tally`).

    Parameters
    ----------
    tp, p : int
        Right trials that the judge marked right, and all right trials of the calibration set.
    fp, n : int
        Wrong trials that it marked right, and all wrong trials.
    name : str
        Name of the judge. Systems with equal `JudgeError`, name included, share the judge and its
        error rates.
    updated : bool
        Whether the marks of the evaluation also inform the error rates, as in a full posterior.
        False keeps the posterior of the rates given the calibration set alone (a cut posterior,
        Plummer 2015, Statistics and Computing 25, 37-43). Use it for judges whose error rates
        differ between questions, where the distribution of the marks would bias the rates.

    by_question : bool
        Whether rates may differ between questions where the truth of some trials is known: those
        of a question are then Beta with the judge's rates as means and the intraclass correlation
        ``rate_icc``, which is Beta(1/2, 4) a priori. False: they are the same for all.

    See Also
    --------
    bayesatk.evaluate : takes it as ``judge``. It refuses one whose sensitivity is not larger than
        its false positive rate with a probability above 0.001: such marks have little information
        about success, or contradict it.

    Examples
    --------
    >>> judge = JudgeError(tp=178, p=197, fp=2, n=401)
    >>> judge.sensitivity, judge.false_positive_rate
    ((179.0, 20.0), (3.0, 400.0))
    """

    right: ClassVar[tuple[bool, ...]] = (False, True)
    marks: ClassVar[tuple[str, ...]] = ("wrong", "right")
    labels: ClassVar[dict[str, list[Any]]] = {}
    tp: int
    p: int
    fp: int
    n: int
    name: str = ""
    updated: bool = True
    by_question: bool = True

    def __post_init__(self) -> None:
        for marked, size in (("tp", "p"), ("fp", "n")):
            most = whole_number(size, getattr(self, size), 0)
            found = whole_number(marked, getattr(self, marked), 0)
            if found > most:
                raise ArgumentError(
                    marked, f" must be at most {size}, of which it is a part; got "
                    f"{marked}={found} with {size}={most}. Count trials, not rates.",
                )  # fmt: skip

    def check_direction(self) -> None:
        """Refuse a judge of whom it is not nearly certain that its marks tell right from wrong."""
        if self.wrong_way > _WRONG_WAY:
            raise ArgumentError(
                "judge", " must mark right trials right more often than wrong ones, with "
                f"near certainty; the probability that it does not is {self.wrong_way:.2g}, above "
                f"{_WRONG_WAY:g}, after tp={self.tp} of p={self.p} and fp={self.fp} of n={self.n}. "
                "Mark more trials twice, or use another judge.",
            )  # fmt: skip

    @property
    def sensitivity(self) -> Shape:
        """Beta parameters of the probability that a right trial is marked right."""
        return self.tp + 1.0, self.p - self.tp + 1.0

    @property
    def false_positive_rate(self) -> Shape:
        """Beta parameters of the probability that a wrong trial is marked right."""
        return self.fp + 1.0, self.n - self.fp + 1.0

    @property
    def shapes(self) -> tuple[Shape, Shape]:
        """Beta parameters of the sensitivity and of the false positive rate."""
        return self.sensitivity, self.false_positive_rate

    def with_labels(self, kinds: Ints) -> "JudgeError":
        """Return the counts together with trials of the evaluation whose truth is known.

        Parameters
        ----------
        kinds : ndarray of int, shape (kinds,)
            As of `bayesatk.data.outcomes.Outcomes.kinds`.
        """
        if len(kinds) == 2:
            return self
        _, rejected, fp, _, missed, tp = map(int, kinds[2:])
        return replace(
            self, tp=self.tp + tp, p=self.p + tp + missed, fp=self.fp + fp,
            n=self.n + fp + rejected,
        )  # fmt: skip

    @property
    def wrong_way(self) -> float:
        """Posterior probability that the sensitivity is not larger than the false positive rate."""
        levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
        rate = betaincinv(*self.false_positive_rate, levels)
        return float(betainc(*self.sensitivity, rate).mean())

    def __str__(self) -> str:
        return f"{self.tp} of {self.p} right and {self.fp} of {self.n} wrong trials marked right"


@dataclass(frozen=True)
class PooledJudge(JudgeError):
    """A judge of one system, of whom trials of other systems are known, too.

    Parameters
    ----------
    before : tuple of float
        Beta parameters of the sensitivity, and of the false positive rate, by the labels of other
        systems.
    """

    before: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)

    @property
    def sensitivity(self) -> Shape:
        """Beta parameters, given the labels of other systems and these."""
        a, b, _, _ = self.before
        return self.tp + a, self.p - self.tp + b

    @property
    def false_positive_rate(self) -> Shape:
        """Beta parameters, given the labels of other systems and these."""
        _, _, a, b = self.before
        return self.fp + a, self.n - self.fp + b


def rate_of_others(marked: Ints, size: Ints) -> Shape:
    """Beta parameters of a rate of one system, given trials of known truth of other systems.

    Rates of systems are Beta with a mean that is uniform and an intraclass correlation that is
    Beta(1/2, 4), as that between questions is. The Beta returned has the mean and the variance of
    what follows for one more system.

    Parameters
    ----------
    marked, size : ndarray of int, shape (systems,)
        Trials that were marked right, out of so many.

    Examples
    --------
    >>> a, b = rate_of_others(np.array([90, 88, 93]), np.array([100, 100, 100]))
    >>> round(a / (a + b), 2), round(a + b)  # as if 16 trials of this system were known
    (0.89, 16)
    >>> rate_of_others(np.zeros(2), np.zeros(2))
    (1.0, 1.0)
    """
    if not size.any():
        return 1.0, 1.0
    levels = (np.arange(_LEVELS // 10) + 0.5) / (_LEVELS // 10)
    icc = betaincinv(*RATE_ICC_PRIOR, levels)[:, None]
    total = 1.0 / np.maximum(icc, 1e-6) - 1.0
    a, b = total * levels, total * (1.0 - levels)
    logs = sum(
        betaln(a + k, b + n - k) - betaln(a, b) for k, n in zip(marked, size, strict=True)
    )  # fmt: skip
    weight = np.exp(logs - np.max(logs))
    weight /= weight.sum()
    mean = float((weight * levels).sum())
    square = (weight * (levels**2 + icc * levels * (1.0 - levels))).sum()
    trials = mean * (1.0 - mean) / float(square - mean**2) - 1.0
    return mean * trials, (1.0 - mean) * trials


@dataclass(frozen=True)
class Panel:
    """Several judges who mark the same trials right or wrong.

    Parameters
    ----------
    judges : tuple of str
    levels : tuple of str
        What they may say of a trial: for each judge in order 1 (right), 0 (wrong) or - (no mark).
    name : str
        Of the system that they marked: their rates are its own.

    Examples
    --------
    >>> panel = Panel(("a", "b", "c"), ("110", "1-0", "---"))
    >>> panel.patterns.tolist(), panel.right
    ([[1, 1, 0], [1, -1, 0], [-1, -1, -1]], (True, False, False))
    """

    judges: tuple[str, ...]
    levels: tuple[str, ...]
    name: str = ""
    updated: ClassVar[bool] = True
    by_question: ClassVar[bool] = False

    @property
    def patterns(self) -> Ints:
        """Marks of every judge at every level; (levels, judges)."""
        marks = {"1": 1, "0": 0, "-": -1}
        return np.array([[marks[mark] for mark in level] for level in self.levels])

    @property
    def marks(self) -> tuple[str, ...]:
        """Names of the levels."""
        return self.levels

    @property
    def labels(self) -> dict[str, list[Any]]:
        """Labels of dimensions of the rates."""
        return {"judge": list(self.judges), "truth": ["wrong", "right"]}

    @property
    def right(self) -> tuple[bool, ...]:
        """Levels at which most of the judges who marked the trial say that it is right."""
        return tuple(level.count("1") > level.count("0") for level in self.levels)

    def with_labels(self, kinds: Ints) -> "Panel":
        """Return the same: labels are part of the data."""
        del kinds
        return self

    def designs(self, count: Ints) -> "Iterator[tuple[Panel, float]]":
        """Yield all that each set of judges who marked trials may say, and the share of trials.

        Parameters
        ----------
        count : ndarray of int, shape (levels,)
            Trials at each level.

        Examples
        --------
        >>> panel = Panel(("a", "b"), ("11", "1-"))
        >>> [(part.levels, share) for part, share in panel.designs(np.array([3, 1]))]
        [(('00', '01', '10', '11'), 0.75), (('0-', '1-'), 0.25)]
        """
        trials: dict[tuple[str, ...], int] = {}
        for level, number in zip(self.levels, count.tolist(), strict=True):
            choices = tuple("-" if mark == "-" else "01" for mark in level)
            trials[choices] = trials.get(choices, 0) + number
        for choices, number in trials.items():
            levels = tuple(map("".join, product(*choices)))
            yield replace(self, levels=levels), number / max(int(count.sum()), 1)

    def __str__(self) -> str:
        return f"judges {', '.join(self.judges)}"


@dataclass(frozen=True)
class Grades:
    """A judge who gives trials grades, such as a score of 1 to 5, where right and wrong is true.

    Parameters
    ----------
    levels : tuple of float
        The grades, ascending, or means of neighbours that are put together.
    level_of : tuple of int
        Level of every category of the data.
    name : str
        Of the system that the judge graded: the grades of its wrong and right trials are its own.
    """

    levels: tuple[float, ...]
    level_of: tuple[int, ...]
    name: str = ""
    updated: ClassVar[bool] = True
    by_question: ClassVar[bool] = False

    @property
    def labels(self) -> dict[str, list[Any]]:
        """Labels of dimensions of the rates."""
        return {"grade": list(self.levels)}

    @property
    def marks(self) -> tuple[str, ...]:
        """Names of the levels."""
        return tuple(f"{level:.4g}" for level in self.levels)

    @property
    def right(self) -> tuple[bool, ...]:
        """Grades above the middle of the scale."""
        middle = (self.levels[0] + self.levels[-1]) / 2.0
        return tuple(level > middle for level in self.levels)

    def with_labels(self, kinds: Ints) -> "Grades":
        """Return the same: labels are part of the data."""
        del kinds
        return self

    def merged(self, kinds: Ints) -> Ints:
        """Return kinds of trials by level, from those by category; (..., kinds).

        Examples
        --------
        >>> grades = Grades((1.0, 2.5), (0, 1, 1))
        >>> grades.merged(np.array([1, 1, 1, 0, 2, 0, 0, 0, 0, 0, 3])).tolist()
        [1, 2, 0, 2, 0, 0, 0, 3]
        """
        size, of_level = len(self.level_of), np.array(self.level_of)
        place = np.concatenate([of_level, *(
            len(self.levels) * (1 + truth) + truth + np.append(0, 1 + of_level)
            for truth in (0, 1)
        )])  # fmt: skip
        merged = np.zeros((*kinds.shape[:-1], 3 * len(self.levels) + 2), np.int64)
        for kind, level in enumerate(place[: 3 * size + 2].tolist()):
            merged[..., level] += kinds[..., kind]
        return merged

    def __str__(self) -> str:
        return f"a judge with grades {', '.join(f'{level:.4g}' for level in self.levels)}"


MarkedBy = JudgeError | Panel | Grades
_ALL: tuple[type[MarkedBy], ...] = (JudgeError, PooledJudge, Panel, Grades)
_KINDS: dict[str, type[MarkedBy]] = {kind.__name__: kind for kind in _ALL}


@dataclass(frozen=True)
class Judges:
    """The judge, or the judges, of every system, in their order."""

    by_system: tuple[MarkedBy, ...]

    def groups(self) -> dict[MarkedBy, list[int]]:
        """Positions of the systems that each judge marked.

        Examples
        --------
        >>> one, other = JudgeError(9, 10, 0, 10), JudgeError(10, 10, 0, 10)
        >>> list(Judges((one, other, one)).groups().values())
        [[0, 2], [1]]
        """
        found: dict[MarkedBy, list[int]] = {}
        for place, judge in enumerate(self.by_system):
            found.setdefault(judge, []).append(place)
        return found

    def calibrated(self) -> dict[JudgeError, list[int]]:
        """Return the same of judges who mark right or wrong, one each trial."""
        pairs = self.groups().items()
        return {judge: places for judge, places in pairs if isinstance(judge, JudgeError)}

    def among(self, systems: list[int]) -> "Judges":
        """Return the judges of some systems."""
        return Judges(tuple(self.by_system[i] for i in systems))

    def with_labels(self, kinds: Ints) -> "Judges":
        """Return the judges with what is known of them by trials of known truth.

        Parameters
        ----------
        kinds : ndarray of int, shape (system, question, kinds)
        """
        by_system = list(self.by_system)
        for judge, places in self.groups().items():
            labelled = judge.with_labels(kinds[places].sum(axis=(0, 1)))
            for system in places:
                by_system[system] = labelled
        return Judges(tuple(by_system))

    def vary(self, kinds: Ints, earlier: Array | None) -> bool:
        """Whether rates of judges differ between questions, for all that is known.

        The trials of a question then say how alike its errors are. Not where systems share a judge,
        or a question has too many marks or prior trials.

        Parameters
        ----------
        kinds : ndarray of int, shape (system, question, kinds)
            As of `bayesatk.data.outcomes.Outcomes.kinds`.
        earlier : ndarray, optional
            Prior trials.
        """
        if kinds.shape[-1] == 2 or (earlier is not None and earlier.any()):
            return False
        if not all(judge.by_question and judge.updated for judge in self.by_system):
            return False
        alone = len(self.groups()) == len(self.by_system)
        most = int(kinds[..., _MARKED].sum(axis=-1).max())
        return alone and 2 <= most <= MOST_VARYING

    def described(self) -> list[dict[str, Any]]:
        """Return them as plain data, for the attributes of a result."""
        return [{"kind": type(judge).__name__, **asdict(judge)} for judge in self.by_system]

    @classmethod
    def from_description(cls, described: list[Mapping[str, Any]]) -> "Judges":
        """Return the judges that `described` described."""
        judges: list[Any] = []
        for fields in described:
            values = {name: tuple(value) if isinstance(value, list) else value
                      for name, value in fields.items() if name != "kind"}  # fmt: skip
            kind: Any = _KINDS[fields.get("kind", "JudgeError")]
            judges.append(kind(**values))
        return cls(tuple(judges))
