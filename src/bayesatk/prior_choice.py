"""Which prior a model gets: the one given, checked, or its default; weaker ones; as plain data."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from bayesatk._tools.arguments import one_of
from bayesatk.priors import (
    AnswerPrior,
    AnyPrior,
    BetaPrior,
    CategoryPrior,
    CrossedPrior,
    DirichletHyperPrior,
    DirichletPrior,
    GroupedPrior,
    HyperPrior,
    Pooling,
    Prior,
    RegressionPrior,
    family_probabilities,
)

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        BetaPrior,
        HyperPrior,
        DirichletPrior,
        DirichletHyperPrior,
        AnswerPrior,
        CrossedPrior,
        GroupedPrior,
        RegressionPrior,
    )
}


_SCALED = ("alpha", "beta", "mean", "icc", "concentration")  # parameters on the logit scale


def power_scaled[Kind: Prior | CategoryPrior | RegressionPrior | GroupedPrior](
    prior: Kind, power: float
) -> Kind:
    """Return the prior with its density on the logit scale raised to a power.

    That multiplies every Beta or Dirichlet parameter by the power, and divides normal variances by
    it: ``power=0.5`` halves what the prior says. The shares of difficulty families stay, and the sd
    of groups.

    Examples
    --------
    >>> power_scaled(BetaPrior(1.0, 2.0), 0.5)
    BetaPrior(alpha=0.5, beta=1.0)
    >>> power_scaled(DirichletPrior((1.0, 2.0)), 0.5)
    DirichletPrior(concentration=(0.5, 1.0))
    """

    def scaled(value: Any) -> Any:
        return tuple(power * one for one in value) if isinstance(value, tuple) else power * value

    names = [each.name for each in fields(prior) if each.name in _SCALED]
    changed = {name: scaled(getattr(prior, name)) for name in names}
    if isinstance(prior, RegressionPrior):
        changed["slope_sd"] = prior.slope_sd / power**0.5
    return replace(prior, **changed)


def _fitting[Hyper, Fixed](
    pooling: Pooling, prior: object, hyper: type[Hyper], fixed: type[Fixed], what: str
) -> Hyper | Fixed:
    """Return the prior given, checked, or the default of the kind that the pooling needs."""
    one_of("pooling", pooling, ("none", "partial", "complete"))
    needed: type[Hyper] | type[Fixed] = hyper if pooling == "partial" else fixed
    if prior is None:
        return needed()
    if not isinstance(prior, needed):
        raise TypeError(
            f"prior for {what}pooling={pooling!r} must be a {needed.__name__}; got {prior!r}. "
            f"Pass bayesatk.{needed.__name__}(...), or leave it out for the default."
        )
    return prior


def resolve_prior(pooling: Pooling, prior: object) -> Prior:
    """Return the prior for a kind of pooling: the one given, checked, or the uniform default.

    Examples
    --------
    >>> resolve_prior("none", None)
    BetaPrior(alpha=1.0, beta=1.0)
    """
    return _fitting(pooling, prior, HyperPrior, BetaPrior, "")


def resolve_category_prior(pooling: Pooling, prior: object) -> CategoryPrior:
    """Return the prior of categories for a kind of pooling: the one given, checked, or the default.

    Examples
    --------
    >>> resolve_category_prior("none", None)
    DirichletPrior(concentration=1.0)
    """
    return _fitting(pooling, prior, DirichletHyperPrior, DirichletPrior, "categories under ")


def with_families(prior: AnyPrior, difficulty: object) -> HyperPrior:
    """Return the prior of the difficulty distribution with these families of it.

    Examples
    --------
    >>> with_families(HyperPrior(), "beta").family_prior
    {'beta': 1.0}
    """
    if not isinstance(prior, HyperPrior):
        raise ValueError(
            "difficulty must be left out except for right and wrong under pooling='partial', which "
            f"alone estimates how difficulties are spread; got {difficulty!r:.80} with a "
            f"{type(prior).__name__}."
        )
    return replace(prior, families=family_probabilities(difficulty))


def resolve_grouped_prior(prior: object) -> GroupedPrior:
    """Return the prior of questions in groups: the one given, checked, or the default.

    Examples
    --------
    >>> resolve_grouped_prior(None).sd
    1.0
    """
    if prior is not None and not isinstance(prior, GroupedPrior):
        raise TypeError(f"prior with group= must be a GroupedPrior; got {prior!r:.200}.")
    return prior or GroupedPrior()


def resolve_crossed_prior(prior: object) -> CrossedPrior:
    """Return the prior of a crossed model: the one given, checked, or the default.

    Examples
    --------
    >>> resolve_crossed_prior(None).eta
    1.0
    """
    if prior is not None and not isinstance(prior, CrossedPrior):
        raise TypeError(f"prior for form='crossed' must be a CrossedPrior; got {prior!r}.")
    return prior or CrossedPrior()


def resolve_regression_prior(prior: object) -> RegressionPrior:
    """Return the prior of a regression on covariates: the one given, checked, or the default.

    Examples
    --------
    >>> resolve_regression_prior(None).slope_sd
    2.5
    """
    if prior is not None and not isinstance(prior, RegressionPrior):
        raise TypeError(f"prior with covariates must be a RegressionPrior; got {prior!r:.200}.")
    return prior or RegressionPrior()


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
    return _KINDS[described["kind"]](**values)


def describe_prior(prior: AnyPrior) -> dict[str, object]:
    """Return the prior as plain data, for the attributes of a result."""
    return {"kind": type(prior).__name__, **asdict(prior)}
