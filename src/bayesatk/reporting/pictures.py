"""The plots of a report, as SVG that takes the colours of the page."""

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from io import StringIO
from typing import Any

import numpy as np

from bayesatk.reporting.sentences import MANY, has_question_laws
from bayesatk.results.result import Result
from bayesatk.verification.verify import Verification


@dataclass(frozen=True)
class Picture:
    """A plot with its caption; a heat map keeps its paper, on which its colours were chosen.

    A picture with a metric is shown while the page shows that metric.
    """

    title: str
    caption: str
    svg: str
    paper: bool
    metric: str = ""


def pictures(result: Result, verification: Verification | None, guess: object) -> list[Picture]:
    """Draw every plot that the result has the numbers for."""
    return [
        Picture(
            title, caption, _svg(plot, f"{title}. {caption}"), title.startswith("Ranks"), metric
        )
        for title, caption, plot, metric in _plots(result, verification, guess)
    ]


_Plot = tuple[str, str, Callable[[], Any], str]


def _plots(result: Result, verification: Verification | None, guess: object) -> Iterator[_Plot]:
    from bayesatk import plots

    for symbol in _curves(result):
        yield (
            f"{symbol}k against k",
            "A band contains the whole curve of its system. Left: these questions; right: "
            "questions like these.",
            partial(plots.plot_curve, result, symbol),
            "",
        )
    yield "Systems", "Posterior mean and intervals.", lambda: plots.plot_systems(result), ""
    yield from _of_metrics(result)
    yield from _of_questions(result)
    if result.has("random_baseline") and guess is not None:
        caption = "Distribution of the accuracy of the best guesser, and accuracies of systems."
        yield "Random baseline", caption, lambda: plots.plot_baseline(result, guess), ""
    if verification is not None:
        caption = "Differences in Monte Carlo standard errors; those beyond the lines disagree."
        yield "Verification", caption, lambda: plots.plot_verification(verification), ""


def _of_metrics(result: Result) -> Iterator[_Plot]:
    """Yield the plots of one metric: of every one that the page can show, if that are not many."""
    labels = [metric.label for metric in result.metrics]
    all_shown = len(labels) <= 4 and len(result.systems) <= 10
    for label in labels if all_shown else labels[:1]:
        # The only ones that there are stay, whatever the page shows.
        shown_with = label if all_shown and len(labels) > 1 else ""
        for title, caption, plot in _of_metric(result, label):
            yield title, caption, plot, shown_with


def _of_metric(result: Result, label: str) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    from bayesatk import plots

    if result.grouping is not None and len(result.systems) <= 6:
        yield (
            f"Groups of questions in {label}",
            "Posterior mean and intervals of every group, hardest on top.",
            partial(plots.plot_systems, result, label, by="group"),
        )
    if result.has("comparison") and _shared(result):
        title = f"Differences in {label} on questions like these"
        yield title, "The first minus the second.", partial(plots.plot_difference, result, label)
        # The picture of the ranks of 45 systems takes 1.5 MB.
        if 2 < len(result.systems) <= 20 and result.group("ranks").attrs["ranked_on"]:
            title = f"Ranks in {label} on questions like these"
            yield title, "Probability of every rank.", partial(plots.plot_ranks, result, label)


def _of_questions(result: Result) -> Iterator[_Plot]:
    """Yield the plots of single questions, which need right and wrong."""
    from bayesatk import plots

    if not result.answers("shrinkage_plot"):
        return
    systems = result.systems[:MANY]
    if has_question_laws(result):
        yield (
            "Posterior of every question",
            "Posterior mean and interval of every question's success probability, the hardest "
            "questions first; diamonds: questions that weaker systems solve.",
            lambda: plots.plot_questions(result, systems),
            "",
        )
    if not result.sampled or "p" in result.posterior:
        yield (
            "Shrinkage of single questions by pooling",
            "Posterior mean of every question's success probability against its observed rate.",
            lambda: plots.plot_shrinkage(result, systems),
            "",
        )
    if "icc" in result.posterior and result.answers("difficulty_plot"):
        yield (
            "How difficult the questions are",
            "Distribution of success probabilities over questions, with its uncertainty; steps: "
            "the observed rates, which vary more by the noise of trials.",
            lambda: plots.plot_difficulty(result, systems),
            "",
        )


def _shared(result: Result) -> bool:
    """Whether any two systems tried the same question."""
    shared = result.group("comparison")["shared_questions"].values
    return bool((np.triu(shared, 1) > 0).any())


def _curves(result: Result) -> list[str]:
    """Return the families that the result has at several ks, and no tau."""
    ks: dict[str, set[int]] = {}
    for metric in result.metrics:
        if metric.family.has_k and metric.tau is None:
            ks.setdefault(metric.family.symbol, set()).add(metric.k)
    return [symbol for symbol, family_ks in ks.items() if len(family_ks) > 1]


def _svg(plot: Callable[[], Any], label: str) -> str:
    """Draw a plot without a background, its black as the colour of the text around it."""
    import matplotlib
    from matplotlib import pyplot

    target = StringIO()
    # A browser has the fonts that are missing here, and the text stays text.
    # Names of clips differ between pictures: one that is not shown lends no clip to others.
    rc: Any = {"svg.fonttype": "none", "svg.hashsalt": label, "font.family": "sans-serif"}
    rc |= {"legend.facecolor": "none"}
    with matplotlib.rc_context(rc), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        collection = plot()
        figure = collection.viz["figure"].item()
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
        pyplot.close(figure)
    text = re.sub(r"^.*?(?=<svg)", "", target.getvalue(), flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    black = r"#([0-6][0-9a-f])\1\1\b"  # and dark grey
    text = re.sub(black, "currentColor", text, flags=re.IGNORECASE)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
