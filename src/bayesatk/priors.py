"""Priors: definitions shared by the closed forms and the PyMC models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesatk._tools.arguments import real_number, whole_number

Pooling = Literal["none", "partial", "complete"]
FAMILIES = ("beta", "inflated", "mixture")  # shapes of the difficulty distribution
Families = Any  # what `family_probabilities` takes
INFLATION = (1.0, 1.0, 8.0)  # Dirichlet prior of questions never, always and sometimes solved
_MOST = 1e12  # of a Dirichlet parameter


@dataclass(frozen=True)
class BetaPrior:
    """Prior of a success probability, ``p ~ Beta(alpha, beta)``, for pooling none and complete.

    See Also
    --------
    HyperPrior : for pooling partial.

    Examples
    --------
    >>> BetaPrior()
    BetaPrior(alpha=1.0, beta=1.0)
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite([self.alpha, self.beta]).all() and min(self.alpha, self.beta) > 0):
            raise ValueError(
                f"prior: alpha and beta must be finite and > 0; got {self.alpha}, {self.beta}. "
                "BetaPrior(1, 1) is uniform."
            )

    def vector(self, categories: int = 2) -> NDArray[np.float64]:
        """Concentration of wrong and of right: a Beta is a Dirichlet of two categories.

        Examples
        --------
        >>> BetaPrior(2.0, 1.0).vector().tolist()
        [1.0, 2.0]
        """
        return _spread((self.beta, self.alpha), categories, "alpha and beta")


@dataclass(frozen=True)
class HyperPrior:
    """Prior of the difficulty distribution, for pooling partial.

    A difficulty family is a parametric distribution of the success probabilities p of questions:

    * ``"beta"``: ``p ~ Beta`` with mean ``m`` and intraclass correlation
      ``icc = 1/(alpha + beta + 1)``; a priori ``m ~ Beta(*mean)`` and ``icc ~ Beta(*icc)``.
    * ``"inflated"``: the same Beta, with point masses at p = 0 (questions that are never solved)
      and p = 1 (always solved): the shares ``(never, always, Beta) ~ Dirichlet(*atoms)``.
    * ``"mixture"``: two such Betas, independent a priori and labelled by their means; the one with
      the lower mean has the share ``~ Beta(*share)``.

    Several families are combined by Bayesian model averaging: each has its posterior probability.

    Parameters
    ----------
    mean, icc : (float, float)
        Beta parameters of the priors of ``m`` and ``icc``; (1, 1) is uniform. ``icc=(a, -a)`` with
        a > 0 is the improper density ``icc^(a-1) (1-icc)^(-a-1)``; with a uniform mean this is
        ``(alpha + beta)^(-2-a)``, of which Bayesian Data Analysis (3rd ed., eq. 5.9) uses a = 1/2.
    families : sequence of str, or mapping {family: prior probability}, optional
        Default: all three with equal prior probability; the Beta alone if ``icc`` is improper,
        because an improper prior has no marginal likelihood. The argument ``difficulty`` of
        `bayesatk.evaluate` sets the same.
    atoms : (float, float, float)
        Dirichlet parameters of the shares of questions never solved, always solved, and neither.
    share : (float, float)
        Beta parameters of the share of the mixture component with the lower mean.

    See Also
    --------
    BetaPrior : for pooling none and complete.
    DirichletHyperPrior : of scored categories.
    bayesatk.models.build_beta_binomial : the model.

    Examples
    --------
    >>> HyperPrior().proper, HyperPrior.bda3().proper
    (True, False)
    >>> HyperPrior(families={"beta": 3, "inflated": 1}).families
    (('beta', 0.75), ('inflated', 0.25))
    """

    mean: tuple[float, float] = (1.0, 1.0)
    icc: tuple[float, float] = (1.0, 1.0)
    families: Families = None
    atoms: tuple[float, float, float] = INFLATION
    share: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("icc", self.icc)):
            if not _are_beta(values, name == "icc"):
                raise ValueError(
                    f"prior: {name} must be two Beta parameters > 0; got {values!r:.80}. (1, 1) is "
                    "uniform. The icc may also be (a, -a) with a > 0, which is improper, as in "
                    "HyperPrior.bda3()."
                )
        for name, size in (("atoms", 3), ("share", 2)):
            found = _concentration(getattr(self, name), name)
            if not isinstance(found, tuple) or len(found) != size:
                raise ValueError(
                    f"prior: {name} must be {size} parameters > 0; got {getattr(self, name)!r:.80}."
                )
            object.__setattr__(self, name, found)
        default = FAMILIES if self.proper else FAMILIES[:1]
        families = family_probabilities(default if self.families is None else self.families)
        if not self.proper and families != (("beta", 1.0),):
            raise ValueError(
                "difficulty must be 'beta' under an improper prior, which has no evidence to weigh "
                f"families by; got {', '.join(name for name, _ in families)}."
            )
        object.__setattr__(self, "families", families)

    @classmethod
    def bda3(cls) -> "HyperPrior":
        """Return the prior ``p(alpha, beta) ~ (alpha + beta)^(-5/2)``."""
        return cls(icc=(0.5, -0.5))

    def vector(self, categories: int = 2) -> NDArray[np.float64]:
        """Concentration of the mean: of wrong and of right."""
        return _spread(self.mean[::-1], categories, "mean")

    @property
    def proper(self) -> bool:
        """Whether the prior integrates to one."""
        return self.icc[1] > 0

    @property
    def family_prior(self) -> dict[str, float]:
        """Prior probability of each family that has any."""
        return dict(self.families)

    def of_family(self, name: str) -> "HyperPrior":
        """Return the prior with one family only.

        Examples
        --------
        >>> HyperPrior().of_family("inflated").family_prior
        {'inflated': 1.0}
        """
        return replace(self, families=name)


