"""Choice of a prior: the one given, checked, or the default; power-scaled; as plain data."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, get_args

from bayesatk._tools.messages import Argument, ArgumentError, one_of
from bayesatk.priors import (
    AnyPrior,
    BetaPrior,
    CategoryPrior,
    DirichletHyperPrior,
    DirichletPrior,
    HyperPrior,
    Pooling,
    Prior,
    family_probabilities,
)

_PRIOR_CLASSES: dict[str, Any] = {kind.__name__: kind for kind in get_args(AnyPrior)}
_POWER_SCALED = ("alpha", "beta", "mean", "icc", "concentration")  # multiplied by the power


def power_scaled[Kind: Prior | CategoryPrior](prior: Kind, power: float) -> Kind:
    """Return the prior with its density on the logit scale raised to a power.

    That multiplies every Beta or Dirichlet parameter by the power, and divides normal variances by
    it: with ``power=0.5`` the prior counts half as much. The probabilities of difficulty families,
    their shares and the prior of the sd of groups are unchanged.

    Examples
    --------
    >>> power_scaled(BetaPrior(1.0, 2.0), 0.5)
    BetaPrior(alpha=0.5, beta=1.0)
    >>> power_scaled(DirichletPrior((1.0, 2.0)), 0.5)
    DirichletPrior(concentration=(0.5, 1.0))
    """

    def scaled(value: Any) -> Any:
        return (
            tuple(power * number for number in value) if isinstance(value, tuple) else power * value
        )

    names = [field.name for field in fields(prior) if field.name in _POWER_SCALED]
    changed = {name: scaled(getattr(prior, name)) for name in names}
    for name in ("slope_sd", "shape_scale"):
        if hasattr(prior, name):
            changed[name] = getattr(prior, name) / power**0.5
    return replace(prior, **changed)


def prior_of[Kind](kind: type[Kind], prior: object, where: str) -> Kind:
    """Return the prior given, checked, or the default of its kind.

    Examples
    --------
    >>> prior_of(BetaPrior, None, "without pooling")
    BetaPrior(alpha=1.0, beta=1.0)
    """
    if prior is None:
        return kind()
    if not isinstance(prior, kind):
        raise TypeError(
            f"prior {where} must be a {kind.__name__}; got {prior!r:.200}. "
            f"Pass bayesatk.priors.{kind.__name__}(), or leave it out for the default."
        )
    return prior


def resolve_prior(pooling: Pooling, prior: object) -> Prior:
    """Return the prior for a kind of pooling: the one given, checked, or the uniform default.

    Examples
    --------
    >>> resolve_prior("none", None)
    BetaPrior(alpha=1.0, beta=1.0)
    """
    kind: type[Prior] = HyperPrior if _partial(pooling) else BetaPrior
    return prior_of(kind, prior, f"for pooling={pooling!r}")


def resolve_category_prior(pooling: Pooling, prior: object) -> CategoryPrior | HyperPrior:
    """Return the prior of categories for a kind of pooling: the one given, checked, or the default.

    Under partial pooling levels of a score are in the order of their scores, unless a
    `DirichletHyperPrior` is given.

    Examples
    --------
    >>> resolve_category_prior("none", None)
    DirichletPrior(concentration=1.0)
    """
    where = f"for categories under pooling={pooling!r}"
    if not _partial(pooling):
        return prior_of(DirichletPrior, prior, where)
    if isinstance(prior, DirichletHyperPrior):
        return prior
    chosen = prior_of(HyperPrior, prior, f"{where} must be a DirichletHyperPrior, or it")
    if not chosen.proper:
        raise ValueError(
            "prior: icc must be proper for scored categories, whose levels have a prior of their "
            f"own; got {chosen.icc}. Leave prior out, or pass bayesatk.priors.HyperPrior()."
        )
    return chosen


def _partial(pooling: Pooling) -> bool:
    return one_of("pooling", pooling, ("none", "partial", "complete")) == "partial"


def with_families(prior: AnyPrior, difficulty: object) -> HyperPrior:
    """Return the prior of the difficulty distribution with these families of it.

    Examples
    --------
    >>> with_families(HyperPrior(), "beta").family_prior
    {'beta': 1.0}
    """
    if not isinstance(prior, HyperPrior):
        raise ArgumentError(
            "difficulty",
            " must be left out except under ",
            Argument("pooling", "partial"),
            " with a HyperPrior, "
            f"which alone estimates how difficulties are spread; got {difficulty!r:.80} with a "
            f"{type(prior).__name__}.",
        )
    return replace(prior, families=family_probabilities(difficulty))


def prior_from(described: Mapping[str, Any]) -> Any:
    """Return the prior that `describe_prior` described.

    Examples
    --------
    >>> prior_from(describe_prior(BetaPrior(2.0, 3.0)))
    BetaPrior(alpha=2.0, beta=3.0)
    """
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in described.items()
        if name != "kind"
    }
    return _PRIOR_CLASSES[described["kind"]](**values)


def describe_prior(prior: AnyPrior) -> dict[str, object]:
    """Return the prior as plain data, for the attributes of a result."""
    return {"kind": type(prior).__name__, **asdict(prior)}
