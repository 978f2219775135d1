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

from bayesatk.metrics.grid import COST
from bayesatk.reporting.sentences import MANY, has_question_laws
from bayesatk.results.result import Result
from bayesatk.verification.verify import Verification


@dataclass(frozen=True)
class Picture:
    """A plot with its caption. One with a metric is shown while the page shows that metric.

    `narrow` has its panels one below the other, for a page that is no wider than a telephone.
    """

    title: str
    caption: str
    svg: str
    narrow: str
    metric: str = ""


_Plot = tuple[str, Callable[[], Any], str]


def pictures(
    result: Result, ranked: Result, verification: Verification | None, guess: object
) -> list[Picture]:
    """Draw every plot that the result has the numbers for.

    Colours are those of the systems in the order of the data. Panels of single questions have one
    colour, and are in the order of `ranked`, which the tables of the page are of, too: what both
    need of questions is computed once.
    """
    plots = _plots(result, ranked, verification, guess)
    return [Picture(title, *_drawn(plot, title), metric) for title, plot, metric in plots]


def _plots(
    result: Result, ranked: Result, verification: Verification | None, guess: object
) -> Iterator[_Plot]:
    from bayesatk import plots
    from bayesatk.plots.curves import targets_of_costs

    for symbol in _curves(result):
        yield f"{symbol}k against k", partial(plots.plot_curve, result, symbol), ""
    yield "Systems", lambda: plots.plot_systems(result), ""
    yield from _of_metrics(result)
    if COST in result.costs and targets_of_costs(result):
        yield "Score and cost", lambda: plots.plot_cost(result), ""
    for title, plot in _of_questions(ranked):
        yield title, plot, ""
    if result.has("random_baseline") and guess is not None:
        yield "Random baseline", lambda: plots.plot_baseline(result, guess), ""
    if verification is not None:
        yield "Verification", lambda: plots.plot_verification(verification), ""


def _of_metrics(result: Result) -> Iterator[_Plot]:
    """Yield the plots of one metric: of every one that the page can show, if that are not many."""
    labels = [metric.label for metric in result.metrics]
    all_shown = len(labels) <= 4 and len(result.systems) <= 10
    for label in labels if all_shown else labels[:1]:
        # The only ones that there are stay, whatever the page shows.
        shown_with = label if all_shown and len(labels) > 1 else ""
        for title, plot in _of_metric(result, label):
            yield title, plot, shown_with


