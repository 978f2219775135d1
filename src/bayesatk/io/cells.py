"""Cells of CSV files that a spreadsheet would run as formulas: written so that it shows them."""

import re
from typing import Any

# What spreadsheets take for the beginning of a formula (OWASP, CSV injection), behind apostrophes.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def defused(cell: Any) -> Any:
    """Return a cell with an apostrophe before what would be a formula; numbers stay as they are.

    No two cells become the same, and `restored` is the inverse.

    Examples
    --------
    >>> defused("=1+1"), defused("-1.5"), defused("'=1"), defused("a=1")
    ("'=1+1", '-1.5', "''=1", 'a=1')
    """
    dangerous = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if dangerous else cell


def restored(cell: str) -> str:
    """Return the text that `defused` was given.

    Examples
    --------
    >>> restored("'=1+1"), restored("'quoted'"), restored("-1.5")
    ('=1+1', "'quoted'", '-1.5')
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell
