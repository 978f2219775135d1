"""The sentences of a report: one for every claim that the numbers bear."""

from typing import Any

import pandas as pd

from bayesatk.comparison.systems import comparison_table
from bayesatk.posterior.tail import tail_exponent
from bayesatk.results.result import Result
from bayesatk.results.tables import table
from bayesatk.verification.verify import Verification

_LIKELY = 0.05  # probability of impossible questions from which they are named
_SURE = 0.95  # and from which they are taken for granted
_MOST = 12  # sentences about pairs of systems; the table has them all


def claims(result: Result, verification: Verification | None) -> list[str]:
    """Return what can be claimed, sentence by sentence."""
    found = _levels(result) + _beyond(result) + _ceilings(result)
    if result.has("comparison"):
        found += _differences(result)
    if result.has("random_baseline"):
        found += _baselines(result)
    if verification is not None:
        found.append(_verdict(verification))
    return found


def _levels(result: Result) -> list[str]:
    """Say how good every system is in the first metric, and how sure that is."""
    frame = table(result)
    first = frame["metric"].iloc[0]
    percent = f"{100 * result.ci_prob:g}%"
    found = []
    for system, own in frame[frame["metric"] == first].groupby("system", sort=False):
        row = own.set_index("target")
        these, like = (row.loc[name] for name in ("questions", "population"))
        text = (
            f"{_name(system)}: {first} is {like['mean']:.3f} on questions like these "
            f"({percent} interval {like['ci_lower']:.3f} to {like['ci_upper']:.3f}) and "
            f"{these['mean']:.3f} on these questions ({these['ci_lower']:.3f} to "
            f"{these['ci_upper']:.3f})."
        )
        found.append(text + _limits(like))
    return found


def _beyond(result: Result) -> list[str]:
    """Say what the counts alone allow at the largest k beyond the trials."""
    frame = table(result)
    if "range_lower" not in frame:
        return []
    percent = f"{100 * result.ci_prob:g}%"
    rows = frame[(frame["target"] == "population") & frame["range_lower"].notna()]
    largest = {one.label: one.k for one in result.metrics}
    found = []
    for system, own in rows.groupby("system", sort=False):
        row = own.iloc[int(own["metric"].map(largest).argmax())]
        found.append(
            f"{_name(system)}: {row['metric']} judges more trials than were run, and its interval "
            "rests on the shape of difficulties that the model assumes. Over all difficulty "
            "distributions that agree with the counts it is "
            f"{row['range_lower']:.3f} to {row['range_upper']:.3f} on questions like these "
            f"({percent} confidence)."
        )
    return found


def _ceilings(result: Result) -> list[str]:
    """Say which share of questions is never solved, where some may be."""
    if "inflated" not in result.families:
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
        found.append(f"{_name(row['system'])}: {text}.")
    return found


def _limits(row: "pd.Series[Any]") -> str:
    """Say what makes a system's value uncertain, where the closed form knows."""
    total = row.get("variance_trial", 0.0) + row.get("variance_question", 0.0)
    if not total > 0:
        return ""
    share = row["variance_question"] / total
    more = "questions" if share > 0.5 else "trials"
    return (
        f" {100 * share:.0f}% of the variance comes from which questions were asked: more {more} "
        "would help most."
    )


def _differences(result: Result) -> list[str]:
    frame = comparison_table(result)
    if frame.empty:
        return ["No two systems tried the same question: nothing can be compared."]
    first = frame["metric"].iloc[0]
    rows = frame[(frame["metric"] == first) & (frame["target"] == "population")]
    rows = rows.sort_values("prob_greater", ascending=False)
    found = [str(sentence) for sentence in rows["sentence"].head(_MOST)]
    if len(rows) > _MOST:
        found.append(f"{len(rows) - _MOST} more pairs are in the table of differences.")
    return found


def _baselines(result: Result) -> list[str]:
    from bayesatk.guessing.baseline import baseline_table

    found = []
    t = result.group("random_baseline").attrs["t"]
    for row in baseline_table(result).to_dict("records"):
        beats = "beats" if row["p_value"] <= 0.05 else "does not clearly beat"
        found.append(
            f"{_name(row['system'])} {beats} the best of {t:g} "
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


def _name(system: object) -> str:
    text = str(system)
    return text if len(text) <= 60 else text[:59] + "…"
