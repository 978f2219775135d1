"""Public names: listed once, in stubs, imported on first use, and found where they are not.

A stub (``bayesatk/decide.pyi`` beside ``decide.py``) has one line for each name of its module. Type
checkers read it, and `shelf` imports from it. `lazy_loader.attach_stub` does that for names from
below a module only; a shelf has names from beside it.
"""

import os
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

_ROOT = os.path.dirname(os.path.dirname(__file__))
_TAKES_ANY = 0x08  # flag of the code of a function with ``**kwargs``: inspect.CO_VARKEYWORDS

# Words for what has another name here: names of functions, and of their arguments.
_FUNCTIONS = {
    "summary": "table", "summarize": "table", "summarise": "table", "results": "table",
    "fit": "evaluate", "estimate": "evaluate", "read": "load", "read_csv": "load",
    "from_dict": "tally", "rank": "leaderboard", "power": "plan", "sample_size": "plan",
    "calibration": "calibrate", "loo": "exact_loo", "ppc": "criticise",
}  # fmt: skip
_ARGUMENTS = {
    "seed": "rng", "random_state": "rng", "random_seed": "rng", "generator": "rng",
    "weights": "weight", "groups": "group", "cluster": "group", "clusters": "group",
    "covariate": "covariates", "judges": "judge", "costs": "cost",
    "n_samples": "draws", "num_samples": "draws", "samples": "draws", "n_draws": "draws",
    "confidence": "ci_prob", "confidence_level": "ci_prob", "prob": "ci_prob", "level": "ci_prob",
    "hdi_prob": "ci_prob", "credible_mass": "ci_prob", "ci": "ci_prob",
    "error": "alpha", "rate": "alpha", "family_error": "alpha", "fdr": "alpha",
    "margin": "rope", "p": "guess", "chance": "guess", "priors": "prior",
    "metric": "metrics", "metrics": "metric", "system": "systems", "model": "system",
    "models": "systems", "question": "questions", "n_trials": "trials",
    "result": "fit", "results": "fit", "board": "fit", "progressbar": "progress",
}  # fmt: skip


def shelf(name: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a module whose stub lists its names.

    Parameters
    ----------
    name, file : str
        ``__name__`` and ``__file__`` of the module.

    Notes
    -----
    A function is wrapped, so that an argument of another name is refused with the name it has here.
    With ``EAGER_IMPORT=1`` (SPEC 1) everything is imported at once.

    Examples
    --------
    >>> import bayesatk
    >>> bayesatk.decide.gate.__module__
    'bayesatk.decide'
    """
    homes = _homes(name, file)

    @cache  # not in the module, where doctest would find the examples of functions again
    def find(attribute: str) -> Any:
        if attribute not in homes:
            raise AttributeError(
                f"{name} has no {attribute!r}.{_where(name, attribute)}", name=attribute
            )
        public: Any
        if homes[attribute] == name:
            public = import_module(f"{name}.{attribute}")
        else:
            public = getattr(import_module(homes[attribute]), attribute)
            public = _with_hints(public, name) if isinstance(public, FunctionType) else public
        return public

    names = sorted(homes)
    if os.environ.get("EAGER_IMPORT", "") not in ("0", ""):
        for attribute in names:
            find(attribute)
    return find, names.copy, names.copy()


def _homes(name: str, file: str) -> dict[str, str]:
    """Return the module that each name of a stub comes from; of a submodule, its package.

    Every line of a stub is ``from .module import name as name``.
    """
    stem, _ = os.path.splitext(file)
    package = name if os.path.basename(stem) == "__init__" else name.rpartition(".")[0]
    homes: dict[str, str] = {}
    with open(f"{stem}.pyi", encoding="utf-8") as stub:
        for line in stub:
            words = line.split()
            if words[:1] == ["from"]:
                homes[words[3]] = package + words[1].rstrip(".")
    return homes


def _places() -> dict[str, str]:
    """Return the public module of every public name; imports no more than `bayesatk.priors`."""
    top = _homes("bayesatk", os.path.join(_ROOT, "__init__.py"))
    places: dict[str, str] = {}
    for shelf_name in (name for name, module in top.items() if module == "bayesatk"):
        module = f"bayesatk.{shelf_name}"
        stems = (os.path.join(_ROOT, shelf_name), os.path.join(_ROOT, shelf_name, "__init__"))
        stem = next((stem for stem in stems if os.path.exists(f"{stem}.pyi")), None)
        names = _homes(module, stem) if stem else import_module(module).__all__
        places |= dict.fromkeys(names, module)
    return places | dict.fromkeys(top, "bayesatk")


def _where(name: str, attribute: str) -> str:
    """Return where a name is that a module does not have, or what was perhaps meant."""
    if attribute.startswith("_"):
        return ""
    places = _places()
    wanted = attribute if attribute in places else _FUNCTIONS.get(attribute, "")
    if not wanted:
        wanted = _nearest(attribute, places)
    if not wanted:
        return f" It has {', '.join(sorted(key for key in places if places[key] == name))}."
    text = f" It is {places[wanted]}.{wanted}."
    if wanted != attribute:
        text = f" Perhaps {places[wanted]}.{wanted} was meant."
    if places[wanted] == "bayesatk.published":
        text += (
            " It takes an array; the posterior of the same metric is "
            'bayesatk.evaluate(data, "pass@1"), with the metric in place of pass@1.'
        )
    return text


def _nearest(word: str, words: Iterable[str]) -> str:
    """Return the most similar of some words, or nothing."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, [*words], 1, 0.75)), "")


def _with_hints[**P, T](function: Callable[P, T], module: str) -> Callable[P, T]:
    """Return a function that says what an unknown argument is called here."""
    from functools import wraps

    arguments = _arguments(function)
    if arguments is None:
        return function

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        unknown = next((key for key in kwargs if key not in arguments), None)
        if unknown is not None:
            raise TypeError(_hint(function.__name__, arguments, unknown))
        return function(*args, **kwargs)

    call.__module__ = module  # found there by pickle
    return call


def _arguments(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """Return the names of a function's arguments; None if it takes any."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code: CodeType = function.__code__
    if code.co_flags & _TAKES_ANY:
        return None
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _hint(function: str, arguments: tuple[str, ...], unknown: str) -> str:
    """Return the message about an argument that a function does not have."""
    text = f"{function}() has no argument {unknown!r}. "
    wanted = _ARGUMENTS.get(unknown, unknown)
    if wanted not in arguments:
        wanted = _nearest(unknown, arguments) or wanted
    if wanted in arguments:
        return f"{text}Its name is {wanted!r}."
    if wanted in (_arguments(import_module("bayesatk").tally) or ()):
        return f"{text}It is given with the data: bayesatk.tally(data, {wanted}=...)."
    return f"{text}It has {', '.join(arguments)}."
