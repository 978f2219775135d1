"""What page.js runs in Pyodide, and tests run in CPython: a table and a curve from a file."""

import json
import re
from html import escape

import bayesatk as bk

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
WIDTH, HEIGHT, EDGE = 560, 340, 40


def evaluate_file(path: str) -> str:
    """Return card, table, sentences and curve of a file, or its error, as JSON."""
    try:
        data = bk.load(path)
        most = int(data.trials.max())
        ks = sorted({2**i for i in range(most.bit_length())} | {most})
        metrics = "pass@" + ",".join(map(str, ks)) if data.binary else "bayes"
        fit = bk.evaluate(data, metrics, rng=1)
        sentences = []
        if 1 < len(data.systems) <= 6:
            compared = bk.compare(bk.evaluate(data, metrics.split(",")[0], rng=1), rng=1)
            pairs = bk.comparison_table(compared)
            sentences = pairs[pairs["target"] == "questions"]["sentence"].tolist()
    except (ValueError, OSError) as error:
        return json.dumps({"error": str(error)})
    table = re.sub(r' style="[^"]*"', "", bk.table(fit)._repr_html_())  # which the page forbids
    shown = {
        "card": str(data), "table": table, "sentences": sentences,
        "curve": curve(bk.table(fit).to_dict("records"), ks) if data.binary and most > 1 else "",
    }  # fmt: skip
    return json.dumps(shown)


def curve(rows: list[dict], ks: list[int]) -> str:
    """Draw pass@k of these questions against k, with its 95% intervals, as SVG."""

    def point(k: int, value: float) -> str:
        x = EDGE + (WIDTH - 2 * EDGE) * ks.index(k) / (len(ks) - 1)
        return f"{x:.1f},{HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * value:.1f}"

    marks = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = point(ks[0], value).split(",")
        marks.append(f'<text x="{float(x) - 6}" y="{y}" text-anchor="end">{value:g}</text>')
    for k in ks:
        x, y = point(k, 0.0).split(",")
        marks.append(f'<text x="{x}" y="{float(y) + 18}" text-anchor="middle">{k}</text>')
    systems = list(dict.fromkeys(row["system"] for row in rows))
    for position, system in enumerate(systems):
        colour = COLOURS[position % len(COLOURS)]
        mine = [row for row in rows if row["system"] == system and row["target"] == "questions"]
        of_k = sorted((int(row["metric"].partition("@")[2]), row) for row in mine)
        middle = " ".join(point(k, row["mean"]) for k, row in of_k)
        low = [point(k, row["ci_lower"]) for k, row in of_k]
        high = [point(k, row["ci_upper"]) for k, row in reversed(of_k)]
        marks += [
            f'<polygon points="{" ".join(low + high)}" fill="{colour}" fill-opacity="0.2"/>',
            f'<polyline points="{middle}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<text x="{WIDTH - EDGE}" y="{HEIGHT - EDGE - 8 - 16 * position}" text-anchor="end" '
            f'fill="{colour}">{escape(str(system))}</text>',
        ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="12" fill="currentColor">'
        "<title>pass@k of these questions against k, with 95% intervals</title>"
        f"{''.join(marks)}</svg>"
    )