def family_probabilities(difficulty: object) -> tuple[tuple[str, float], ...]:
    """Return difficulty families with their prior probabilities, in one order.

    Parameters
    ----------
    difficulty : str, sequence of str, or mapping {family: prior probability}
        ``"averaged"`` is all families, equally probable.

    Examples
    --------
    >>> family_probabilities("averaged") == family_probabilities(FAMILIES)
    True
    >>> family_probabilities(["inflated", "beta"])
    (('beta', 0.5), ('inflated', 0.5))
    """
    if isinstance(difficulty, str):
        names: list[object] = list(FAMILIES) if difficulty == "averaged" else [difficulty]
        weights: list[object] = [1.0] * len(names)
    elif isinstance(difficulty, Mapping):
        names, weights = list(difficulty), list(difficulty.values())
    elif isinstance(difficulty, Sequence):
        pairs = [one if isinstance(one, tuple | list) else (one, 1.0) for one in difficulty]
        names, weights = ([pair[i] for pair in pairs] for i in (0, 1))
    else:
        names, weights = [difficulty], [1.0]
    unknown = [name for name in names if name not in FAMILIES]
    if unknown or not names or len(set(names)) < len(names):
        raise ValueError(
            f"difficulty must be 'averaged', or one or several different of {', '.join(FAMILIES)}; "
            f"got {difficulty!r:.80}."
        )
    numbers = np.array([real_number("difficulty", one) for one in weights])
    if not np.isfinite(numbers).all() or (numbers < 0.0).any() or not numbers.sum() > 0.0:
        raise ValueError(
            "difficulty: prior probabilities of families must be finite, >= 0 and not all 0; got "
            f"{difficulty!r:.80}."
        )
    found = dict(zip(names, (numbers / numbers.sum()).tolist(), strict=True))
    return tuple((name, found[name]) for name in FAMILIES if found.get(name, 0.0) > 0.0)


def _are_beta(values: object, improper: bool) -> bool:
    """Whether these are two Beta parameters > 0, or (a, -a) where that may be."""
    if not isinstance(values, tuple | list) or len(values) != 2:
        return False
    first, second = (real_number("prior", one) for one in values)
    if not np.isfinite([first, second]).all():
        return False
    return first > 0 and (second > 0 or (improper and second == -first))


@dataclass(frozen=True)
class DirichletPrior:
    """Prior of category probabilities, ``p ~ Dirichlet``, for pooling none and complete.

    Parameters
    ----------
    concentration : float or tuple of float
        Dirichlet parameters, > 0: one number for every category, or one for each, from the lowest
        score to the highest. 1 is uniform.

    See Also
    --------
    DirichletHyperPrior : for pooling partial.

    Examples
    --------
    >>> DirichletPrior().vector(3).tolist()
    [1.0, 1.0, 1.0]
    """

    concentration: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        value = _concentration(self.concentration, "concentration")
        object.__setattr__(self, "concentration", value)

    def vector(self, categories: int) -> NDArray[np.float64]:
        """Concentration of each category."""
        return _spread(self.concentration, categories, "concentration")


