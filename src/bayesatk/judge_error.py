"""A judge that errs: how often it marks right and wrong trials right, by trials of known truth."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, betaincinv

from bayesatk._tools.arrays import Ints
from bayesatk._tools.messages import ArgumentError, whole_number

Shape = tuple[float, float]
RATES = ("sensitivity", "false_positive_rate")  # of a judge: hyperparameters, and variables
RATE_ICC = "rate_icc"  # how alike the judge's errors on one question are, a variable, too
RATE_ICC_PRIOR = (0.5, 4.0)  # Beta: a tenth on average, most of it near none
_WRONG_WAY = 1e-3  # probability that s <= f from which a judge is refused
_LEVELS = 2000  # quantiles of f that this probability is averaged over


@dataclass(frozen=True)
class JudgeError:
    """Calibration set of a judge: trials of known truth, and how many of them it marked right.

    A priori the sensitivity (probability that a right trial is marked right) and the false positive
    rate (probability that a wrong trial is marked right) are uniform. Given the calibration set
    they are ``Beta(tp + 1, p - tp + 1)`` and ``Beta(fp + 1, n - fp + 1)``. They are assumed to be
    the same for all trials, and, without trials of the evaluation whose truth is known, for all
    questions. Each system has rates of its own; a calibration set of several systems is the prior
    knowledge of the rates of each. ``JudgeError(0, 0, 0, 0)`` has no calibration set: then the
    truth of some trials must be known (``truth=`` of `bayesatk.tally`).

    Parameters
    ----------
    tp, p : int
        Right trials that the judge marked right, and all right trials of the calibration set.
    fp, n : int
        Wrong trials that it marked right, and all wrong trials.
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

    tp: int
    p: int
    fp: int
    n: int
    by_question: bool = True

    def __post_init__(self) -> None:
        for marked, size in (("tp", "p"), ("fp", "n")):
            most = whole_number(size, getattr(self, size), 0)
            found = whole_number(marked, getattr(self, marked), 0)
            if found > most:
                raise ArgumentError(
                    marked,
                    f" must be at most {size}, of which it is a part; got "
                    f"{marked}={found} with {size}={most}. Count trials, not rates.",
                )

    def check_direction(self, system: object) -> None:
        """Refuse a judge of whom it is not nearly certain that its marks tell right from wrong."""
        if self.wrong_way > _WRONG_WAY:
            raise ArgumentError(
                "judge",
                " must mark right trials right more often than wrong ones, with "
                f"near certainty; the probability that it does not is {self.wrong_way:.2g} for "
                f"{system!s:.160}, above {_WRONG_WAY:g}, after tp={self.tp} of p={self.p} and "
                f"fp={self.fp} of n={self.n}. Mark more trials twice, or use another judge.",
            )

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
            Numbers of trials of each kind, from `bayesatk.data.outcomes.Outcomes.kinds`.
        """
        if len(kinds) == 2:
            return self
        _, rejected, fp, _, missed, tp = map(int, kinds[2:])
        return replace(
            self,
            tp=self.tp + tp,
            p=self.p + tp + missed,
            fp=self.fp + fp,
            n=self.n + fp + rejected,
        )

    @property
    def wrong_way(self) -> float:
        """Posterior probability that the sensitivity is not larger than the false positive rate."""
        levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
        rate = betaincinv(*self.false_positive_rate, levels)
        return float(betainc(*self.sensitivity, rate).mean())

    def __str__(self) -> str:
        return f"{self.tp} of {self.p} right and {self.fp} of {self.n} wrong trials marked right"
