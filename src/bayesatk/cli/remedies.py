"""Messages as the command line writes them: arguments as options, remedies as whole commands."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import groupby
from typing import Any, NamedTuple

from bayesatk._tools.messages import READS, Argument, Message, source_of
from bayesatk._tools.words import printable
from bayesatk.io.load_options import RENAMED, as_option


class Word(NamedTuple):
    """An option with its value, or a file, which has no name."""

    name: str
    text: str
    value: str = ""

    @property
    def key(self) -> str:
        """What the value is about: the role of a column, the label of a system."""
        return self.value.partition("=")[0] if "=" in self.value else ""


class Typed(NamedTuple):
    """The words of a command as they were typed, and the names of its options by their flags."""

    name: str
    options: Mapping[str, tuple[str, bool]]  # name, and whether it stands alone
    words: Sequence[Word]

    def with_options(self, arguments: Sequence[str]) -> str:
        """Return the command with further options, which take the place of those they contradict.

        What is said of another column or another ignored column stays; a column that is now
        ignored has no role any more.
        """
        proposed = [*_words(self.options, arguments)]
        names = {word.name for word in proposed}
        added = {(word.name, word.key) for word in proposed}
        roles = {word.key for word in proposed if word.name == "column"}
        ignored = {word.value for word in proposed if word.name == "ignore"}
        other_outcome = {"outcome": _COUNTS, **dict.fromkeys(_COUNTS, ("outcome",))}
        replaced_roles = {role for own in roles for role in other_outcome.get(own, ())} - roles

        def stays(word: Word) -> bool:
            if word.name == "column":
                column = word.value.partition("=")[2]
                return word.key not in roles | replaced_roles and column not in ignored
            if word.name in ("where", "ignore", "covariate"):
                return (word.name, word.key) not in added or word.name != "where"
            return word.name not in names

        kept = [word for word in self.words if stays(word)]
        files = [word for word in (*kept, *proposed) if not word.name]
        options = [word for word in (*kept, *proposed) if word.name]
        return " ".join(["bayesatk", self.name, *(word.text for word in (*files, *options))])


_COUNTS = ("rate", "trials", "successes", "failures")
_TYPED: ContextVar[Typed] = ContextVar("bayesatk_typed")


def keep_typed(name: str, params: Sequence[Any], arguments: Sequence[str]) -> None:
    """Keep the words that a command was called with."""
    options = {
        flag: (param.name, bool(getattr(param, "is_flag", False)))
        for param in params
        for flag in (*param.opts, *param.secondary_opts)
        if flag.startswith("-")
    }
    _TYPED.set(Typed(name, options, [*_words(options, arguments)]))


def _words(options: Mapping[str, tuple[str, bool]], arguments: Sequence[str]) -> Iterator[Word]:
    """Yield the options, each with its value, and the files among the arguments of a command."""
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        name, alone = options.get(flag, ("", True))
        if not name or (alone and not equals):
            yield Word(name, shlex.quote(argument))
            continue
        value = value if equals else next(rest, "")
        yield Word(name, f"{flag} {shlex.quote(value)}", value)


def with_commands(message: object, offered: Collection[str]) -> str:
    """Write a message with each remedy as a whole command, on a line of its own.

    A remedy is what follows a colon: arguments that are options of the command, which are added to
    those that were typed. Several remedies are numbered; below each stands what it would read.
    """
    pieces = message.args if isinstance(message, Message) else [str(message)]
    runs: list[list[Any]] = [
        [*run] for _, run in groupby(pieces, lambda piece: isinstance(piece, Argument))
    ]
    # A text, the command that it introduces, and what the command would read.
    parts, text = list[tuple[str, str, str]](), ""
    for run, following in zip(runs, [*runs[1:], ["."]], strict=True):
        if not isinstance(run[0], Argument):
            if parts and not text and str(run[0]).startswith(READS):
                parts[-1] = (*parts[-1][:2], f"   {str(run.pop(0)).strip(' ()')}")
            text += "".join(map(str, run))
            continue
        written = " ".join(_written(argument, offered) for argument in run)
        is_whole = text.endswith(": ") and str(following[0]).startswith((".", ";", READS))
        is_whole &= all(argument.value is not None for argument in run) and _are_words(written)
        command = _TYPED.get().with_options(shlex.split(written)) if is_whole else ""
        if command and sorted(shlex.split(command)) != sorted(
            shlex.split(_TYPED.get().with_options([]))
        ):
            parts.append((text, command, ""))
            text = ""
        else:
            text += written
    lines = list[str]()
    for number, (introduction, command, reading) in enumerate(parts, 1):
        introduction = _begun(introduction) if lines else introduction
        if len(parts) > 1:
            *before, condition = re.split(r"(?<=[.?:]) (?=\w)", introduction.strip())
            lines += [" ".join(before)] * bool(before)
            introduction = f"{number}. {condition[0].upper()}{condition[1:]}"
        lines += [introduction.strip(), f"   {command}", reading]
    return "\n".join(filter(None, map(printable, [*lines, _begun(text) if lines else text])))


def _begun(text: str) -> str:
    """Return what follows a command as a sentence of its own."""
    words = re.sub(r"^[\W_]*(or, )?", "", text)
    return words[:1].upper() + words[1:]


def _are_words(written: str) -> bool:
    """Return whether arguments were written as options or files, not as Python has them."""
    try:
        words = shlex.split(written)
    except ValueError:
        return False
    return words[0] != "no" and (words[0].startswith("--") or "=" in words[0])


def as_options(message: object, offered: Collection[str]) -> str:
    """Write a message with its arguments as options, on one line.

    Parameters
    ----------
    message : Exception or Warning
    offered : collection of str
        Options of the command. An argument that is none of them stays as Python writes it.

    Examples
    --------
    >>> error = Message("Choose ", Argument("scorer", "match"), " or change ", Argument("width"))
    >>> as_options(error, ["scorer"])
    'Choose --scorer match or change width'
    """
    if isinstance(message, Message):
        text = message.written(lambda argument: _written(argument, offered))
    else:
        text = str(message)
    return printable(" ".join(text.split()))


def _written(argument: Argument, offered: Collection[str]) -> str:
    name, value = argument.name, argument.value
    if argument.function == "load" and isinstance(value, Mapping):
        named = [
            (label, "FILE" if file is ... else str(file))
            for label, files in value.items()
            for file in (files if isinstance(files, list) else [files])
        ]
        return " ".join(shlex.quote(f"{label}={file}") for label, file in named)
    if name in ("data", "fit", "source") and value is None:  # they are files here
        return "FILE"
    if name == "source" and "difficulty" in offered and isinstance(value, Mapping):
        stated = ((label, ",".join(map(source_of, pair))) for label, pair in value.items())
        return " ".join(f"--difficulty {label}={pair}" for label, pair in stated)
    parameter = RENAMED.get(name, name)
    if parameter == "shared" and "only_shared" in offered:  # of a gate, which says what it leaves
        return "--shared --missing ignore"
    return as_option(name, value) if parameter in offered else str(argument)
