"""Columns of every table, declared once: heading, cell, meaning, and when they are shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from bayesatk._tools.words import printable, probability_words
from bayesatk.metrics.grid import COSTS, FAMILIES
from bayesatk.results.schema import GROUPED_TARGETS

Row = Mapping[str, Any]
TARGETS = dict(zip(GROUPED_TARGETS, ("these", "like these", "new groups"), strict=True))
_VERIFIED_TARGETS = TARGETS | {"observed": "observed"}
KEPT, FILES = 0, 9  # order of leaving: never; from the start


@dataclass(frozen=True)
class Column:
    """A column of printed tables.

    Parameters
    ----------
    heading : str
        ``{ci}`` stands for the probability of intervals.
    write : callable, optional
        Writes the cell of a row; default: the value, with the decimals of its table.
    leaves : int
        Order of leaving: columns with the largest number first, `KEPT` never. Those of `FILES`
        are only in files.
    meaning : str
    once : bool
        Whether a cell is blank below one of the same.
    left : bool
        Whether it is text, set to the left.
    """

    heading: str
    write: Callable[[Row], str] | None = None
    leaves: int = 1
    meaning: str = ""
    once: bool = False
    left: bool = False


def _text(heading: str, leaves: int = KEPT, once: bool = False) -> Column:
    return Column(heading, leaves=leaves, once=once, left=True)


def _decimals(heading: str, name: str, form: str, leaves: int = 1) -> Column:
    return Column(heading, lambda row: _number(row[name], form), leaves)


def _chance(heading: str, name: str, leaves: int = 1, meaning: str = "") -> Column:
    return Column(
        heading,
        lambda row: "" if row[name] != row[name] else probability_words(row[name]),
        leaves,
        meaning,
    )


def _number(value: float, form: str, absent: str = "") -> str:
    """Write a number without a minus before a zero."""
    if value != value:
        return absent
    text = format(round(value, 12), form)  # .5875 is a sum of floats, and .588
    return text.replace("-", "", 1) if not float(text.replace(",", "")) else text


def _p_value(value: float) -> str:
    """Write a p-value with two significant digits, however deep in the tail it is."""
    return "" if value != value else f"{value:.2g}"


def _counted(heading: str, name: str) -> Column:
    return Column(
        heading, lambda row: "-" if np.isinf(row[name]) else _number(row[name], ",.0f"), KEPT
    )


_FEW_TRIALS = "k>n"
CELL_MEANINGS = {_FEW_TRIALS: "more than half of the questions have fewer than k trials."}


def _observed(name: str) -> Column:
    return Column(
        "observed",
        lambda row: _number(row[name], _form(row), _FEW_TRIALS),
        KEPT,
        "unbiased estimate from the observed trials (k drawn without replacement).",
        once=True,
    )


def _form(row: Row) -> str:
    form = str(row["_form"])
    return form.replace(".3f", ".4g") if row.get("metric") in _OF_COSTS else form


def _questions_observed(row: Row) -> str:
    observed, tried = row["estimate_questions"], row["tried_questions"]
    return f"{observed:.0f} of {tried:.0f}" if 0 < observed < tried else ""


def _ends(low: float, high: float, form: str) -> str:
    return "" if low != low else f"[{_number(low, form)}, {_number(high, form)}]"


def verified_quantity(row: Mapping[Any, Any]) -> str:
    """Write what a row of a verification is of: quantity, system or pair, target, other labels.

    Examples
    --------
    >>> row = {"variable": "pass_at_k", "k": 1, "system": "b", "other": "a", "target": "questions"}
    >>> verified_quantity(row | {"exact_mean": 0.5})
    'pass@1, b - a, these'
    """
    pair = [_pair({"other": None} | dict(row))] if "system" in row else []
    target = _VERIFIED_TARGETS.get(row.get("target", ""), "")
    written = ("variable", "k", "tau", "system", "other", "target")
    labels = takewhile(lambda item: item[0] != "exact_mean", row.items())
    more = [str(label) for name, label in labels if name not in written and not pd.isna(label)]
    return ", ".join(filter(None, [_quantity(row), *more, *pair, target]))


def _quantity(row: Row) -> str:
    """Write what is verified, a metric as people write it."""
    name = str(row["variable"])
    symbols = {family.variable: family.symbol for family in FAMILIES.values()}
    k, tau = (row.get(key, np.nan) for key in ("k", "tau"))
    text = symbols.get(name, name)
    text += f"{'' if name in symbols else '@'}{k:g}" if k == k else ""
    return text + (f":{tau:g}" if tau == tau else "")


def _pair(row: Row) -> str:
    """Write the system of a row, or the two of a difference."""
    system, other = row["system"], row["other"]
    return str(system) if pd.isna(other) else f"{system} - {other}"


def _ranks(row: Row) -> str:
    low, high = row["rank_lower"], row["rank_upper"]
    return f"{low}-{high}" if low < high else str(low)


_HIDDEN = Column("", leaves=FILES)
_COLUMNS: dict[str, Column] = {
    "system": _text("system", once=True), "metric": _text("metric", once=True),
    "target": Column("target", lambda row: TARGETS.get(row["target"], ""), KEPT, left=True),
    "group": _text("group"), "question": _text("question"), "coefficient": _text("coefficient"),
    "category": _text("category", 2), "score": _decimals("score", "score", "g", KEPT),
    "estimate": _observed("estimate"), "observed": _observed("observed"),
    "estimate_questions": Column(
        "of questions", _questions_observed, 1,
        "how many have k trials, where not all do; the observed value is theirs.", once=True,
    ),
    "mean": Column(
        "mean", leaves=KEPT,
        meaning="posterior mean, with its standard deviation (sd) and credible interval.",
    ),
    "sd": Column("sd", lambda row: _number(row["sd"], _form(row).strip("+")), 3),
    "ci_lower": Column("{ci} interval", leaves=KEPT),
    "prior_sensitivity": Column(
        "prior sd ratio", lambda row: _number(row["prior_sensitivity"], ".2f"), 4,
        "sd under a weaker prior, divided by the sd; far from 1, a value for k > trials depends "
        "mostly on the prior.",
    ),
    "range_lower": Column(
        "distribution-free range", leaves=1,
        meaning="where k exceeds the trials, the range over all difficulty distributions that "
        "agree with the counts, at the same confidence; the interval assumes families.",
    ),
    "prob_positive": _chance("P(> 0)", "prob_positive", KEPT),
    "shrunk_mean": Column("shrunken", leaves=2),
    "prob_best": _chance("P(best)", "prob_best", KEPT),
    "prob_top3": _chance("P(top 3)", "prob_top3", 4),
    "rank_lower": Column("ranks", _ranks, 2),
    "rank": Column("rank", leaves=KEPT), "tier": Column("tier", leaves=KEPT),
    "prob_greater": _chance("P(better)", "prob_greater", KEPT),
    "observed_accuracy": Column(
        "observed accuracy", leaves=KEPT, meaning="share of all trials that are right."
    ),
    "expected_best": Column(
        "best guess", leaves=KEPT, meaning="expected best accuracy of the guessers."
    ),
    "p_value": Column("p-value", lambda row: _p_value(row["p_value"]), KEPT),
    "prob_exceeds_questions": _chance("P(these)", "prob_exceeds_questions", 2),
    "prob_exceeds_population": _chance(
        "P(like these)", "prob_exceeds_population", KEPT,
        "probability that the accuracy on questions like these exceeds the best guess; P(these): "
        "on these questions.",
    ),
    "prob_beats": _chance(
        "P(run)", "prob_beats", 2, "probability that a new run beats a new best of the guessers.",
    ),
    "selected_mean": Column(
        "if selected", leaves=1,
        meaning="accuracy if the system is itself the best of as many configurations of equal "
        "skill.",
    ),
    "variable": Column("quantity", _quantity, KEPT, left=True),
    "exact_mean": Column("exact", leaves=KEPT), "sampled_mean": Column("sampled", leaves=KEPT),
    "z_mean": Column(
        "z mean", lambda row: _number(row["z_mean"], "+.1f"), 1,
        "difference of the means in Monte Carlo standard errors, and of the sds (of pairs on "
        "questions like these: of correlations); z pit: of the shares of draws below quantiles, "
        "z ends: outside the interval; z draws: of stored draws. Blank: not tested.",
    ),
    **{
        f"z_{name}": _decimals(f"z {name}", f"z_{name}", "+.1f")
        for name in ("sd", "pit", "ends", "draws")
    },
    "rhat": Column("R-hat", leaves=2), "ess": _decimals("ESS", "ess", ".0f", 2),
    "verdict": _text("verdict"),
    **dict.fromkeys((
        "tried_questions", "ci_error", "variance_trial", "variance_question", "monte_carlo_error",
        "sentence",
        "k", "tau", "prob_tie", "prob_ties",
        "prob_beats_error", "expected_loss", "ratio_median", "ratio_lower", "sd_unpaired",
        "mean_system", "mean_other", "band_lower", "declared",
        "smallest_significant", "largest_significant_t", "selected_ci_lower",
        "p_adjusted", "detectable", "detectable_sd", "detectable_end",
    ), _HIDDEN),
}  # fmt: skip
_OF_TABLE: dict[str, dict[str, Column]] = {
    "comparison": {
        "mean": Column("difference", leaves=KEPT, meaning="the first system minus the second."),
        "questions": _HIDDEN, "verdict": _text("verdict", leaves=3),
    },
    "leaderboard": {"questions": _HIDDEN, "trials": _HIDDEN},
    "e_value": {
        "estimate": Column(
            "estimate", lambda row: _number(row["estimate"], _form(row), "-"), KEPT,
            "of a mean or a difference in means, and without a metric of the log odds ratio, with "
            "an interval that holds at all looks; -: no question that is used says anything of it.",
        ),
    },
    "verification": {
        "target": Column(
            "target", lambda row: _VERIFIED_TARGETS.get(row["target"], ""), KEPT,
            "observed: the mean over all subsets of k trials, which was counted again.", left=True,
        ),
    },
    "plan": {
        "trials": _counted("trials each", "trials"),
        **{name: _counted(name, name) for name in ("questions", "total")},
        "cheapest": Column(
            "remark", lambda row: "fewest trials" * row["cheapest"], KEPT, left=True
        ),
        "prob_correct": _chance(
            "P(higher mean)", "prob_correct", KEPT,
            "probability that the system with the higher assumed mean has the higher posterior "
            "mean.",
        ),
        "prob_ahead": _chance(
            "P(ahead)", "prob_ahead", KEPT,
            "probability that the interval of the difference lies on the side of the better "
            "system, which is then declared ahead.",
        ),
        "width": Column("width", leaves=KEPT),
    },
}  # fmt: skip
# Columns of frames that print as tables, the others in the frame alone.
PRINTED = {
    "contrast": "metric target mean sd ci_lower ci_upper prob_positive",
    "e_value": "system other group metric e_value estimate ci_lower ci_upper questions waiting",
    "noise_floor": "system metric trials floor prob_within",
    "criticise": "system check observed expected sd p_value flagged",
    "question_table": "system other group metric question weight trials successes rate score mean "
    "ci_lower ci_upper difference part influence prob_flip suspicious",
    "check_trials": "system check questions effect p_value flagged",
    "tail_exponent": "system prob_ceiling ceiling exponent",
}
_OF_TABLE["group_comparison"] = {**_OF_TABLE["comparison"], "metric": _text("metric")}
_OF_TABLE["groups"] = {"system": _text("system"), "metric": _text("metric")}
_FORMS = {"comparison": "+.3f", "contrast": "+.3f", "group_comparison": "+.3f"}
_OF_COSTS = {metric.label for metric in COSTS}  # shown with significant digits
TITLES = {
    "results": "Results",
    "categories": "Probability to reach a score, or a better one",
    "coefficients": "Coefficients of covariates (logits)",
    "leaderboard": "Leaderboard",
    "contrast": "Sums of systems",
    "gate": "Gate",
    "plan": "Questions needed for {metric}",
    "comparison": "Differences between systems",
    "groups": "Groups of questions",
    "group_comparison": "Differences between systems on groups of questions",
    "random_baseline": "Against the best of {t:g} random guessers",
    "questions": "What each question says",
    "verification": "Closed form against PyMC",
}


def title_of(frame: pd.DataFrame, name: str) -> str:
    """Return the title of a table, with what its attributes say."""
    words = {"t": np.nan, "metric": ""}
    return TITLES.get(name, "").format_map(words | frame.attrs)


TARGET_MEANINGS = {
    "questions": "new trials of exactly these questions.",
    "population": (
        "other questions from the same source; single systems are usually less certain there, "
        "because the choice of the questions is random too."
    ),
    "new_groups": (
        "questions of new groups like these; 'population' means new questions from the same groups."
    ),
}


def shown_columns(frame: pd.DataFrame, name: str) -> dict[str, Column]:
    """Return the columns that a table shows, by the name of the first column that each is of.

    Parameters
    ----------
    frame : pandas.DataFrame
        Its attributes may say ``ci_prob``, and ``rope``: 0 if nobody asked for one; and with
        ``mean_meaning`` or ``estimate_meaning`` more of what a column means.
    name : str
        Of the table.
    """
    by_name = _COLUMNS | _OF_TABLE.get(name, {})
    probability = frame.attrs.get("ci_prob")
    percent = "" if probability is None else f"{100 * probability:g}%"
    columns = {}
    for label in map(str, frame.columns):
        ends = label.removesuffix("_lower")
        paired = ends != label and f"{ends}_upper" in frame
        if label.endswith("_upper") and f"{label.removesuffix('_upper')}_lower" in frame:
            continue
        if label == "other" or (label.endswith("_rope") and not frame.attrs.get("rope", 1.0)):
            continue
        column = by_name.get(label)
        if column is None:
            words = (ends if paired else label).replace("_", " ")
            heading = f"P({words[5:]})" if label.startswith("prob_") else words
            column = Column(f"{heading} interval" if paired else heading)
            if label.startswith("prob_"):
                column = _chance(heading, label)
        if column.write is None and paired:
            column = replace(column, write=_interval(ends))
        if label == "system" and "other" in frame:
            heading = "system" if frame["other"].isna().any() else "pair"
            column = Column(heading, _pair, KEPT, once=column.once, left=True)
        if column.leaves != FILES:
            left = column.left or frame[label].dtype.kind not in "fiub"
            heading = column.heading.replace("{ci}", percent).strip()
            meaning = column.meaning[:-1] + frame.attrs.get(f"{label}_meaning", "") + "."
            columns[label] = replace(
                column,
                heading=heading,
                left=left and not paired,
                meaning=meaning if column.meaning else "",
            )
    return columns


def _interval(ends: str) -> Callable[[Row], str]:
    return lambda row: _ends(row[f"{ends}_lower"], row[f"{ends}_upper"], _form(row))


def written(column: Column, label: str, row: Row) -> str:
    """Write the cell of a row, as text that is printed as it stands."""
    value = row[label]
    if column.write is not None:
        text = column.write(row)
    elif isinstance(value, bool | np.bool_):
        text = "yes" * bool(value)
    elif isinstance(value, float):
        text = _number(value, _form(row) if abs(value) < 1000 else ".4g")
    else:
        text = "" if value is None or value is pd.NA else str(value)
    return printable(text)


def form_of(name: str) -> str:
    """Return the decimals of the numbers of a table."""
    return _FORMS.get(name, ".3f")
