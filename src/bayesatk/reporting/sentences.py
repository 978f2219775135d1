"""The sentences of a report: those of `bayesatk.claim`, and on questions, guessing and checks."""

from itertools import pairwise

import numpy as np

from bayesatk.comparison.checks.noise import noise_floor
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.comparison.claims import claim
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.posterior.tail import tail_exponent
from bayesatk.results.ranges import ranges_beyond
from bayesatk.results.result import Result
from bayesatk.results.tables import table
from bayesatk.verification.verify import Verification

_LIKELY = 0.05  # probability of impossible questions from which they are named
_SURE = 0.95  # and from which they are taken for granted
_PAIRED = 4  # systems whose neighbours have sentences; the table has all pairs
_NAMED = 5  # suspicious questions of a system
MANY = 6  # systems whose questions have sentences and panels of their own
_ADVISED = 2  # systems whose claim has the expected effect of more trials, a second each


def claims(result: Result, verification: Verification | None) -> list[str]:
    """Return the sentences on differences of systems, on guessing and on the verification."""
    found = _differences(result) if result.has("comparison") else []
    if result.has("random_baseline"):
        found += _baselines(result)
    if verification is not None:
        found.append(_verdict(verification))
    return found


def levels(result: Result) -> list[str]:
    """Return the sentences on every system by itself."""
    return _levels(result) + _beyond(result) + _ceilings(result)


def has_question_laws(result: Result) -> bool:
    """Whether what is known of single questions has a closed form, for few enough systems."""
    return result.answers("question_table") and len(result.systems) <= MANY


def of_questions(result: Result) -> list[str]:
    """Return sentences on chance differences of two runs, and on saturated and odd questions."""
    if not has_question_laws(result):
        return []
    found = []
    if result.answers("noise_floor"):
        found = noise_floor(result, "pass@1")["sentence"].tolist()
    rows = question_table(result)
    for system, own in rows.groupby("system", sort=False):
        known = int((own["prob_saturated"] > _SURE).sum())
        if known:
            found.append(
                f"{known} of {len(own)} questions hardly distinguish {named(system)} from better "
                "or worse systems: their success probability is within 0.05 of 0 or 1."
            )
        odd = own["question"][own["suspicious"]]
        listed = ", ".join(f"{one!s:.40}" for one in odd[:_NAMED])
        more = f" and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
        if len(odd):
            found.append(
                f"{named(system)} fails questions that weaker systems solve: check the references "
                f"and transcripts of question {listed}{more}."
            )
    return found


def _levels(result: Result) -> list[str]:
    """Return the claim about every system in the first metric."""
    advice = len(result.systems) <= _ADVISED
    return [claim(result, system=name, advice=advice) for name in result.systems]


def _beyond(result: Result) -> list[str]:
    """Return the claim about the largest k beyond the trials, if the first metric is not it."""
    ranges = ranges_beyond(result, result.metrics)[:, :, 1, 0]
    beyond = [one for one, low in zip(result.metrics, ranges.T, strict=True) if (low == low).any()]
    if not beyond:
        return []
    largest = max(beyond, key=lambda one: one.k)
    if largest == result.metrics[0]:
        return []
    return [claim(result, largest, system=name) for name in result.systems]


def _ceilings(result: Result) -> list[str]:
    """Say which share of questions is never solved, where some may be."""
    if result.of_costs or "inflated" not in result.families:
        return []
    found = []
    for row in tail_exponent(result).to_dict("records"):
        chance = float(row["prob_ceiling"])
        if chance < _LIKELY:
            continue
        share, most, least = (
            f"{100 * (1 - row[name]):.0f}%"
            for name in ("ceiling", "ceiling_lower", "ceiling_upper")
        )
        text = f"an estimated {share} [{least}, {most}] of questions like these are never solved"
        if chance < _SURE:
            text = f"with probability {100 * chance:.0f}% some questions are impossible: {text}"
        found.append(f"{named(row['system'])}: {text}.")
    return found


def _differences(result: Result) -> list[str]:
    """Say which systems are ahead in the first metric: tiers, then pairs where they are few."""
    systems = result.systems
    if (
        not result.group("comparison")["shared_questions"]
        .values[np.triu_indices(len(systems), 1)]
        .any()
    ):
        return ["No two systems tried the same question: nothing can be compared."]
    found = [claim(result)] if len(systems) > 2 else []
    if len(systems) <= _PAIRED:
        found += [claim(result, system=a, other=b) for a, b in pairwise(_in_order(result))]
    return found


def _in_order(result: Result) -> list[object]:
    """Return the systems by their posterior mean in the first metric on questions like these."""
    rows = table(result)
    chosen = (rows["metric"] == result.metrics[0].label) & (rows["target"] == "population")
    ordered = rows[chosen].sort_values("mean", ascending=False, kind="stable")
    return list(ordered["system"])


def _baselines(result: Result) -> list[str]:
    from bayesatk.guessing.baseline import baseline_table

    found = []
    t = result.group("random_baseline").attrs["t"]
    for row in baseline_table(result).to_dict("records"):
        beats = "beats" if row["p_value"] <= 0.05 else "does not clearly beat"
        found.append(
            f"{named(row['system'])} {beats} the best of {t:g} "
            f"random guessers: accuracy {row['observed_accuracy']:.3f} against an expected "
            f"{row['expected_best']:.3f} (p-value {row['p_value']:.2g})."
        )
    return found


def _verdict(verification: Verification) -> str:
    words = {
        "agree": "The closed form and the sampled PyMC model agree",
        "disagree": "THE CLOSED FORM AND THE SAMPLED PYMC MODEL DISAGREE",
        "inconclusive": "The sampled PyMC model was too short a run to check the closed form",
    }
    return f"{words[verification.verdict]}. {verification.summary()}"
