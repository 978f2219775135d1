"""Whether a column differs between the rows of a question by design, or by chance.

Conditions and suites of questions are set by whoever ran the evaluation: each value has as many
rows of a question as it has of others. Marks, answers, errors and times come as they come.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import chain

# Rows by value of a column, in each cell: by system and question.
Cells = Mapping[tuple[tuple[str, ...], tuple[str, ...]], Counter[str]]


def tells_rows_apart(cells: Cells) -> bool:
    """Return whether hardly two rows of a cell have one value, of values that come again elsewhere.

    If values were dealt to the rows at random, `n` rows of a cell would have
    ``n (n - 1) / 2 * sum(p**2)`` pairs with one value, where `p` are the shares of the values. At
    least 5 are expected in all cells, and at most a tenth of them are found.

    Examples
    --------
    >>> rows = {(("m",), (str(q),)): Counter(["math", "law"]) for q in range(12)}  # 12/2 expected
    >>> tells_rows_apart(rows), tells_rows_apart({cell: Counter("aab") for cell in rows})
    (True, False)
    """
    shares = _total(cells)
    rows = shares.total()
    probability = sum((number / rows) ** 2 for number in shares.values())
    expected = probability * sum(map(_pairs, (own.total() for own in cells.values())))
    found = sum(map(_pairs, chain.from_iterable(own.values() for own in cells.values())))
    least_expected, most_found = 5.0, 0.1
    return expected >= least_expected and found <= most_found * expected


def _pairs(number: int) -> int:
    """Return how many pairs there are of a number of rows."""
    return number * (number - 1) // 2


def _total(cells: Cells) -> Counter[str]:
    """Return the rows of all cells by value."""
    return sum(cells.values(), Counter[str]())


def is_crossed(cells: Cells, least_cells: int) -> bool:
    """Return whether several values have several rows of a cell each, as many as of other cells.

    So many rows are typical that most cells of the system have. They must be typical of 70% of the
    values in cells of several values, which are a fifth of all cells and on average `least_cells`
    for each value of a system, and of 70% in the others: if values are dealt at random, those that
    are alone in a cell have more rows than beside others.

    Examples
    --------
    >>> suites = {(("m",), (str(q),)): Counter({"math": 3, "law": 3}) for q in range(4)}
    >>> marks = [Counter({"0": 4}), Counter({"0": 3, "1": 1}), Counter({"0": 1, "1": 3})] * 4
    >>> is_crossed(suites, 4), is_crossed({(("m",), (str(q),)): own
    ...                                    for q, own in enumerate(marks)}, 4)
    (True, False)
    """
    frequency: dict[object, Counter[int]] = defaultdict(Counter)
    for (system, _), rows in cells.items():
        for value, number in rows.items():
            frequency[system, value][number] += 1
    typical = {key: numbers.most_common(1)[0][0] for key, numbers in frequency.items()}
    several, rows_of_several, repeated = 0, 0, 0
    is_typical: dict[bool, list[bool]] = {True: [], False: []}  # in cells of several values
    for (system, _), rows in cells.items():
        if rows.total() > 1:
            repeated += 1
            several += len(rows) > 1
            rows_of_several += rows.total() * (len(rows) > 1)
            is_typical[len(rows) > 1] += [
                number == typical[system, value] for value, number in rows.items()
            ]
    nearly_all, least_share, several_rows = 0.7, 0.2, 1.5
    values = len(is_typical[True])  # of all cells of several values together
    return (
        values >= least_cells * len(typical)
        and several >= least_share * repeated
        and rows_of_several >= several_rows * values
        and all(sum(found) >= nearly_all * len(found) for found in is_typical.values())
    )
