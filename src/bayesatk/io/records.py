"""JSON Lines and arrays of records: long tables with named fields."""

from collections.abc import Mapping
from typing import BinaryIO

from bayesatk.data.columns import Columns, find_columns, unused
from bayesatk.data.content import Contents, content_columns
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.json_stream import decoded, members, parse


def read_lines(file: BinaryIO, columns: Mapping[str, str]) -> Columns:
    """Read one record a line."""
    records = _Records("line", columns)
    with decoded(file) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                records.add(parse(line, f"line {number}"), number)
    return records.table()


def read_array(file: BinaryIO, columns: Mapping[str, str]) -> Columns:
    """Read an array of records, one at a time."""
    records = _Records("record", columns)
    with decoded(file) as text:
        for key, number, record in members(text):
            if key or number is None:
                raise OutcomeError(
                    "the file must hold an array of records; got an object. One record is "
                    '{"question": ..., "trial": ..., "outcome": ...}.'
                )
            records.add(record, number)
    return records.table()


class _Records:
    """Records on the way in: the first decides which fields matter, the others must agree."""

    def __init__(self, word: str, columns: Mapping[str, str]) -> None:
        self.word, self.columns = word, columns
        self.roles: dict[str, str] = {}
        self.values: dict[str, list[object]] = {}
        self.numbers: list[int] = []
        self.asked = Contents(())
        self.others: tuple[str, ...] = ()
        self.checked: set[tuple[str, ...]] = set()
        self.pool: dict[str, str] = {}

    def add(self, record: object, number: int) -> None:
        """Append the fields that matter of one record."""
        where = f"{self.word} {number}"
        if not isinstance(record, dict):
            raise OutcomeError(f"{where} must be an object with named fields; got {shown(record)}.")
        fields = tuple(record)
        if fields not in self.checked:
            self._check(fields, where)
            self.checked.add(fields)
        self.numbers.append(number)
        for name in self.asked.digests:
            self.asked.add(name, record.get(name))
        for role, name in self.roles.items():
            value = record[name]  # one object for each text: a table repeats its labels
            kept = self.pool.setdefault(value, value) if isinstance(value, str) else value
            self.values[role].append(kept)

    def _check(self, fields: tuple[str, ...], where: str) -> None:
        if not self.roles:
            self.roles = find_columns(fields, self.columns)
            self.values = {role: [] for role in self.roles}
            self.asked = Contents(content_columns(fields, self.roles, self.columns))
            self.others = unused(fields, self.roles, list(self.asked.digests))
        for name in self.roles.values():
            if name not in fields:
                raise OutcomeError(
                    f"{where} has no field {name!r}, which the first record has. A missing outcome "
                    "is null."
                )
        try:
            roles = find_columns(fields, self.columns)
        except OutcomeError as error:
            raise OutcomeError(f"{where}: {error}") from None
        if roles != self.roles:
            new = [name for role, name in roles.items() if self.roles.get(role) != name]
            raise OutcomeError(
                f"{where} has the field {new[0]!r}, which the first record lacks. Give it to every "
                "record, or rename it."
            )

    def table(self) -> Columns:
        """Return the columns."""
        if not self.numbers:
            raise OutcomeError("the file must hold an array of records, or one a line; got none.")
        return Columns(
            self.roles, self.values, self.word, self.numbers, self.asked.digests, self.others
        )
