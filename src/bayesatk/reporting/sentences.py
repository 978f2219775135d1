"""What a report says: sentences on systems, questions, guessing and checks; methods; scores."""

from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.words import probability_words
from bayesatk.comparison.checks.noise import noise_floor
from bayesatk.comparison.checks.question_table import question_table
from bayesatk.comparison.claims import said
from bayesatk.comparison.pairs.cost_rows import cost_rows
from bayesatk.comparison.pairs.verdicts import named
from bayesatk.metrics.grid import Metric
from bayesatk.posterior.metric_table import result_table
from bayesatk.posterior.tail import tail_exponent
from bayesatk.results.result import Result, analysis_table
from bayesatk.results.tables import ranges_beyond
from bayesatk.results.views import view
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


def question_sentences(result: Result) -> list[str]:
    """Return sentences on chance differences of two runs, and on saturated and odd questions."""
    if not has_question_laws(result):
        return []
    sentences = []
    if result.answers("noise_floor"):
        metric = "mean" if result.scale.axes else "pass@1"
        sentences = noise_floor(result, metric)["sentence"].tolist()
    rows = question_table(result)
    near_an_end = "their success probability is within 0.05 of 0 or 1"
    if not result.data.binary:
        near_an_end = "their expected score is within 5% of the scale of one of its ends"
    for system, system_rows in rows.groupby("system", sort=False):
        saturated = int((system_rows["prob_saturated"] > _SURE).sum())
        if saturated:
            sentences.append(
                f"{saturated} of {len(system_rows)} questions hardly distinguish {named(system)} "
                f"from better or worse systems: {near_an_end}."
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
    return [said(result, system=name)[0] for name in result.systems]


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
    return [said(result, largest, system=name)[0] for name in result.systems]


def _ceilings(result: Result) -> list[str]:
    """Say which share of questions is never solved, where some probably are."""
    if not result.answers("tail_exponent") or "inflated" not in result.families:
        return []
    sentences = []
    for row in tail_exponent(result).to_dict("records"):
        chance = float(row["prob_ceiling"])
        if chance < 0.5:
            continue
        share, most, least = (
            f"{100 * (1 - row[name]):.0f}%"
            for name in ("ceiling", "ceiling_lower", "ceiling_upper")
        )
        text = f"an estimated {share} [{least}, {most}] of questions like these are never solved"
        if chance < _SURE:
            text = (
                f"with probability {100 * chance:.0f}% some questions are impossible; if so, {text}"
            )
        sentences.append(f"{named(row['system'])}: {text}.")
    return sentences


def _differences(result: Result) -> list[str]:
    """Say which systems are ahead in the first metric: tiers; of few, the best and each other one.

    Of the same pairs also what they cost.
    """
    systems = result.systems
    sentences = [said(result)[0]] if len(systems) > 2 else []
    if len(systems) <= 4:  # the table has all pairs
        best, *others = in_order(result)
        sentences += [said(result, system=best, other=other)[0] for other in others]
        alpha = float(result.group("comparison").attrs["alpha"])
        pairs = [(systems.index(best), systems.index(other)) for other in others]
        costs = cost_rows(result, pairs, alpha)
        sentences += [row["sentence"] for row in costs if row["target"] == "population"]
    return sentences


def in_order(result: Result) -> list[object]:
    """Return the systems by their posterior mean in the first metric on questions like these."""
    rows = result_table(result)
    in_first_metric = (rows["metric"] == result.metrics[0].label) & (rows["target"] == "population")
    ascending = result.scale.direction < 0
    ordered = rows[in_first_metric].sort_values("mean", ascending=ascending, kind="stable")
    return list(ordered["system"])


def _baselines(result: Result) -> list[str]:
    from bayesatk.guessing.baseline import baseline_table

    sentences = []
    t = result.group("random_baseline").attrs["t"]
    by_system = {row["system"]: row for row in baseline_table(result).to_dict("records")}
    for row in map(by_system.__getitem__, in_order(result)):
        beats = "beats" if row["p_value"] <= 0.05 else "does not clearly beat"
        sentences.append(
            f"{named(row['system'])} {beats} the best of {t:g} "
            f"random guessers: accuracy {row['observed_accuracy']:.3f} against an expected "
            f"{row['expected_best']:.3f} (p-value {probability_words(row['p_value'])})."
        )
    return sentences


def _verdict(verification: Verification) -> str:
    words = {
        "agree": "The closed form and the sampled PyMC model agree",
        "disagree": "THE CLOSED FORM AND THE SAMPLED PYMC MODEL DISAGREE",
        "inconclusive": "The sampled PyMC model was too short a run to check the closed form",
    }
    return f"{words[verification.verdict]}. {verification.summary()}"


def scores(result: Result) -> list[dict[str, Any]]:
    """Return one table per metric, on questions like these, best system first.

    Of a result with a leaderboard they are its rows, with tiers and the probability of being best;
    else those of `bayesatk.table` by their means, as those of costs always.
    """
    ranked = result.has("leaderboard")
    alone = pd.DataFrame(result_table(result))
    frame = analysis_table(result, "leaderboard") if ranked else alone
    attrs = {"ci_prob": result.ci_prob} | (frame.attrs if ranked else {})
    frame = frame.rename(columns={"estimate": "observed"})
    lower = result.scale.direction < 0
    tables = [_score_table(frame, metric, ranked, lower, attrs) for metric in result.metrics]
    costs = alone.rename(columns={"estimate": "observed"}).dropna(subset=["mean"])
    tables += [_score_table(costs, metric, False, True, attrs) for metric in result.costs]
    return [own for own in tables if own["rows"]]


def _score_table(
    frame: pd.DataFrame, metric: Metric, ranked: bool, lower: bool, attrs: dict[Any, Any]
) -> dict[str, Any]:
    """Return the table of one metric; `lower` says whether lower values are better."""
    rows = frame[(frame["metric"] == metric.label) & (frame["target"] == "population")]
    rows = rows.sort_values("mean", ascending=lower, kind="stable")
    rows.attrs = attrs
    shown = view(rows, "leaderboard")
    low, high = _ends(rows) if len(rows) else (0.0, 1.0)
    texts = [
        dict(zip(shown.headings, cells, strict=True)) | {"line": False} | _places(row, low, high)
        for cells, row in zip(shown.rows, rows.to_dict("records"), strict=True)
    ]
    for row, above in zip(texts[1:], texts, strict=False):
        row["line"] = row.get("tier") != above.get("tier")
    return {"metric": metric.label, "ranked": ranked, "rows": texts}


def _ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the scale that all rows of a table share."""
    values = rows[["observed", "ci_lower", "ci_upper"]].to_numpy(float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.05 * max(high - low, 1e-6)
    return low - margin, high + margin


def _places(row: dict[Any, Any], low: float, high: float) -> dict[str, float | None]:
    """Return the interval of a row as places on the scale."""

    def at(value: float) -> float:
        return round(160 * (value - low) / (high - low), 1)  # of the view box of the page

    seen = None if np.isnan(row["observed"]) else at(row["observed"])
    ends = {"from": at(row["ci_lower"]), "to": at(row["ci_upper"])}
    return {**ends, "mark": at(row["mean"]), "seen": seen}


def statistics_sentence(result: Result) -> str:
    """Say what estimates, means and intervals are, and how they were computed."""
    estimates = (
        "Estimates are unbiased under draws without replacement from the trials that were run"
    )
    if result.study.judges is not None:
        estimates = "Estimates are those of the marks as they are, with the errors of the judge"
    ways = {"nuts": "from draws by NUTS", "draws": "from its draws", "conjugate": "in closed form"}
    integrated = f"computed by integration over the parameters ({result.method})"
    return (
        f"{estimates}; means, standard deviations and intervals are those of the posterior of the "
        f"metric, {ways.get(result.method, integrated)}."
    )


def method_sentences(result: Result) -> list[str]:
    """Say how marks of a judge, costs, and comparisons of systems are treated."""
    sentences = []
    rates = result.study.judge_rates
    if rates is not None:
        by_question = "; of single questions both are Beta with intraclass correlation rate_icc"
        sentences.append(
            "Marks of a judge: a right trial is marked right with the probability sensitivity, a "
            f"wrong one with false_positive_rate{by_question * rates[0].varying}. Every system has "
            "rates of its own. They are estimated from trials of known truth, together with the "
            "success probabilities, and the posterior is of true success."
        )
    if result.costs:
        sentences.append(
            "Costs have no model. On questions like these their means and intervals are those of "
            "the Bayesian bootstrap of mean costs and success rates of questions together, with "
            "the same random weights for all systems; on these questions they come from the "
            "variance of trials within questions."
        )
    if result.has("comparison"):
        sentences.append(JOINT["own" if result.own else "systems"])
        rule = ORDER_OF_MANY if len(result.systems) > 2 else ORDER_OF_TWO
        alpha = float(result.group("comparison").attrs["alpha"])
        sentences.append(rule.format(probability=1.0 - 0.5 * alpha))
    return sentences


JOINT = {
    "systems": (
        "Differences and P(better) come from joint draws, in which every system keeps its own "
        "posterior. On these questions systems that tried all of them are independent given the "
        "trials. Otherwise the draws are put in a joint order (a Gaussian copula), whose "
        "correlations are estimated from the values of the metric by question, on questions like "
        "these with their uncertainty."
    ),
    "own": "Differences and P(better) come from the joint draws of that model.",
}
ORDER_OF_TWO = "A system is called ahead where P(better) is {probability:g} or more."
ORDER_OF_MANY = (
    "P(best), ranks, tiers and shrunken means come from the same draws after these are shrunk "
    "towards each other: systems are exchangeable, normal around a common mean, with a spread that "
    "is integrated out. Orders of two systems are declared, the surest first, as long as all are "
    "right together with probability {probability:g}; a tier ends where the next system is "
    "declared worse than one of it."
)
POOLINGS = {
    "partial": (
        "Partial pooling: the success probabilities p of the questions come from one distribution, "
        "of a family that the prior below names (beta; inflated, with questions never or always "
        "solved; mixture, of two Betas; scored categories: Dirichlet). It is estimated together "
        "with them, which shrinks questions with few trials towards the others. Several families "
        "are weighted by their posterior probabilities."
    ),
    "groups": (
        "Groups of questions: within a group p is Beta around the group's mean with one intraclass "
        "correlation; the logits of the means of groups are normal around a common one. Its sd, "
        "the correlation and the common mean are integrated; groups are partially pooled."
    ),
    "covariates": (
        "Regression on covariates: the success probabilities p of the questions are Beta around a "
        "mean whose logit is linear in the covariates, with one intraclass correlation. "
        "Coefficients are integrated by importance sampling."
    ),
    "none": (
        "No pooling: every question's p has its own prior, independent of other questions. With "
        "few trials and many questions the bias of the prior does not average out."
    ),
    "own": "The posterior is that of a model that is not the library's, known by its draws.",
    "complete": "Complete pooling: all questions share one p; they differ by chance alone.",
}

TARGETS = {
    "these": (
        "“These questions”: the mean over exactly these questions; their success probabilities are "
        "uncertain, because trials are few."
    ),
    "like these": (
        "“Questions like these”: the mean over the population that the questions were drawn from; "
        "the choice of the questions is a second source of uncertainty. Claims about a capability "
        "need this target."
    ),
}
GROUPED_TARGETS = {
    "these": TARGETS["these"],
    "like these": (
        "“Questions like these”: the mean over questions like these of these groups, the groups "
        "with their weights; the choice of the questions is a second source of uncertainty."
    ),
    "new groups": (
        "“New groups of questions”: the mean over new groups like these, with new questions; the "
        "choice of the groups is a third source of uncertainty. It is the target of clustered "
        "standard errors. Claims beyond these groups need this target."
    ),
}
