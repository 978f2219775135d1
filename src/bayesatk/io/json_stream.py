"""JSON documents of any size, one value at a time.

Evaluation logs are single JSON documents whose size is nearly all transcripts, and they write NaN,
which is no JSON and which the streaming parsers refuse. So the standard library's decoder is given
a window of the text that grows until it holds the next value, and never the whole.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, TextIO

from bayesatk.data.validation import OutcomeError, shown
from bayesatk.io.sources import BoundedText, check_objects, largest, too_large

_READ_ERRORS = (ValueError, RecursionError)  # json's own, bytes that are no text, endless digits
_WINDOW = 1 << 20  # characters read at least at once
_BLANK = re.compile(r"[ \t\r\n]*")
Json = dict[str, Any]  # an object of a document
Placed = tuple[str, Any, Any]  # a part of a document: where it stands, its key or number, its value


def distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the object; a key written twice would silently lose one value."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise _twice(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return record


def _twice(key: str) -> OutcomeError:
    return OutcomeError(f"the field {shown(key)} occurs twice in one object. Remove one.")


def parse(text: str | bytes, where: str) -> Any:
    """Return the one value that a text holds; no object of it may have a key twice."""
    if len(text) > largest():
        raise too_large(where, largest())
    if len(text) > _WINDOW:
        check_objects(text, where)
    try:
        return json.loads(text, object_pairs_hook=distinct)
    except OutcomeError as error:
        raise OutcomeError(f"{where}: {error}") from None
    except _READ_ERRORS as error:
        raise OutcomeError(f"{where} must be JSON; {error}. Check how it was written.") from None


def members(stream: TextIO, streamed: frozenset[str] = frozenset()) -> Iterator[Placed]:
    """Yield the parts of a document: (key, place, value); no object may have a key twice.

    Elements of a document that is an array come as ``("", number, value)``; members of one that is
    an object as ``(key, None, value)``, and those whose key is in `streamed` part by part, with
    the number or key of each.

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
    """Read a file of bytes as UTF-8, and leave it open; no line may exceed the budget."""
    text = BoundedText(file, encoding="utf-8-sig", newline=newline)
    try:
        yield text
    finally:
        text.detach()


def at(value: object, path: str) -> Any:
    """Return what stands at a dotted path; None if nothing does.

    Examples
    --------
    >>> at({"info": {"llm": "m"}, "a.b": 1}, "info.llm"), at({"a.b": 1}, "a.b"), at({}, "a.b")
    ('m', 1, None)
    >>> at({"infos": [{"r": 1}, {"r": 0}]}, "infos[].r"), at({"gpt-4.1": {"r": 1}}, "gpt-4.1.r")
    ([1, 0], 1)
    """
    if path.startswith("[]."):
        return [at(element, path[3:]) for element in value] if isinstance(value, list) else None
    if not isinstance(value, dict):
        return None
    if path in value:
        return value[path]
    for end in _ends(path):
        name, inner_path = path[:end], path[end:].lstrip(".")
        if name in value and (inner := at(value[name], inner_path)) is not None:
            return inner
    return None


def _ends(path: str) -> list[int]:
    """Return where a name within a path may end: at a dot, or before ``[]``."""
    return [mark.start() for mark in re.finditer(r"\.|\[\]", path)]


def is_there(fields: object, path: str) -> bool:
    """Whether a field is there, if only as null; a|b is one of two, * the first, [] a list."""
    if "|" in path:
        return any(is_there(fields, alternative) for alternative in path.split("|"))
    if not isinstance(fields, dict):
        return path == "[]" and isinstance(fields, list)
    if path in fields:
        return True
    first, _, inner_path = path.partition(".")
    if first == "*":
        return is_there(next(iter(fields.values()), None), inner_path)
    return bool(inner_path) and is_there(fields.get(first), inner_path)


def parsed_lines(file: BinaryIO, most: int | None = None) -> Iterator[tuple[int, Any]]:
    """Yield number and value of every line of JSON Lines that is not blank, of so many lines."""
    with decoded(file) as lines:
        for number, line in enumerate(islice(lines, most), start=1):
            if line.strip():
                yield number, parse(line, f"line {number}")


def parts_of(text: TextIO, records: str, head: Json) -> Iterator[Placed]:
    """Yield place, key and value of the records of a document; the rest of it goes to the head."""
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
    """The part of the text in memory, and the place up to which it has been read."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.text, self.place = stream, "", 0
        self.longest = largest()
        self.decode = json.JSONDecoder(object_pairs_hook=distinct).raw_decode

    def more(self) -> bool:
        """Lengthen the window, and drop what has been read; False at the end of the text."""
        held = len(self.text) - self.place
        if held > self.longest:
            raise too_large("one value", self.longest)
        # The window is doubled, so that work stays linear in the length.
        added_text = self.stream.read(max(held, _WINDOW))
        self.text, self.place = self.text[self.place :] + added_text, 0
        if len(self.text) > 2 * _WINDOW:
            check_objects(self.text, "the values read at once")
        return bool(added_text)

    def peek(self) -> str:
        """Return the next character that is not blank; none at the end."""
        while True:
            self.place = _BLANK.match(self.text, self.place).end()  # type: ignore[union-attr]
            if self.place < len(self.text):
                return self.text[self.place]
            if not self.more():
                return ""

    def take(self, expected: str) -> str:
        """Step over one of the expected characters."""
        character = self.peek()
        if not character or character not in expected:
            got = repr(character) if character else "the end"
            raise ValueError(f"expected {' or '.join(map(repr, expected))}, got {got}")
        self.place += 1
        return character

    def value(self) -> Any:
        """Return the next value."""
        longest_cut = 16  # no literal, number or escape that the window cuts in two is longer
        self.peek()
        while True:
            try:
                value, end = self.decode(self.text, self.place)
            except json.JSONDecodeError as error:
                near_end = error.pos > len(self.text) - longest_cut
                if (near_end or error.msg.startswith("Unterminated")) and self.more():
                    continue
                raise ValueError(f"{error.msg} at character {error.pos} of a part") from None
            length = end - self.place
            if end > len(self.text) - longest_cut and self.more():
                continue  # a number may go on
            self.place += length
            return value

    def parts(self, streamed: frozenset[str] = frozenset()) -> Iterator[tuple[Any, Any]]:
        """Yield the parts of the array or object that comes next, with the number or key of each.

        Of those whose key is streamed, and which have parts themselves, the value is left to read.
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
                    raise _twice(key)
                keys.add(key)
                self.take(":")
            lazy = key in streamed and self.peek() in ("[", "{")
            yield key, _STREAMED if lazy else self.value()
            separator = self.take("," + closing)
