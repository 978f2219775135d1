"""The verdict of a gate, what it rests on, and how it is written for people and machines."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from bayesatk._tools.words import number_words, probability_words
from bayesatk.comparison.gates.policy import RULES, GatePolicy
from bayesatk.comparison.gates.rates import GateDesign
from bayesatk.comparison.pairs.verdicts import chance_words
from bayesatk.results.schema import TARGET_NAMES

EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 3}
Verdict = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class FloorCheck:
    """A question or group with its floor.

    Parameters
    ----------
    label : str
    floor : float
    value : float
        Posterior mean of the metric of the new system.
    probability : float
        That it is at the floor or above.
    verdict : {"pass", "fail", "inconclusive"}
    """

    label: str
    floor: float
    value: float
    probability: float
    verdict: Verdict


@dataclass(frozen=True)
class Gate:
    """The verdict of a gate, its evidence, and how often another run would give another verdict.

    Parameters
    ----------
    verdict : {"pass", "fail", "inconclusive"}
        Of the difference and all floors together.
    probability : float
        Posterior probability that the difference is above the policy's threshold.
    error : float
        Its standard error: of draws, of weighted points (default), of tables (next to none).
    observed : dict
        Unbiased estimate of the metric by system (NaN where k exceeds the trials).
    difference : dict
        Posterior of new minus baseline: mean, sd, ci_lower, ci_upper.
    replication : float
        Probability that the same design, run again on the same questions, gives the same verdict on
        the difference.
    design : GateDesign
        Rates of verdicts if the new system is the same as the baseline, and at the policy's effect.
    floors : tuple of FloorCheck
        Result of each floor.
    policy : GatePolicy
        The rules.
    claim : str
        The sentence of `bayesatk.claim` about the two systems.
    origin : dict
        Digest of the counts, seed and versions.
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
    origin: dict[str, Any]

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
        return EXIT_CODES[self.verdict]

    def as_dict(self) -> dict[str, Any]:
        """Return everything in a form that JSON can store; docs/schema.md describes it."""
        return {
            "schema": "bayesatk-gate/1",
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "policy": self.policy.as_dict(),
            "policy_sha256": self.policy.sha256,
            "probability": self.probability,
            "monte_carlo_error": self.error,
            "observed": {k: None if np.isnan(v) else v for k, v in self.observed.items()},
            "difference": self.difference,
            "replication": self.replication,
            "design": self.design.as_dict(),
            "floors": [asdict(check) for check in self.floors],
            "claim": self.claim,
            "origin": self.origin,
        }

    def sentences(self) -> list[str]:
        """Return the verdict, its reasons and its long run, a sentence or two each."""
        policy = self.policy
        rule = (
            f"not worse than the baseline by more than {policy.margin:g}"
            if policy.rule == RULES[0]
            else f"better than the baseline by more than {policy.margin:g}"
        )
        chance = probability_words(self.probability, self.error)
        sentences = [
            f"{self.verdict.upper()}: in {policy.metric} on {TARGET_NAMES[policy.target]} the new "
            f"system is {rule} with probability {chance} (pass at {policy.level:g}, fail at "
            f"{1.0 - policy.level:g}).",
            self.claim,
            f"The same design run again gives the same verdict on the difference with probability "
            f"{self.replication:.2f}.",
            *self.design.lines(),
        ]
        error = 0.001  # of what is drawn: two decimals are known
        for check in self.floors:
            chance = chance_words("at or above", check.probability, error)
            sentences.append(
                f"{check.label}: {number_words(check.value, error)}, floor {check.floor:g}, "
                f"{chance}: {check.verdict}."
            )
        return sentences

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def markdown(self) -> str:
        """Return a summary for a pull request."""
        mark = {"pass": "✅", "fail": "❌", "inconclusive": "❔"}[self.verdict]
        first, *reasons = (_escaped(sentence) for sentence in self.sentences())
        rules = ", ".join(f"{k} {v}" for k, v in self.policy.as_dict().items() if k != "groups")
        lines = [f"### {mark} {first}", "", *(f"* {sentence}" for sentence in reasons), ""]
        lines += [
            f"Policy: {_escaped(rules)}; SHA-256 `{self.policy.sha256[:16]}`. Counts: SHA-256 "
            f"`{self.origin['input_sha256'][:16]}`. bayesatk {self.origin['versions']['bayesatk']}."
        ]
        return "\n".join(lines) + "\n"

    _repr_markdown_ = markdown


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return "".join(
        f"\\{character}" if character in "\\`*_{}[]<>#|~$" else character for character in text
    )