@dataclass(frozen=True)
class DirichletHyperPrior:
    """Prior of the distribution of category probabilities over questions, for pooling partial.

    The category probabilities of a question are ``p ~ Dirichlet`` with a mean vector and an
    intraclass correlation; a priori the mean vector is Dirichlet and the correlation
    ``Beta(*icc)``. For two categories this is the Beta family of `HyperPrior`.

    Parameters
    ----------
    mean : float or tuple of float
        Dirichlet parameters of the mean vector: one number for every category, or one for each.
    icc : (float, float)
        Beta parameters of the prior of the intraclass correlation; (1, 1) is uniform.

    See Also
    --------
    HyperPrior : of right and wrong, with other difficulty families.
    DirichletPrior : for pooling none and complete.

    Examples
    --------
    >>> DirichletHyperPrior()
    DirichletHyperPrior(mean=1.0, icc=(1.0, 1.0))
    """

    mean: float | tuple[float, ...] = 1.0
    icc: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _concentration(self.mean, "mean"))
        pair = _concentration(self.icc, "icc")
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"prior: icc must be two Beta parameters > 0; got {self.icc!r}.")
        object.__setattr__(self, "icc", pair)

    def vector(self, categories: int) -> NDArray[np.float64]:
        """Concentration of the mean vector."""
        return _spread(self.mean, categories, "mean")


@dataclass(frozen=True)
class CrossedPrior:
    """Prior of correlated logit-normal difficulties of several systems.

    ``mu ~ Normal(0, mu_sd)`` and ``sigma ~ HalfNormal(sigma_sd)`` for every system; the correlation
    of their difficulties is ``LKJ(eta)``.

    Parameters
    ----------
    mu_sd, sigma_sd : float
        Prior scales of the mean and of the sd of the logits of the success probabilities, > 0.
        With ``mu_sd=1.5`` the success probability of a question of average difficulty is nearly
        uniform.
    eta : float
        LKJ parameter: 1 is uniform over correlation matrices, a larger value prefers weak
        correlations.

    See Also
    --------
    bayesatk.models.build_crossed : the model.

    Examples
    --------
    >>> CrossedPrior()
    CrossedPrior(mu_sd=1.5, sigma_sd=2.5, eta=1.0)
    """

    mu_sd: float = 1.5
    sigma_sd: float = 2.5
    eta: float = 1.0

    def __post_init__(self) -> None:
        names = ("mu_sd", "sigma_sd", "eta")
        values = [real_number(f"prior: {name}", getattr(self, name)) for name in names]
        if not (np.isfinite(values).all() and min(values) > 0):
            raise ValueError(
                f"prior: mu_sd, sigma_sd and eta must be finite and > 0; got {values}. "
                "CrossedPrior() has useful defaults."
            )


@dataclass(frozen=True)
class RegressionPrior:
    """Prior of how the success probability of questions depends on their covariates.

    ``p ~ Beta`` with mean ``expit(b_0 + x b)`` and one intraclass correlation. At average
    covariates the mean is ``Beta(*mean)`` and the correlation ``Beta(*icc)``, as in `HyperPrior`.
    Slopes are normal around 0: in the basis of covariates that are uncorrelated over the questions
    and have sd 1, each has the sd `slope_sd`, in logits. That is a g-prior (Zellner 1986): units of
    a covariate, the reference level of a category and other ways to write the same model do not
    matter.

    Parameters
    ----------
    mean, icc : (float, float)
        Beta parameters of the priors of the mean at average covariates and of the intraclass
        correlation; (1, 1) is uniform.
    slope_sd : float
        Prior sd of a slope, in logits for each standard deviation of a covariate. The default 2.5
        allows both no effect and a success rate that goes from 1% to 99% over the range of the
        covariate.

    See Also
    --------
    bayesatk.models.build_regression : the model.

    Examples
    --------
    >>> RegressionPrior()
    RegressionPrior(mean=(1.0, 1.0), icc=(1.0, 1.0), slope_sd=2.5)
    """

    mean: tuple[float, float] = (1.0, 1.0)
    icc: tuple[float, float] = (1.0, 1.0)
    slope_sd: float = 2.5

    def __post_init__(self) -> None:
        _check_level(self, "slope_sd")

    def vector(self, categories: int = 2) -> NDArray[np.float64]:
        """Concentration of the mean at average covariates: of wrong and of right."""
        return _spread(self.mean[::-1], categories, "mean")


