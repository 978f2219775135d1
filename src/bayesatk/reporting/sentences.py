"""The sentences of a report: those of `bayesatk.claim`, and on questions, guessing and checks."""

from itertools import pairwise

import numpy as np

from bayesatk.comparison.checks.noise import noise_floor
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.comparison.claims import claim
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.posterior.tail import tail_exponent
from bayesatk.results.result import Result
from bayesatk.results.tables import ranges_beyond, table
from bayesatk.verification.verify import Verification

_SURE = 0.95  # probability of impossible questions from which they are taken for granted
MANY = 6  # systems whose questions have sentences and panels of their own


def claims(result: Result, verification: Verification | None) -> list[str]:
    """Return the sentences on differences of systems, on guessing and on the verification."""
    sentences = _differences(result) if result.has("comparison") else []
    if result.has("random_baseline"):
        sentences += _baselines(result)
    if verification is not None:
        sentences.append(_verdict(verification))
    return sentences


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
    sentences = []
    if result.answers("noise_floor"):
        sentences = noise_floor(result, "pass@1")["sentence"].tolist()
    rows = question_table(result)
    for system, system_rows in rows.groupby("system", sort=False):
        saturated = int((system_rows["prob_saturated"] > _SURE).sum())
        if saturated:
            sentences.append(
                f"{saturated} of {len(system_rows)} questions hardly distinguish {named(system)} "
                "from better or worse systems: their success probability is within 0.05 of 0 or 1."
            )
        odd = system_rows["question"][system_rows["suspicious"]]
        listed = ", ".join(f"{question!s:.40}" for question in odd[:5])
        more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
        if len(odd):
            sentences.append(
                f"{named(system)} fails questions that weaker systems solve: check the references "
                f"and transcripts of question {listed}{more}."
            )
    return sentences


def _levels(result: Result) -> list[str]:
    """Return the claim about every system in the first metric."""
    advice = len(result.systems) <= 2  # the expected effect of more trials takes a second each
    return [claim(result, system=name, advice=advice) for name in result.systems]


def _beyond(result: Result) -> list[str]:
    """Return the claim about the largest k beyond the trials, if the first metric is not it."""
    ranges = ranges_beyond(result, result.metrics)[:, :, 1, 0]
    beyond = [
        metric for metric, low in zip(result.metrics, ranges.T, strict=True) if (low == low).any()
    ]
    if not beyond:
        return []
    largest = max(beyond, key=lambda metric: metric.k)
    if largest == result.metrics[0]:
        return []
    return [claim(result, largest, system=name) for name in result.systems]


def _ceilings(result: Result) -> list[str]:
    """Say which share of questions is never solved, where some may be."""
    if result.of_costs or "inflated" not in result.families:
        return []
    sentences = []
    for row in tail_exponent(result).to_dict("records"):
        chance = float(row["prob_ceiling"])
        if chance < 0.05:
            continue
        share, most, least = (
            f"{100 * (1 - row[name]):.0f}%"
            for name in ("ceiling", "ceiling_lower", "ceiling_upper")
        )
        text = f"an estimated {share} [{least}, {most}] of questions like these are never solved"
        if chance < _SURE:
            text = f"with probability {100 * chance:.0f}% some questions are impossible: {text}"
        sentences.append(f"{named(row['system'])}: {text}.")
    return sentences


def _differences(result: Result) -> list[str]:
    """Say which systems are ahead in the first metric: tiers, then pairs where they are few."""
    systems = result.systems
    if (
        not result.group("comparison")["shared_questions"]
        .values[np.triu_indices(len(systems), 1)]
        .any()
    ):
        return ["No two systems tried the same question: nothing can be compared."]
    sentences = [claim(result)] if len(systems) > 2 else []
    if len(systems) <= 4:  # the table has all pairs
        sentences += [claim(result, system=a, other=b) for a, b in pairwise(_in_order(result))]
    return sentences


def _in_order(result: Result) -> list[object]:
    """Return the systems by their posterior mean in the first metric on questions like these."""
    rows = table(result)
    in_first_metric = (rows["metric"] == result.metrics[0].label) & (rows["target"] == "population")
    ordered = rows[in_first_metric].sort_values("mean", ascending=False, kind="stable")
    return list(ordered["system"])


def _baselines(result: Result) -> list[str]:
    from bayesatk.guessing.baseline import baseline_table

    sentences = []
    t = result.group("random_baseline").attrs["t"]
    for row in baseline_table(result).to_dict("records"):
        beats = "beats" if row["p_value"] <= 0.05 else "does not clearly beat"
        sentences.append(
            f"{named(row['system'])} {beats} the best of {t:g} "
            f"random guessers: accuracy {row['observed_accuracy']:.3f} against an expected "
            f"{row['expected_best']:.3f} (p-value {row['p_value']:.2g})."
        )
    return sentences


def _verdict(verification: Verification) -> str:
    words = {
        "agree": "The closed form and the sampled PyMC model agree",
        "disagree": "THE CLOSED FORM AND THE SAMPLED PYMC MODEL DISAGREE",
        "inconclusive": "The sampled PyMC model was too short a run to check the closed form",
    }
    return f"{words[verification.verdict]}. {verification.summary()}"
