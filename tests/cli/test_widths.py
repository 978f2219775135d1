"""Tables at the widths of terminals, and in a pipe: names and the numbers asked for are whole."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import bayesatk as bk
from bayesatk.cli.terminal import print_result, print_tables
from bayesatk.results.views import cell_width, view

NAMES = ["provider/claude-opus-base-2026", "provider/claude-opus-tuned-v2", "gpt 漢字-mini"]
WIDTHS = [80, 90, 100, 110, 120, None]


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(2)
    runs = {name: rng.binomial(1, 0.3 + 0.2 * i, (9, 3)) for i, name in enumerate(NAMES)}
    fit = bk.evaluate(runs, "pass@1,4", pooling="complete", rng=1)
    fit = bk.leaderboard(bk.compare(fit, rope=0.05))
    return bk.guessing.random_baseline(fit, 0.25, 5, rng=1)


def _printed(show, width, *shown) -> str:
    file = StringIO()
    console = Console(
        file=file,
        width=width or 160,
        force_terminal=width is not None,
        no_color=True,
        highlight=False,
    )
    show(console, *shown)
    text = file.getvalue()
    assert "\x1b" not in text
    assert "\u2026" not in text
    if width is not None:
        assert max(map(cell_width, text.splitlines())) <= width
    return text


@pytest.mark.parametrize("width", WIDTHS)
def test_names_and_intervals_are_whole_at_every_width(fit, width) -> None:
    results, board, pairs = (
        bk.table(fit, name) for name in ("results", "leaderboard", "comparison")
    )
    text = _printed(print_tables, width, results, board, pairs)
    for row in [*results.to_dict("records"), *board.to_dict("records")]:
        assert row["system"] in text
        assert f"[{row['ci_lower']:.3f}, {row['ci_upper']:.3f}]" in text
    for row in pairs.to_dict("records"):
        assert f"{row['system']} - {row['other']}" in text
        assert f"[{row['ci_lower']:+.3f}, {row['ci_upper']:+.3f}]" in text
    assert all(f"{mean:.3f}" in text for mean in results["mean"])
    headings = ("P(best)", "observed", "tier", "P(better)", "difference")
    assert all(heading in text for heading in headings)
    heading = next(line for line in text.splitlines() if "observed" in line)
    assert heading.split()[-1] == "range"  # the widest have left, not what was asked
    if width is None:
        assert "Left out" not in text
        assert "prior sd ratio" in heading
    text = _printed(print_result, width, fit)
    assert "best of 5 random guessers" in text
    for row in bk.table(fit).to_dict("records"):
        assert row["system"] in text
        assert f"{row['observed_accuracy']:.3f}" in text


@given(
    st.lists(st.text(min_size=1, max_size=70), min_size=1, max_size=4, unique=True),
    st.integers(30, 160),
)
def test_whatever_systems_are_called_lines_keep_the_width_and_numbers_are_whole(
    names, width
) -> None:
    frame = pd.DataFrame(
        {
            "system": names,
            "metric": "pass@1",
            "mean": 0.123,
            "sd": 0.045,
            "ci_lower": 0.1,
            "ci_upper": 0.2,
            "prior_sensitivity": 1.0,
        }
    )
    shown = view(frame, "results")
    for line in shown.text(width).splitlines():
        assert cell_width(line) <= width or line.strip() in "\n".join(row[0] for row in shown.rows)
    assert shown.text(width).count("[0.100, 0.200]") == len(names)


def test_a_table_says_the_same_in_python_and_in_the_shell(fit) -> None:
    assert view(bk.table(fit)).text() in str(bk.table(fit))
    assert view(bk.table(fit)).text() in _printed(print_result, None, fit)