@dataclass(frozen=True)
class GroupedPrior:
    """Prior of the difficulty of questions in groups, for `bayesatk.evaluate` with ``group=``.

    Within a group success probabilities are ``p ~ Beta``. Each group has its own mean, and all
    groups share one intraclass correlation ``icc = 1/(alpha + beta + 1)``. The logits of the means
    are ``Normal(logit(typical_p), group_sd)``. A priori ``typical_p ~ Beta(*mean)``, ``icc ~
    Beta(*icc)``, and ``group_sd`` is half-normal.

    Parameters
    ----------
    mean, icc : (float, float)
        Beta parameters; (1, 1) is uniform.
    sd : float
        Scale of the half-normal of ``group_sd``, in logits. Where ``group_sd`` is 1, two of three
        groups have means within 0.27 and 0.73 around a typical one of 0.5.

    See Also
    --------
    bayesatk.models.build_grouped : the model.

    Examples
    --------
    >>> GroupedPrior()
    GroupedPrior(mean=(1.0, 1.0), icc=(1.0, 1.0), sd=1.0)
    """

    mean: tuple[float, float] = (1.0, 1.0)
    icc: tuple[float, float] = (1.0, 1.0)
    sd: float = 1.0

    def __post_init__(self) -> None:
        _check_level(self, "sd")

    def vector(self, categories: int = 2) -> NDArray[np.float64]:
        """Concentration of the mean of a typical group: of wrong and of right."""
        return _spread(self.mean[::-1], categories, "mean")


def _check_level(prior: RegressionPrior | GroupedPrior, scale: str) -> None:
    """Check Beta parameters and the scale of an sd in logits, and make them floats."""
    for name in ("mean", "icc"):
        values = getattr(prior, name)
        if not _are_beta(values, False):
            raise ValueError(
                f"prior: {name} must be two Beta parameters > 0; got {values!r:.80}. (1, 1) is "
                "uniform."
            )
        object.__setattr__(prior, name, tuple(float(one) for one in values))
    sd = real_number(f"prior: {scale}", getattr(prior, scale))
    if not (np.isfinite(sd) and sd > 0):
        default = type(prior).__dataclass_fields__[scale].default
        raise ValueError(
            f"prior: {scale} must be finite and > 0, in logits; got {sd}. {default} is useful."
        )
    object.__setattr__(prior, scale, sd)


@dataclass(frozen=True)
class LeaderboardPrior:
    """Prior of systems that share the difficulty of questions, for `bayesatk.leaderboard`.

    The difficulty ``z`` of a question is standard normal. Its success probability under system s is
    Beta with mean ``expit(mu_s + a_s z)`` and intraclass correlation ``rho_s``. Systems are
    exchangeable: each of ``mu_s``, ``log a_s`` and ``logit rho_s`` is normal around a mean that all
    systems share, and which is normal itself.

    Parameters
    ----------
    mean : (float, float)
        Prior mean and sd of the common mean of ``mu_s``, in logits.
    spread_sd : float
        Scale of the half-normal prior of the sd of ``mu_s`` between systems, in logits.
    discrimination : (float, float, float)
        For ``log a_s``: prior mean and sd of its common mean, and its sd between systems.
    interaction : (float, float, float)
        The same three numbers for ``logit rho_s``. ``rho_s`` measures how much a question is
        harder or easier for one system than its difficulty predicts; single trials of questions
        do not identify it.

    See Also
    --------
    bayesatk.models.build_one_factor : the model.

    Examples
    --------
    >>> LeaderboardPrior().spread_sd
    1.0
    """

    mean: tuple[float, float] = (0.0, 1.5)
    spread_sd: float = 1.0
    discrimination: tuple[float, float, float] = (0.4, 0.7, 0.4)
    interaction: tuple[float, float, float] = (-2.0, 1.2, 0.6)

    def __post_init__(self) -> None:
        for name, size in (("mean", 2), ("discrimination", 3), ("interaction", 3)):
            given = getattr(self, name)
            if not isinstance(given, tuple | list) or len(given) != size:
                raise ValueError(f"prior: {name} must be {size} numbers; got {given!r:.80}.")
            values = tuple(real_number(f"prior: {name}", one) for one in given)
            if not (np.isfinite(values).all() and min(values[1:]) > 0):
                raise ValueError(
                    f"prior: {name} must be finite, with sds > 0 after the mean; got {values}. "
                    "LeaderboardPrior() has useful defaults."
                )
            object.__setattr__(self, name, values)
        spread = real_number("prior: spread_sd", self.spread_sd)
        if not (np.isfinite(spread) and spread > 0):
            raise ValueError(
                f"prior: spread_sd must be finite and > 0; got {spread}. 1.0 is useful."
            )
        object.__setattr__(self, "spread_sd", spread)


