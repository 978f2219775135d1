"""How near certificates of gates come to realised rates, for truths that no model here draws.

    python -m benchmarks.certificates [--gates 120] [--baselines 4]

Realised: shares of whole gates on new runs with the true success probabilities, as they came, and
adjusted for the chance differences of these runs, by the regression that certificates use. Stated:
`bayesatk.decide.certify` of one run of the baseline. An hour of one core.
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import bayesatk as bk
from bayesatk.comparison.gates.certificate import certificate_of
from bayesatk.comparison.gates.gate import together
from bayesatk.comparison.gates.replay import Decided, Design, expected_rates

# Questions, trials, truth, metric, margin, target.
DESIGNS = (
    (25, 10, "two points", "pass@1", 0.10, "questions"),
    (50, 4, "logit-normal", "pass@1", 0.10, "questions"),
    (100, 5, "sure and flaky", "pass@1", 0.05, "questions"),
    (200, 2, "two points", "pass@1", 0.08, "questions"),
    (100, 5, "logit-normal", "pass@1", 0.07, "population"),
    (60, 8, "uniform", "pass@4", 0.06, "questions"),
    (200, 10, "sure and flaky", "pass^4", 0.03, "questions"),
)


def truth(kind: str, questions: int, rng: np.random.Generator) -> np.ndarray:
    """Return success probabilities of questions."""
    number = np.arange(questions)
    return {
        "two points": np.where(number % 5 < 3, 0.92, 0.35),
        "logit-normal": 1.0 / (1.0 + np.exp(-rng.normal(0.8, 1.6, questions))),
        "sure and flaky": np.where(number % 2 == 0, 0.995, rng.uniform(0.3, 0.7, questions)),
        "uniform": rng.uniform(0.05, 0.95, questions),
    }[kind]


def realised(design: Design, effect: float, gates: int, verdict: str) -> tuple[float, float]:
    """Return the share of a verdict among whole gates, and the same adjusted for their runs."""
    rng, level = np.random.default_rng(5), design.policy.ci_prob
    runs = design.runs(effect, rng)
    decided = Decided.of(design, runs[np.arange(gates) % len(runs), np.arange(gates) // len(runs)])
    ways = slice(0, 2 if effect == 0.0 else 1)  # the other way round is a run of no change, too
    probability = decided.probability[:, ways]
    happened = probability >= level if verdict == "pass" else 1.0 - probability >= level
    right = np.stack([runs[:gates, 0], runs[:gates, 0, ::-1]], axis=1)[:, ways]
    expected = [expected_rates(design, each, decided)[verdict] for each in (runs, right)]
    return float(happened.mean()), float(happened.mean()) + expected[0] - expected[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=120)
    parser.add_argument("--baselines", type=int, default=4)
    options, console = parser.parse_args(), Console(width=140)
    for number, (questions, trials, kind, metric, margin, target) in enumerate(DESIGNS):
        rng = np.random.default_rng([3, number])
        p, full = truth(kind, questions, rng), np.full(questions, trials)
        effect = -1.5 * margin
        policy = bk.decide.GatePolicy(metric, margin=margin, target=target, effect=effect)
        design = Design(policy, together((full, full), (full, full)), full, p[None])
        table = Table("design", "rate", "realised", "adjusted", "stated, with standard errors")
        certificates = [
            certificate_of((rng.binomial(full, p), full), policy, smallest=False, rng=seed)
            for seed in range(options.baselines)
        ]
        for row, (change, verdict) in enumerate(((0.0, "pass"), (effect, "fail"))):
            rates = [certificate.rows[row].rates for certificate in certificates]
            stated = [
                f"{one.rate[verdict]:.3f} ± {np.hypot(one.error[verdict], one.sd[verdict]):.3f}"
                for one in rates
            ]
            shares = realised(design, change, min(options.gates, 250), verdict)
            name = f"{questions} x {trials}, {kind}, {metric}, {target}"
            table.add_row(name, f"{verdict} at {change:+g}", *(f"{x:.3f}" for x in shares),
                          ", ".join(stated))  # fmt: skip
        console.print(table)


if __name__ == "__main__":
    main()
