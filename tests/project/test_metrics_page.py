"""The page of metrics runs, has every metric, and every number in its text is computed.

The page ends with a hidden cell that lists ``claims``: pairs of a computed value and the number
that the text states. Every decimal in the text must be among them, so that no number can be written
without being computed.
"""

import re
from pathlib import Path

import pytest

from bayesatk.metrics.grid import FAMILIES

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
CELL = re.compile(r"```\{code-cell\} python\n(.*?)```", re.DOTALL)
NOT_PROSE = re.compile(r"\A---.*?---|```.*?```|`[^`]*`|arXiv:[\d.]+|\]\([^)]*\)", re.DOTALL)
DECIMAL = re.compile(r"(?<![\w.])\d*\.\d\d+")
TOLERANCE = 5.1e-5  # four decimals are printed
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def names() -> dict[str, object]:
    """What the code of the page computes."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    lines = "\n".join(CELL.findall(PAGE.read_text())).splitlines()
    code = "\n".join(line for line in lines if not line.startswith(":tags:"))
    computed: dict[str, object] = {}
    exec(compile(code, str(PAGE), "exec"), computed)
    pyplot.close("all")
    return computed


def test_every_number_in_the_text_is_computed(names) -> None:
    for value, claim in names["claims"]:
        assert float(value) == pytest.approx(claim, abs=TOLERANCE)
    stated = {float(number) for number in DECIMAL.findall(NOT_PROSE.sub(" ", PAGE.read_text()))}
    assert stated <= {claim for _, claim in names["claims"]}


def test_the_table_has_every_metric_with_a_worked_number(names) -> None:
    table = names["table"]
    meanings = {family.meaning: family for family in reversed(FAMILIES.values())}  # one name each
    assert set(table["meaning"]) == set(meanings)
    for row in table.itertuples():
        family = meanings[row.meaning]
        assert row.Index.startswith(f"<code>{family.symbol}")
        assert row.source == family.source or not family.source
        assert re.fullmatch(r"\d\.\d{4}", row.estimate)
        assert re.fullmatch(r"\d\.\d{4}", row.mean)
