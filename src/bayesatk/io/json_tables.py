"""JSON Lines and arrays of records: long tables with named fields."""

from collections.abc import Mapping
from typing import BinaryIO

from bayesatk._tools.messages import Argument
from bayesatk.data.columns import Columns, find_columns, pick_columns
from bayesatk.data.content import Contents
from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.json_stream import decoded, members, parse
from bayesatk.io.logs.record_logs import at, parts_of


def read_lines(file: BinaryIO, columns: Mapping[str, str]) -> Columns:
    """Read one record a line."""
    records = _Records("line", columns)
    with decoded(file) as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                records.add(parse(line, f"line {number}"), number)
    return records.table()


def read_array(
    file: BinaryIO, columns: Mapping[str, str], records_path: str | None = None
) -> Columns:
    """Read an array of records, one at a time: the document, or the part of it that is told."""
    records = _Records("record", columns)
    with decoded(file) as text:
        if records_path is not None:
            for number, (_, record, _) in enumerate(parts_of(text, records_path, {})):
                records.add(record, number)
            return records.table(records_path)
        # Where tools put records that are not the whole document.
        usual_keys = "results performances instances records rows data items examples"
        within = ""
        for key, number, record in members(text, frozenset(usual_keys.split())):
            if not isinstance(number, int) or (key and not isinstance(record, dict)):
                continue
            if key != (within or key):
                raise OutcomeError(
                    f"the records must be in one place; there are some in {within!r} and in "
                    f"{key!r}. Choose: ", Argument("records", within), ".",
                )  # fmt: skip
            within = key
            records.add(record, number)
    return records.table()


def _says(value: object, path: str) -> bool:
    """Whether a field is there; one within a field that is null is null as well."""
    if not isinstance(value, Mapping):
        return value is None
    first, _, inner_path = path.partition(".")
    return path in value or (
        bool(inner_path) and first in value and _says(value[first], inner_path)
    )


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
        # Fields within fields, such as reward_info.reward, are read where they are named.
        self.nested = [name for name in columns.values() if isinstance(name, str) and "." in name]

    def add(self, record: object, number: int) -> None:
        """Append the fields that matter of one record."""
        where = f"{self.word} {number}"
        if not isinstance(record, dict):
            raise OutcomeError(f"{where} must be an object with named fields; got {shown(record)}.")
        nested = (name for name in self.nested if name not in record and _says(record, name))
        fields = (*record, *nested)
        if fields not in self.checked:
            self._check(fields, where)
            self.checked.add(fields)
        self.numbers.append(number)
        for name in self.asked.digests:
            self.asked.add(name, at(record, name))
        for role, name in self.roles.items():
            value = at(record, name)  # one object for each text: a table repeats its labels
            pooled = self.pool.setdefault(value, value) if isinstance(value, str) else value
            self.values[role].append(pooled)

    def _check(self, fields: tuple[str, ...], where: str) -> None:
        if not self.roles:
            self.roles, asked, self.others = pick_columns(fields, self.columns)
            self.values = {role: [] for role in self.roles}
            self.asked = Contents(asked)
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

    def table(self, within: str = "") -> Columns:
        """Return the columns."""
        if not self.numbers:
            raise OutcomeError(
                f"the file must have an array of records{f' at {within}' * bool(within)}, or one a "
                'line; got none. One record is {"question": ..., "trial": ..., "outcome": ...}. If '
                "they are within an object, say where: ", Argument("records", "results"), ".",
            )  # fmt: skip
        return Columns(
            self.roles, self.values, self.word, self.numbers, self.asked.digests, self.others
        )