def _of_metric(result: Result, label: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    from bayesatk import plots

    if result.grouping is not None and len(result.systems) <= 6:
        yield (
            f"Groups of questions in {label}",
            partial(plots.plot_systems, result, label, by="group"),
        )
    if result.has("comparison") and _shared(result):
        title = f"Differences in {label} on questions like these"
        yield title, partial(plots.plot_difference, result, label)
        # The picture of the ranks of 45 systems takes 1.5 MB.
        if 2 < len(result.systems) <= 20:
            title = f"Ranks in {label} on questions like these"
            yield title, partial(plots.plot_ranks, result, label)


def _of_questions(result: Result) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the plots of single questions, which need right and wrong."""
    from bayesatk import plots

    if not result.answers("shrinkage_plot"):
        return
    systems = result.systems[:MANY]
    if has_question_laws(result):
        yield "Posterior of every question", lambda: plots.plot_questions(result, systems)
    if not result.sampled or "p" in result.posterior:
        title = "Shrinkage of single questions by pooling"
        yield title, lambda: plots.plot_shrinkage(result, systems)
    if "icc" in result.posterior and result.answers("difficulty_plot"):
        yield "How difficult the questions are", lambda: plots.plot_difficulty(result, systems)


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


def _drawn(plot: Callable[[], Any], title: str) -> tuple[str, str, str]:
    """Return the caption of a plot, and the plot without a title: as it is, and narrow."""
    import matplotlib
    from matplotlib import pyplot

    # A browser has the fonts that are missing here, and the text stays text: Verdana is as wide.
    rc: Any = {
        "svg.fonttype": "none",
        "legend.facecolor": "none",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Verdana"],
    }
    with matplotlib.rc_context(rc), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        collection = plot()
        figure = collection.viz["figure"].item()
        figure.suptitle("")
        caption = " ".join(collection.words[1:])
        label, shaded = escape(f"{title}. {caption}"), "cell" in collection.viz.children
        svg = _svg(figure, title, label, shaded)
        _stack(figure, shaded)
        narrow = _svg(figure, f"{title}, narrow", label, shaded)
        pyplot.close(figure)
    return caption, svg, narrow


def _stack(figure: Any, shaded: bool) -> None:
    """Put the panels of a figure below each other, each with its labels, and the legend below.

    A figure of shaded cells stays wide enough for what is written in them.
    """
    panels = [panel for panel in figure.axes if panel.axison]
    for panel in {*figure.axes} - {*panels}:
        panel.remove()  # an empty one would keep its place
    width = max(_NARROW, 1.8 + 0.3 * len(panels[0].get_xticks()) * shaded)
    heights = [panel.get_position().height * figure.get_figheight() for panel in panels]
    row_starts = [next(first for first in panels if _row(first) == _row(panel)) for panel in panels]
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for panel, first in zip(panels, row_starts, strict=True):
        label = panel.get_xlabel() or panels[-1].get_xlabel()
        panel.set_xlabel(label.replace(" (", "\n(") if len(label) > _LONG else label)
        panel.set_ylabel(panel.get_ylabel() or first.get_ylabel())
        names, own_names = (
            [text.get_text() for text in drawn.get_yticklabels()] for drawn in (first, panel)
        )
        if any(names) and (not any(own_names) or max(map(len, names)) > _LONG):  # of rows
            panel.set_yticks(first.get_yticks(), [_in_two(name) for name in names])
        panel.tick_params(labelbottom=True, labelleft=True)
    for row, panel in enumerate(panels):
        panel.set_subplotspec(grid[row])
    below = 0.0
    for legend in [*figure.legends]:
        names = [text.get_text() for text in legend.get_texts()]
        legend.remove()
        figure.legend(
            legend.legend_handles,
            names,
            title=legend.get_title().get_text(),
            loc="outside lower center",
        )
        below += 0.5 + 0.2 * len(names)
    figure.set_size_inches(width, sum(heights) + _BETWEEN * len(panels) + below)


_NARROW, _BETWEEN = 4.3, 0.75  # inches: of a figure for a telephone; of titles and ticks of a panel
_LONG = 28  # characters of a label that takes two lines there


def _in_two(name: str) -> str:
    """Return the name of a row in two lines, if it is that of a difference."""
    return name.replace(" \N{MINUS SIGN} ", " \N{MINUS SIGN}\n") if len(name) > _LONG else name


def _row(panel: Any) -> int:
    return int(panel.get_subplotspec().rowspan.start)


def _svg(figure: Any, salt: str, label: str, shaded: bool) -> str:
    """Return a figure without a background, whose black is the colour of the text around it.

    Shades of cells are those of the page.
    """
    import matplotlib

    from bayesatk.plots.canvas import COLORS

    target = StringIO()
    # Names of clips differ between pictures: one that is not shown lends no clip to others.
    with matplotlib.rc_context({"svg.hashsalt": salt}):
        # Matplotlib measures text slowly for SVG, and draws twice where it makes a layout.
        layout = figure.get_layout_engine()
        layout.execute(figure)
        figure.set_layout_engine(None)
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None})
        figure.set_layout_engine(layout)
    text = re.sub(r"^.*?(?=<svg)", "", target.getvalue(), flags=re.DOTALL)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    if shaded:
        text = _shaded(text)
    text = text.replace(COLORS[0].lower(), "var(--blue)")  # which is lighter on a dark page
    black = r"#([0-6][0-9a-f])\1\1\b"  # and dark grey
    text = re.sub(black, "currentColor", text, flags=re.IGNORECASE)
    # Text of 10 points keeps 11 pixels where the page is narrower than the plot, which scrolls.
    width = float(re.search(r'width="([\d.]+)pt"', text)[1]) * 96 / 72  # type: ignore[index]
    size = f'style="min-width: {0.83 * width:.0f}px"'
    return text.replace("<svg ", f'<svg {size} role="img" aria-label="{label}" ', 1)


def _shaded(text: str) -> str:
    """Return SVG whose colours of cells are shades of the page."""
    return re.sub(r"fill: #([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})(?=[;\"])", _shade, text)


def _shade(match: re.Match[str]) -> str:
    """Return a colour between white and night blue as a share of the page's own shade."""
    red, green, blue = (int(channel, 16) for channel in match.groups())
    if red == 255:  # white stands on shades
        return "fill: var(--paper)"
    if red == green == blue < 250:  # a grey is ink; near white it is the shade of a small share
        return match[0]
    share = (255 - red) / 247
    return f"fill: var(--shade); fill-opacity: {share:.3f}"
