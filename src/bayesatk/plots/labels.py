"""What plots call things, and how text from outside is made safe to draw."""

import html
import textwrap
from collections.abc import Iterable, Sequence

from bayesatk._tools.words import probability_words
from bayesatk.metrics.grid import Metric
from bayesatk.results.schema import TARGET_NAMES as TARGET_NAMES


def estimand(metric: Metric, over_k: bool = False) -> str:
    """Name a metric with its unit, as an axis label.

    Examples
    --------
    >>> from bayesatk.metrics.grid import parse
    >>> estimand(parse("pass^4")[0]), estimand(parse("g-pass@8:0.5")[0], over_k=True)
    ('pass^4 (probability)', 'g-pass@k:0.5 (probability)')
    """
    label = metric.label
    if over_k:
        label = metric.family.symbol + "k" + ("" if metric.tau is None else f":{metric.tau:g}")
    return f"{label} ({metric.family.unit})"


def interval_name(probability: float, kind: str) -> str:
    """Say which interval is drawn.

    Examples
    --------
    >>> interval_name(0.95, "eti")
    '95% equal-tailed interval'
    """
    words = {"eti": "equal-tailed", "hdi": "highest-density"}
    return f"{100 * probability:g}% {words[kind]} interval"


def probability_text(value: float, error: float = 0.0) -> str:
    """Write that a quantity has a probability, with the digits that its error leaves.

    Examples
    --------
    >>> [probability_text(p) for p in (0.99996, 0.25, 0.0)]
    ['> 0.999', '= 0.250', '< 0.001']
    >>> probability_text(0.6243, 0.008)
    '≈ 0.62'
    """
    words = probability_words(value, error)
    if "±" in words:
        return f"≈ {words.partition(' ')[0]}"
    return words if words[0] in "<>" else f"= {words}"


def shortened(labels: Iterable[object], width: int = 30) -> list[str]:
    """Return labels on one line, cut in the middle where long, and still all different.

    Examples
    --------
    >>> shortened(["a" * 20 + "1", "a" * 20 + "2"], width=9)
    ['aaaa…aaa1', 'aaaa…aaa2']
    >>> shortened(["a" * 20, "a" * 21], width=5)
    ['aa…aa', 'aa…aa #2']
    """
    short: list[str] = []
    for label in labels:
        visible = "".join(
            character if character.isprintable() else "" if ord(character) > 127 else " "
            for character in str(label)
        )
        text = " ".join(visible.split()) or "(unnamed)"
        if len(text) > width:
            head = width // 2
            text = text[:head] + "…" + text[len(text) - (width - head - 1) :]
        same = [earlier for earlier in short if earlier == text or earlier.startswith(f"{text} #")]
        short.append(f"{text} #{len(same) + 1}" if same else text)
    return short


def markup(text: str, backend: str, as_html: bool = False) -> str:
    r"""Return text that a backend draws as it stands: no formula, no tag.

    Parameters
    ----------
    text : str
        May have several lines.
    backend : str
    as_html : bool
        Whether it goes where Bokeh puts HTML.

    Examples
    --------
    >>> markup("$x_1^", "matplotlib"), markup("<b> & $", "plotly")
    ('\\$x_1^', '&lt;b&gt; &amp; &#36;')
    """
    if backend == "matplotlib":
        return text.replace("$", r"\$")
    if backend == "plotly" or as_html:
        safe = html.escape(text, quote=False).replace("$", "&#36;").replace("\\", "&#92;")
        return safe.replace("\n", "<br>")
    # Bokeh reads these as the start of a formula.
    for start in ("$$", r"\(", r"\[", r"\]", r"\)"):
        text = text.replace(start, start[0] + "\u200b" + start[1])
    return text


def wrapped(lines: Sequence[str], width: int) -> str:
    """Join lines, each broken at blanks to at most so many characters."""
    return "\n".join(
        piece
        for line in lines
        for piece in textwrap.wrap(line, max(width, 20), break_on_hyphens=False)
    )
