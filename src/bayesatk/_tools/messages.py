"""Messages about arguments: as Python arguments, or as options of the command line."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from numbers import Integral, Real
from pathlib import Path
from typing import Literal

# Warnings name the line outside this folder from which the library was called.
PACKAGE = str(Path(__file__).parents[1])
READS = " (reads "  # begins what files would hold after the arguments in front of it


@dataclass(frozen=True)
class Argument:
    """An argument that a message speaks of.

    A message made of text and arguments can be written with the arguments of Python, or with the
    options of the command line.

    Parameters
    ----------
    name : str
    value : optional
        Value to pass, if the message proposes one; ``...`` stands for one that the reader knows.
    function : {"tally", "load"}, optional
        Function of the library that takes it, if the reader may have called another.

    Examples
    --------
    >>> str(Argument("width")), str(Argument("missing", "ignore"))
    ('width', "missing='ignore'")
    >>> str(Argument("scores", {"C": 1.0, "P": ...}, "tally"))
    "bayesatk.tally(data, scores={'C': 1, 'P': ...})"
    """

    name: str
    value: object = None
    function: Literal["", "tally", "load"] = ""

    def __str__(self) -> str:
        written = self.name if self.value is None else f"{self.name}={source_of(self.value)}"
        if self.function == "load":
            longest_path = 4096  # characters: as many as Linux allows
            return f"bayesatk.load({source_of(self.value, longest_path)})"
        return f"bayesatk.tally(data, {written})" if self.function else written


@dataclass(frozen=True)
class File:
    """The file that a message is about, in front of it."""

    name: str

    def __str__(self) -> str:
        return f"{self.name}: "


def source_of(value: object, length_max: int = 80) -> str:
    """Return a value as Python writes it, short; ``...`` for an ellipsis."""
    if value is ...:
        return "..."
    if isinstance(value, Mapping):
        pairs = [
            f"{source_of(a, length_max)}: {source_of(b, length_max)}" for a, b in value.items()
        ]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)  # as written it must be this number
    if isinstance(value, list):
        return f"[{', '.join(source_of(element, length_max) for element in value)}]"
    text = repr(value)
    return text if len(text) <= length_max else text[: length_max - 3] + "..."


class Message(Exception):
    """A message made of text and arguments, in the order given; a name alone is an argument.

    Arguments that follow each other without a text are to be given together.

    Examples
    --------
    >>> print(Message("Try: ", Argument("wide", True), Argument("records", "runs"), "."))
    Try: wide=True, records='runs'.
    """

    def __init__(self, *parts: str | Argument | File) -> None:
        named = (
            Argument(piece) if isinstance(piece, str) and piece.isidentifier() else piece
            for piece in parts
        )
        super().__init__(*named)

    def __str__(self) -> str:
        return self.written(str)

    def written(self, write: Callable[[Argument], str]) -> str:
        """Return the message with every argument written by a function."""
        text = ""
        for is_argument, run in groupby(self.args, lambda piece: isinstance(piece, Argument)):
            if not is_argument:
                text += "".join(map(str, run))
            elif write is str:
                text += _python_arguments([*run])
            else:
                text += " ".join(map(write, run))
        return text


def alternatives(ways: Iterable[Sequence[str | Argument]]) -> list[str | Argument]:
    """Return remedies as pieces of a message, one after the other.

    Examples
    --------
    >>> print(Message(*alternatives([[Argument("a", 1)], ["if so: ", Argument("b", 2)]])))
    a=1; or, if so: b=2
    """
    return [piece for way in ways for piece in ("; or, ", *way)][1:]


def _python_arguments(arguments: Sequence[Argument]) -> str:
    """Return arguments that are given together, within one call if they name its function."""
    if len(arguments) == 1 or arguments[0].function != "tally":
        return ", ".join(map(str, arguments))
    return f"bayesatk.tally(data, {', '.join(str(replace(a, function='')) for a in arguments)})"


class ArgumentError(Message, ValueError):
    """An argument that cannot be what it is; the message says the rule, the value and a remedy.

    Examples
    --------
    >>> error = ArgumentError("width", " must be > 0; got -1.")
    >>> str(error), error.written(lambda argument: f"--{argument.name}")
    ('width must be > 0; got -1.', '--width must be > 0; got -1.')
    """


def real_number(name: str, value: object) -> float:
    """Return a number as a float, or refuse another type.

    Examples
    --------
    >>> import numpy as np
    >>> real_number("width", np.float32(0.5))
    0.5
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(name, f" must be a number; got {value!r:.80}.")
    return float(value)


def positive_number(name: str, value: object, advice: str) -> float:
    """Return a finite number above 0, or refuse and say what to do.

    Examples
    --------
    >>> positive_number("price", 2, "Say what a trial costs.")
    2.0
    """
    number = real_number(name, value)
    if not (math.isfinite(number) and number > 0.0):
        raise ArgumentError(name, f" must be finite and > 0; got {value!r:.80}. {advice}")
    return number


def whole_number(name: str, value: object, least: int = 1) -> int:
    """Return a whole number of at least `least`, or refuse.

    Examples
    --------
    >>> import numpy as np
    >>> whole_number("trials", np.int64(3))
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ArgumentError(name, f" must be an integer >= {least}; got {value!r:.80}.")
    return int(value)


def proper_probability(
    name: str, value: object, example: float = 0.05, least: float = 0.0
) -> float:
    """Return a probability strictly between `least` and 1, or refuse and propose an example.

    Examples
    --------
    >>> proper_probability("ci_prob", 0.9)
    0.9
    """
    number = real_number(name, value)
    if not least < number < 1.0:
        rule = f" must lie strictly between {least:g} and 1; got {value}. Try {example:g}."
        raise ArgumentError(name, rule)
    return number


def one_of[Word](
    name: str, value: Word, choices: Sequence[Word], error: type[ArgumentError] = ArgumentError
) -> Word:
    """Return one of some words, or refuse.

    Examples
    --------
    >>> one_of("target", "questions", ("questions", "population"))
    'questions'
    """
    if not isinstance(value, str) or value not in choices:
        *first_choices, last = (repr(choice) for choice in choices)
        listed = f"{', '.join(first_choices)} or {last}"
        raise error(name, f" must be {listed}; got {value!r:.80}.")
    return value
