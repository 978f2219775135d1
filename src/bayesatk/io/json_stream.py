"""Parse JSON documents of any size one value at a time.

Evaluation logs are often one large JSON document, and they write NaN, which streaming parsers
refuse. So the decoder of the standard library is given a window of the text, which grows until it
holds the next value.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, TextIO

from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.sources import BoundedText, check_objects, max_value_size, too_large

_READ_ERRORS = (ValueError, RecursionError)  # of json, of text encodings, of very long integers
_MIN_CHUNK = 1 << 20  # characters that are read at once
_WHITE_SPACE = re.compile(r"[ \t\r\n]*")
Json = dict[str, Any]  # a JSON object
Placed = tuple[str, Any, Any]  # a part of a document: its place, its key or number, its value


def object_with_distinct_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object, or refuse a repeated key, of which one value would be lost."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise _repeated_key(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return record


def _repeated_key(key: str) -> OutcomeError:
    return OutcomeError(f"the field {shown(key)} occurs twice in one object. Remove one.")


def parse_json(text: str | bytes, where: str) -> Any:
    """Return the JSON value of a text; refuse large texts and repeated keys."""
    if len(text) > max_value_size():
        raise too_large(where, max_value_size())
    if len(text) > _MIN_CHUNK:
        check_objects(text, where)
    try:
        return json.loads(text, object_pairs_hook=object_with_distinct_keys)
    except OutcomeError as error:
        raise OutcomeError(f"{where}: {error}") from None
    except _READ_ERRORS as error:
        raise OutcomeError(f"{where} must be JSON; {error}. Check how it was written.") from None


def members(stream: TextIO, streamed: frozenset[str] = frozenset()) -> Iterator[Placed]:
    """Yield the parts of a document as (key, position, value); refuse repeated keys.

    Elements of an array are yielded as ``("", number, value)`` and members of an object as
    ``(key, None, value)``. If a key is in `streamed`, the parts of its array or object are yielded
    one by one as ``(key, number or key of the part, value)``.

    Examples
    --------
    >>> import io
    >>> list(members(io.StringIO('{"n": 1, "samples": [4, NaN]}'), frozenset({"samples"})))
    [('n', None, 1), ('samples', 0, 4), ('samples', 1, nan)]
    """
    window = _Window(stream)
    try:
        if window.peek() not in ("[", "{"):
            start = window.peek()
            raise ValueError(f"it begins with {start!r}" if start else "it is empty")
        for key, value in window.parts(streamed):
            if value is _STREAMED:
                yield from ((key, position, member) for position, member in window.parts())
            else:
                yield ("", key, value) if isinstance(key, int) else (key, None, value)
        if window.peek():
            raise ValueError("something follows the document")
    except OutcomeError:
        raise
    except _READ_ERRORS as error:
        raise OutcomeError(
            f"the file must be one JSON array or object; {error}. Check how it was written, and "
            "whether it is complete."
        ) from None


@contextmanager
def decoded(file: BinaryIO, newline: str | None = None) -> Iterator[TextIO]:
    """Read a binary file as UTF-8 text, with lines within the budget, and leave it open."""
    text = BoundedText(file, encoding="utf-8-sig", newline=newline)
    try:
        yield text
    finally:
        text.detach()


def value_at(value: object, path: str) -> Any:
    """Return the value at a dotted path, None if there is none; ``a[].b`` is a list of values.

    Examples
    --------
    >>> record = {"info": {"llm": "m"}, "a.b": 1, "infos": [{"r": 1}, {"r": 0}]}
    >>> [value_at(record, path) for path in ("info.llm", "a.b", "infos[].r", "c")]
    ['m', 1, [1, 0], None]
    """
    if path.startswith("[]."):
        return (
            [value_at(element, path[3:]) for element in value] if isinstance(value, list) else None
        )
    if not isinstance(value, dict):
        return None
    if path in value:
        return value[path]
    for end in _name_ends(path):
        name, inner_path = path[:end], path[end:].lstrip(".")
        if name in value and (inner := value_at(value[name], inner_path)) is not None:
            return inner
    return None


def _name_ends(path: str) -> list[int]:
    """Return the positions where a name in a path may end: at a dot, or before ``[]``."""
    return [mark.start() for mark in re.finditer(r"\.|\[\]", path)]


def has_field(fields: object, path: str) -> bool:
    """Return whether a path of fields exists, also with the value null.

    ``a|b`` stands for one of two paths, ``*`` for the first key, ``[]`` for a list.
    """
    if "|" in path:
        return any(has_field(fields, alternative) for alternative in path.split("|"))
    if not isinstance(fields, dict):
        return path == "[]" and isinstance(fields, list)
    if path in fields:
        return True
    first, _, inner_path = path.partition(".")
    if first == "*":
        return has_field(next(iter(fields.values()), None), inner_path)
    return bool(inner_path) and has_field(fields.get(first), inner_path)


def parsed_lines(file: BinaryIO, max_lines: int | None = None) -> Iterator[tuple[int, Any]]:
    """Yield number and value of the lines of JSON Lines that are not blank."""
    with decoded(file) as lines:
        for number, line in enumerate(islice(lines, max_lines), start=1):
            if line.strip():
                yield number, parse_json(line, f"line {number}")


def placed_records(text: TextIO, records: str, head: Json) -> Iterator[Placed]:
    """Yield place, key and value of the records of a document; put its other fields into `head`."""
    if records == ".":
        head |= {key: value for key, _, value in members(text)}
        yield "the document", None, head
        return
    within, _, inner = records.partition(".")
    for key, position, value in members(text, frozenset(within.split("|")) - {""}):
        if position is None:
            head[key] = value
        elif not inner:
            yield f"{key or 'record'} {shown(position, 40)}", position, value
        elif position == inner:
            parts = value if isinstance(value, list) else [value]
            yield from (
                (f"{inner} {number}", number, record) for number, record in enumerate(parts)
            )
        else:
            head[str(position)] = value


_STREAMED = object()


class _Window:
    """A window of a text, and the position in it up to which the text has been read."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.text, self.place = stream, "", 0
        self.longest = max_value_size()
        self.decode = json.JSONDecoder(object_pairs_hook=object_with_distinct_keys).raw_decode

    def more(self) -> bool:
        """Extend the window and drop what has been read; return False at the end of the text."""
        held = len(self.text) - self.place
        if held > self.longest:
            raise too_large("one value", self.longest)
        # Doubling the window keeps the work linear in the length of the text.
        added_text = self.stream.read(max(held, _MIN_CHUNK))
        self.text, self.place = self.text[self.place :] + added_text, 0
        if len(self.text) > 2 * _MIN_CHUNK:
            check_objects(self.text, "the values read at once")
        return bool(added_text)

    def peek(self) -> str:
        """Return the next character that is not white space; "" at the end."""
        while True:
            self.place = _WHITE_SPACE.match(self.text, self.place).end()  # type: ignore[union-attr]
            if self.place < len(self.text):
                return self.text[self.place]
            if not self.more():
                return ""

    def take(self, expected: str) -> str:
        """Step over the next character, which must be one of the expected ones, and return it."""
        character = self.peek()
        if not character or character not in expected:
            got = repr(character) if character else "the end"
            raise ValueError(f"expected {' or '.join(map(repr, expected))}, got {got}")
        self.place += 1
        return character

    def value(self) -> Any:
        """Return the next value."""
        max_token = 16  # characters of a literal or escape, or of a number's end, that may be cut
        self.peek()
        while True:
            try:
                value, end = self.decode(self.text, self.place)
            except json.JSONDecodeError as error:
                near_end = error.pos > len(self.text) - max_token
                if (near_end or error.msg.startswith("Unterminated")) and self.more():
                    continue
                raise ValueError(f"{error.msg} at character {error.pos} of a part") from None
            length = end - self.place
            if end > len(self.text) - max_token and self.more():
                continue  # the number may be longer
            self.place += length
            return value

    def parts(self, streamed: frozenset[str] = frozenset()) -> Iterator[tuple[Any, Any]]:
        """Yield number or key and value of every part of the next array or object.

        The value of a streamed key is `_STREAMED` if it has parts, which are still to be read.
        """
        opening = self.take("[{")
        closing = "]" if opening == "[" else "}"
        keys: set[str] = set()
        key: Any = -1
        separator = self.take(closing) if self.peek() == closing else ","
        while separator == ",":
            if opening == "[":
                key += 1
            elif self.peek() != '"':
                raise ValueError("a key must be text")
            else:
                key = self.value()
                if key in keys:
                    raise _repeated_key(key)
                keys.add(key)
                self.take(":")
            lazy = key in streamed and self.peek() in ("[", "{")
            yield key, _STREAMED if lazy else self.value()
            separator = self.take("," + closing)