@dataclass(frozen=True)
class AnswerPrior:
    """Prior of the answers to one question: independent ``p ~ Dirichlet`` over its answers.

    Parameters
    ----------
    concentration : float
        Dirichlet parameter of every answer, and of abstaining (``AnswerRules.unanswered``), > 0.
    unseen : int
        Number of wrong answers that were not observed but have positive probability, each with
        the same concentration. With ``unseen=0`` a question that was always answered in the same
        way has that answer with posterior probability one.
    unseen_correct : bool
        Whether a question without any correct answer has one unobserved correct answer. If not,
        majority voting fails on such a question with posterior probability one.
    choices : int, optional
        Number of possible answers of each question, where it is known, as in multiple choice.
        All of them have positive probability, and `unseen` is then not used. At most one of them
        is right, and answers that are merged because they are all right count as one.

    See Also
    --------
    bayesatk.evaluate : takes it as ``answer_prior``.

    Examples
    --------
    >>> AnswerPrior(choices=4)
    AnswerPrior(concentration=1.0, unseen=1, unseen_correct=True, choices=4)
    """

    concentration: float = 1.0
    unseen: int = 1
    unseen_correct: bool = True
    choices: int | None = None

    def __post_init__(self) -> None:
        value = _concentration(self.concentration, "concentration")
        if isinstance(value, tuple):
            raise ValueError(f"answer_prior: concentration must be one number; got {value}.")
        object.__setattr__(self, "concentration", value)
        unseen = self.unseen
        object.__setattr__(self, "unseen", whole_number("answer_prior: unseen", unseen, 0))
        if not isinstance(self.unseen_correct, bool):
            raise ValueError(
                f"answer_prior: unseen_correct must be true or false; got {self.unseen_correct!r}."
            )
        self._check_choices()

    def _check_choices(self) -> None:
        choices = self.choices
        if choices is None:
            return
        whole_number("answer_prior: choices", choices, 2)
        if self.unseen != 1:
            raise ValueError(
                "answer_prior: unseen must be left out where choices says how many answers there "
                f"are; got unseen={self.unseen}."
            )
        object.__setattr__(self, "choices", int(choices))


def _concentration(value: object, name: str) -> float | tuple[float, ...]:
    """Return one positive number or a tuple of them, as plain floats."""
    try:
        array = np.array(value) if not isinstance(value, str | bytes) else np.array(None)
    except ValueError:
        array = np.array(None)
    numbers = array.dtype.kind in "iuf" and array.ndim <= 1 and array.size > 0
    if not numbers or not ((array > 0) & (array <= _MOST)).all():
        raise ValueError(
            f"prior: {name} must be finite and > 0, at most {_MOST:g}: one number or one for each "
            f"category; got {value!r:.80}. 1.0 is uniform."
        )
    return float(array) if array.ndim == 0 else tuple(float(one) for one in array)


def _spread(value: float | tuple[float, ...], categories: int, name: str) -> NDArray[np.float64]:
    values = np.asarray(value, float)
    if values.ndim and len(values) != categories:
        raise ValueError(
            f"prior: {name} must be one number, or one for each of the {categories} categories; "
            f"got {value}."
        )
    return np.array(np.broadcast_to(values, categories), float)


Prior = BetaPrior | HyperPrior
CategoryPrior = DirichletPrior | DirichletHyperPrior
ModelPrior = Prior | CategoryPrior | CrossedPrior | RegressionPrior | GroupedPrior
AnyPrior = ModelPrior | AnswerPrior
