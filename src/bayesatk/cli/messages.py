"""Messages of the library in the words of the command line: its arguments as options."""

import inspect
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from bayesatk._tools.messages import Argument, Message, source_of


def options_of(command: Callable[..., Any]) -> dict[str, str]:
    """Return the options of a command by the names of its parameters."""
    option_names = {}
    for name, parameter in inspect.signature(command).parameters.items():
        metadata = getattr(parameter.annotation, "__metadata__", ())
        # Within Annotated, Typer holds the first flag as what it calls the default.
        flags = [
            flag
            for annotation in metadata
            for flag in (
                getattr(annotation, "default", None),
                *(getattr(annotation, "param_decls", None) or ()),
            )
        ]
        long = [flag for flag in flags if isinstance(flag, str) and flag.startswith("--")]
        option_names[name] = long[0] if long else f"--{name.replace('_', '-')}"
    return option_names


def as_options(message: object, offered: Mapping[str, str]) -> str:
    """Write a message with its arguments as options, on one line.

    Parameters
    ----------
    message : Exception or Warning
    offered : mapping
        Options of the command by the names of its parameters. An argument that is none of them
        stays as Python writes it.

    Examples
    --------
    >>> error = Message("Choose ", Argument("scorer", "match"), " or change ", Argument("width"))
    >>> as_options(error, {"scorer": "--scorer"})
    'Choose --scorer match or change width'
    """
    if isinstance(message, Message):
        text = message.written(lambda argument: _written(argument, offered))
    else:
        text = str(message)
    return " ".join(text.split())


def _written(argument: Argument, offered: Mapping[str, str]) -> str:
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
        pairs = ((label, ",".join(map(source_of, pair))) for label, pair in value.items())
        return " ".join(f"{offered['difficulty']} {label}={pair}" for label, pair in pairs)
    # Parameters of the commands that are not called what the argument is.
    renamed = {
        "acc": "accuracy", "columns": "column", "covariates": "covariate", "metrics": "metric",
        "n": "questions", "p": "guess", "scores": "score", "t": "configurations",
    }  # fmt: skip
    option = offered.get(renamed.get(name, name))
    if option is None:
        return str(argument)
    if value is None or value is True or (value is ... and name == "answers"):
        return option
    if isinstance(value, Mapping):
        return " ".join(
            f"{option} {shlex.quote(str(label))}={_value(entry, name)}"
            for label, entry in value.items()
        )
    if isinstance(value, list):
        return " ".join(f"{option} {_value(element, name)}" for element in value)
    return f"{option} {_value(value, name)}"


def _value(value: object, name: str) -> str:
    """Write a value for a shell; what the reader knows, in capitals."""
    if value is ...:
        return {"columns": "NAME", "scores": "SCORE"}.get(name, name.upper())
    return shlex.quote(value if isinstance(value, str) else source_of(value))
