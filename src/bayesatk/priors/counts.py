"""Priors: of right and wrong, of scored categories, of answers, and of several systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import ArgumentError, real_number, whole_number
from bayesatk.priors.fields import Beta, Dirichlet, Field, Fields, HalfNormal, Normal, StudentT

_CONCENTRATION_MAX = 1e12  # largest Dirichlet parameter


def check_positive(prior: Any, *names: str, of: str = "prior") -> None:
    """Check that fields of a prior are finite and above 0."""
    for name in names:
        value = real_number(f"{of}: {name}", getattr(prior, name))
        if not (np.isfinite(value) and value > 0.0):
            default = type(prior).__dataclass_fields__[name].default
            raise ValueError(
                f"{of}: {name} must be finite and > 0; got {value}. {default} is the default."
            )
        object.__setattr__(prior, name, value)


def check_beta_parameters(prior: Any, name: str, improper: bool = False) -> None:
    """Check that a field is two Beta parameters > 0, or (a, -a) where that may be."""
    value = getattr(prior, name)
    values = tuple(value) if isinstance(value, tuple | list | np.ndarray) else ()
    pair = tuple(real_number(f"prior: {name}", number) for number in values)
    proper = len(pair) == 2 and bool(np.isfinite(pair).all()) and pair[0] > 0.0
    if not proper or not (pair[1] > 0.0 or (improper and pair[1] == -pair[0])):
        improper_note = (
            f" The {name} may also be (a, -a) with a > 0, which is improper, as in "
            "HyperPrior.bda3()."
        )
        raise ValueError(
            f"prior: {name} must be two Beta parameters > 0; got {value!r:.80}. (1, 1) is uniform."
            + improper * improper_note
        )
    object.__setattr__(prior, name, pair)


def check_concentration(prior: Any, name: str, size: int | None = None) -> None:
    """Check that a field is one Dirichlet parameter, or one for each category.

    Parameters
    ----------
    prior : prior
    name : str
    size : int, optional
        Required number of parameters.
    """
    value = getattr(prior, name)
    try:
        array = np.array(value) if not isinstance(value, str | bytes) else np.array(None)
    except ValueError:
        array = np.array(None)
    numbers = array.dtype.kind in "iuf" and array.ndim <= 1 and array.size > 0
    if not numbers or not ((array > 0) & (array <= _CONCENTRATION_MAX)).all():
        raise ValueError(
            f"prior: {name} must be finite and > 0, at most {_CONCENTRATION_MAX:g}: one number or "
            f"one for each category; got {value!r:.80}. 1.0 is uniform."
        )
    if size is not None and array.shape != (size,):
        raise ValueError(f"prior: {name} must be {size} parameters > 0; got {value!r:.80}.")
    plain = float(array) if array.ndim == 0 else tuple(float(number) for number in array)
    object.__setattr__(prior, name, plain)


def concentration_vector(value: float | tuple[float, ...], categories: int, name: str) -> Array:
    """Return the Dirichlet parameter of every category."""
    values = np.asarray(value, float)
    if values.ndim and len(values) != categories:
        raise ValueError(
            f"prior: {name} must be one number, or one for each of the {categories} categories; "
            f"got {value}."
        )
    return np.array(np.broadcast_to(values, categories), float)


DIFFICULTY_FAMILIES = ("beta", "inflated", "mixture")  # shapes of the distribution
Families = Any  # a type of argument of `family_probabilities`


def family_probabilities(difficulty: object) -> tuple[tuple[str, float], ...]:
    """Return difficulty families with their prior probabilities, in one order.

    Parameters
    ----------
    difficulty : str, sequence of str, or mapping {family: prior probability}
        ``"averaged"`` is all families, equally probable.

    Examples
    --------
    >>> family_probabilities("averaged") == family_probabilities(DIFFICULTY_FAMILIES)
    True
    >>> family_probabilities(["inflated", "beta"])
    (('beta', 0.5), ('inflated', 0.5))
    """
    if isinstance(difficulty, str):
        pairs: list[Any] = [
            (name, 1.0)
            for name in (DIFFICULTY_FAMILIES if difficulty == "averaged" else [difficulty])
        ]
    elif isinstance(difficulty, Mapping):
        pairs = list(difficulty.items())
    else:
        entries = difficulty if isinstance(difficulty, Sequence) else [difficulty]
        pairs = [entry if isinstance(entry, tuple | list) else (entry, 1.0) for entry in entries]
    names = [pair[0] for pair in pairs]
    unknown = [name for name in names if name not in DIFFICULTY_FAMILIES]
    if unknown or not names or len(set(names)) < len(names):
        raise ArgumentError(
            "difficulty",
            " must be 'averaged', or one or several different of "
            f"{', '.join(DIFFICULTY_FAMILIES)}; got {difficulty!r:.80}.",
        )
    numbers = np.array([real_number("difficulty", pair[1]) for pair in pairs])
    if not np.isfinite(numbers).all() or (numbers < 0.0).any() or not numbers.sum() > 0.0:
        raise ArgumentError(
            "difficulty",
            ": prior probabilities of families must be finite, >= 0 and not all 0; got "
            f"{difficulty!r:.80}.",
        )
    share = dict(zip(names, (numbers / numbers.sum()).tolist(), strict=True))
    return tuple((name, share[name]) for name in DIFFICULTY_FAMILIES if share.get(name, 0.0) > 0.0)


INFLATION = (1.0, 1.0, 8.0)  # Dirichlet prior of questions never, always and sometimes solved
_WRONG_ANSWERS_MIN = 20  # possible wrong answers of a question if their number is not stated


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
        check_positive(self, "alpha", "beta")

    def vector(self, categories: int = 2) -> Array:
        """Concentration of wrong and of right: a Beta is a Dirichlet of two categories.

        Examples
        --------
        >>> BetaPrior(2.0, 1.0).vector().tolist()
        [1.0, 2.0]
        """
        return concentration_vector((self.beta, self.alpha), categories, "alpha and beta")


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
    slope_sd : float
        With covariates, the prior sd of a slope, in logits: slopes are normal around 0 in the basis
        of covariates that are uncorrelated over the questions and have sd 1. That is a g-prior
        (Zellner 1986): units of a covariate, the reference level of a category and other ways to
        write the same model do not matter. The default 2.5 allows both no effect and a success rate
        that goes from 1% to 99% over the range of the covariate.
    group_sd : float
        With groups, the scale of the half-normal prior of the sd of group effects, in logits. Where
        that sd is 1, two of three groups have means within 0.27 and 0.73 around a typical one of
        0.5.
    shape_scale : float
        For scored categories, the prior scale of each coefficient of the base measure (see Notes).

    Notes
    -----
    For scored categories p is the expected score of a question on the scale from 0 (lowest) to 1
    (highest), and its distribution is a difficulty family as for right and wrong. Given p, the
    score of a trial is ``s_c`` with probability proportional to ``b_c exp(t s_c)``: an exponential
    family with a base measure b that all questions share, and t such that the expected score is p.
    The log of the base measure is a sum of up to five functions of the level (the ends, then
    polynomials of the score), orthogonal to constants and to the score and of mean square one.
    Their coefficients are Student t with 3 degrees of freedom and scale `shape_scale`: heavy tails,
    because scores of a question within a few hundredths of the scale need coefficients ten times as
    large as usual. With two levels there are none, and p is the success probability.

    See Also
    --------
    BetaPrior : for pooling none and complete.
    DirichletHyperPrior : of scored categories without an order.
    bayesatk.models.build : the model.

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
    slope_sd: float = 2.5
    group_sd: float = 1.0
    shape_scale: float = 2.0

    def __post_init__(self) -> None:
        check_beta_parameters(self, "mean")
        check_beta_parameters(self, "icc", improper=True)
        check_concentration(self, "atoms", 3)
        check_concentration(self, "share", 2)
        check_positive(self, "slope_sd", "group_sd", "shape_scale")
        default = DIFFICULTY_FAMILIES if self.proper else DIFFICULTY_FAMILIES[:1]
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

    def vector(self, categories: int = 2) -> Array:
        """Concentration of the mean: of wrong and of right."""
        return concentration_vector(self.mean[::-1], categories, "mean")

    @property
    def proper(self) -> bool:
        """Whether the prior integrates to one."""
        return self.icc[1] > 0

    @property
    def family_prior(self) -> dict[str, float]:
        """Prior probability of each family with a positive one."""
        return dict(self.families)

    def of_family(self, name: str) -> "HyperPrior":
        """Return the prior with one family only.

        Examples
        --------
        >>> HyperPrior().of_family("inflated").family_prior
        {'inflated': 1.0}
        """
        return replace(self, families=name)

    def fields(
        self, family: str, slopes: int = 0, grouped: bool = False, shapes: int = 0
    ) -> Fields:
        """Return the prior of the hyperparameters of a family.

        The mean and the icc of the mixture family are pairs, of the lower Beta and of the upper.
        The atoms are the shares of questions never solved, always solved and neither.

        Parameters
        ----------
        family : {"beta", "inflated", "mixture"}
        slopes : int
            Number of slopes of covariates.
        grouped : bool
            Whether questions have group effects.
        shapes : int
            Number of functions of the level in the base measure of scored categories.

        Examples
        --------
        >>> [field.name for field in HyperPrior().fields("mixture", slopes=2, grouped=True)]
        ['mean', 'share', 'slopes', 'group_sd', 'icc']
        """
        if family == "mixture":
            share = Field("share", Beta(*self.share))
            means = Field("mean", Beta(*self.mean), 2, "component")
            iccs = Field("icc", Beta(*self.icc), 2, "component")
            effects = self._effects(slopes, grouped, shapes)
            return Fields((means, share, *effects, iccs), ("mean", "icc"))
        shares = [Field("atoms", Dirichlet(self.atoms))] * (family == "inflated")
        mean, icc = Field("mean", Beta(*self.mean)), Field("icc", Beta(*self.icc))
        return Fields((mean, *self._effects(slopes, grouped, shapes), *shares, icc))

    def _effects(self, slopes: int, grouped: bool, shapes: int) -> tuple[Field, ...]:
        shape = Field("shape", StudentT(self.shape_scale, 3.0), shapes, "function")
        return (*_effects(self, slopes, grouped), *(shape,) * (shapes > 0))


def _effects(
    prior: "HyperPrior | DirichletHyperPrior", slopes: int, grouped: bool
) -> tuple[Field, ...]:
    """Return the fields of the effects of covariates and groups on the mean of a question."""
    slope = Field("slopes", Normal(prior.slope_sd), slopes, "direction")
    group_sd = Field("group_sd", HalfNormal(prior.group_sd))
    return (slope,) * (slopes > 0) + (group_sd,) * grouped


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
        check_concentration(self, "concentration")

    def vector(self, categories: int) -> Array:
        """Concentration of each category."""
        return concentration_vector(self.concentration, categories, "concentration")


@dataclass(frozen=True)
class DirichletHyperPrior:
    """Prior of category probabilities without an order over questions, for pooling partial.

    The category probabilities of a question are ``p ~ Dirichlet`` with a mean vector and an
    intraclass correlation; a priori the mean vector is Dirichlet and the correlation
    ``Beta(*icc)``. For two categories this is the Beta family of `HyperPrior`. Questions differ in
    every direction alike, not along the scores, so with many levels intervals of mean scores for
    questions like these are too narrow where scores have an order: `HyperPrior` is the default.

    Parameters
    ----------
    mean : float or tuple of float
        Dirichlet parameters of the mean vector: one number for every category, or one for each.
    icc : (float, float)
        Beta parameters of the prior of the intraclass correlation; (1, 1) is uniform.
    slope_sd, group_sd : float
        As in `HyperPrior`: of effects on the log ratio of the highest category to the lowest.

    See Also
    --------
    HyperPrior : of right and wrong, with other difficulty families.
    DirichletPrior : for pooling none and complete.

    Examples
    --------
    >>> DirichletHyperPrior()
    DirichletHyperPrior(mean=1.0, icc=(1.0, 1.0), slope_sd=2.5, group_sd=1.0)
    """

    mean: float | tuple[float, ...] = 1.0
    icc: tuple[float, float] = (1.0, 1.0)
    slope_sd: float = 2.5
    group_sd: float = 1.0

    def __post_init__(self) -> None:
        check_concentration(self, "mean")
        check_beta_parameters(self, "icc")
        check_positive(self, "slope_sd", "group_sd")

    def fields(self, categories: int, slopes: int = 0, grouped: bool = False) -> Fields:
        """Return the prior of the hyperparameters for a number of categories.

        Examples
        --------
        >>> [field.name for field in DirichletHyperPrior().fields(3, grouped=True)]
        ['mean', 'group_sd', 'icc']
        """
        mean = Field("mean", Dirichlet(tuple(self.vector(categories).tolist())))
        return Fields((mean, *_effects(self, slopes, grouped), Field("icc", Beta(*self.icc))))

    def vector(self, categories: int) -> Array:
        """Concentration of the mean vector."""
        return concentration_vector(self.mean, categories, "mean")


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
        check_positive(self, "concentration", of="answer_prior")
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


@dataclass(frozen=True)
class AnswerHyperPrior:
    """Prior of the agreement of wrong answers, for votes under partial pooling.

    A question has W possible wrong answers, whose shares among its wrong trials are
    ``Dirichlet(c, ..., c)``, independent of how many trials are wrong. All questions of a system
    share ``c = (1 - r) / (W r)``, where r is the intraclass correlation of wrong answers: two of
    them agree with probability ``r + (1 - r) / W``. Where some trial has no answer, abstaining is
    one more category of the Dirichlet distribution, with mean s, and the answers have parameters
    ``c (1 - s)``.

    Parameters
    ----------
    icc : (float, float)
        Beta parameters of the prior of r; (1, 1) is uniform. The prior of s is uniform.
    choices : int, optional
        Number of possible answers of each question, where it is known, as in multiple choice: W is
        one less. By default W is 20, or twice the number of different wrong answers to a question,
        whichever is more.

    See Also
    --------
    AnswerPrior : for pooling none.
    bayesatk.evaluate : takes it as ``answer_prior``.

    Examples
    --------
    >>> AnswerHyperPrior(choices=4)
    AnswerHyperPrior(icc=(1.0, 1.0), choices=4)
    """

    icc: tuple[float, float] = (1.0, 1.0)
    choices: int | None = None

    def __post_init__(self) -> None:
        check_beta_parameters(self, "icc")
        if self.choices is not None:
            choices = whole_number("answer_prior: choices", self.choices, 2)
            object.__setattr__(self, "choices", int(choices))

    def fields(self, unanswered: bool = False) -> Fields:
        """Return the prior of r, and of s where some trial is unanswered.

        Examples
        --------
        >>> [field.name for field in AnswerHyperPrior().fields(True)]
        ['answer_icc', 'unanswered']
        """
        icc = Field("answer_icc", Beta(*self.icc))
        return Fields((icc, *[Field("unanswered", Beta(1.0, 1.0))] * unanswered))

    def wrong_answers(self, distinct: int) -> int:
        """Return W, given the most different wrong answers that were given to a question.

        Examples
        --------
        >>> AnswerHyperPrior().wrong_answers(3), AnswerHyperPrior(choices=4).wrong_answers(3)
        (20, 3)
        """
        if self.choices is None:
            return max(_WRONG_ANSWERS_MIN, 2 * distinct)
        if distinct >= self.choices:
            raise ValueError(
                "answer_prior: choices must be more than the different wrong answers to any "
                f"question; got {self.choices}, and a question with {distinct}. Compare answers "
                "otherwise (bayesatk.AnswerRules(normalise=...)), or leave out choices."
            )
        return self.choices - 1
