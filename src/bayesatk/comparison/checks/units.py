"""Whether log-likelihoods of results are of the same unit, so that they can be compared."""

from collections.abc import Mapping

from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.results.checking import UNIT
from bayesatk.results.result import Result


def check_units(fits: Mapping[str, Result]) -> None:
    """Refuse results whose values of ``log_likelihood`` are of different units."""
    units = {
        name: str(fit.group("log_likelihood").attrs.get("unit", UNIT))
        for name, fit in fits.items()
        if fit.has("log_likelihood")
    }
    if len(set(units.values())) > 1:
        given = ", ".join(f"{name!r}: a {unit}" for name, unit in units.items())
        raise ArgumentError(
            Argument("fits"), " must have log-likelihoods of the same unit: a question of all "
            f"systems is predicted otherwise than one of a system; got {given}. Compare models of "
            "the same kind.",
        )  # fmt: skip
