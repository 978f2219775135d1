"""A test repeated until its success probability is known to reach a floor, or to miss it."""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from bayesatk.core.runs.e_values import Capital

Verdict = Literal["below", "above", "undecided"]
_TRIALS_SEARCHED = 10_000  # for the smallest number of trials that can decide


@dataclass(frozen=True)
class RepeatedTest:
    """Trials of one test, looked at after each.

    The test fails if its trials show, at level `alpha`, that its success probability is below
    `at_least`, and passes if they show that it is above. Trials end with such a verdict, or once
    every verdict that can still be reached has the same outcome.

    Parameters
    ----------
    most : int
        Largest number of trials.
    at_least : float
        Floor of the success probability, strictly between 0 and 1.
    alpha : float
        Error rate of each verdict, whatever the number of looks.
    undecided : str
        Outcome of the test if the trials do not decide: "pass", "fail" or "skip".

    Notes
    -----
    Each verdict is an e-value of `Capital` that reaches ``1/alpha`` (Ville's inequality). The
    trials need not be independent: a test whose success probability, given all earlier trials, is
    never below `at_least` fails with probability `alpha` at most.

    Examples
    --------
    >>> test = RepeatedTest(20, at_least=0.9)
    >>> test.verdict(0, 2), test.verdict(18, 2)  # the mean of (1 + 9 u)^2 over u is 37
    ('below', 'undecided')
    """

    most: int
    at_least: float
    alpha: float = 0.05
    undecided: str = "pass"

    def outcome(self, verdict: Verdict) -> str:
        """Return the outcome of the test: "pass", "fail" or "skip"."""
        return {"below": "fail", "above": "pass", "undecided": self.undecided}[verdict]

    def verdict(self, passed: int, failed: int) -> Verdict:
        """Return the verdict of these trials, at this look."""
        above, below = _log_e(passed, failed, self.at_least)
        needed = -np.log(self.alpha)
        return "below" if below >= needed else "above" if above >= needed else "undecided"

    def reachable(self, passed: int, failed: int) -> set[Verdict]:
        """Return the verdicts that further trials can lead to, including the present one."""
        now = self.verdict(passed, failed)
        if now != "undecided":
            return {now}
        left = self.most - passed - failed
        # Every failure is evidence of "below", so the extremes are all failures and all successes.
        return {now, self.verdict(passed, failed + left), self.verdict(passed + left, failed)}

    def ended(self, passed: int, failed: int) -> bool:
        """Whether further trials cannot change the outcome."""
        return len({self.outcome(verdict) for verdict in self.reachable(passed, failed)}) == 1

    def interval(self, passed: int, failed: int) -> tuple[float, float]:
        """Bounds of the success probability, each with error rate `alpha` over all looks."""
        return _capital(passed, failed).interval(2.0 * self.alpha)  # half of that at each end

    def fewest(self, verdict: Literal["below", "above"]) -> int | None:
        """Smallest number of trials that gives a verdict if all of them pass, or all fail."""
        for n in range(1, _TRIALS_SEARCHED):
            if self.verdict(*((0, n) if verdict == "below" else (n, 0))) == verdict:
                return n
        return None


@cache  # every look needs those of later looks
def _log_e(passed: int, failed: int, floor: float) -> tuple[float, float]:
    return _capital(passed, failed).log_e(floor)


def _capital(passed: int, failed: int) -> Capital:
    return Capital.of(np.repeat([1.0, 0.0], [passed, failed]))
