"""Families of metrics, and their expected value at a success probability or under a Beta.

A `Family` is a metric before ``k`` is chosen, a `Metric` one member of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from bayesatk._tools.arrays import Array
from bayesatk._tools.messages import Argument, ArgumentError
from bayesatk.metrics import credit as credits
from bayesatk.metrics.category_credit import CategoryCredit
from bayesatk.metrics.credit import Credit, check_k


@dataclass(frozen=True)
class Family:
    """A family of metrics, such as pass@k, for every ``k`` (and ``tau``).

    Parameters
    ----------
    variable : str
        Name of the variable in results, such as ``"pass_at_k"``.
    symbol : str
        Name as typed and printed, such as ``"pass@"``.
    credit : callable
        ``credit(k)``, or ``credit(k, tau)`` when `has_tau`, returning a `Credit`.
    has_k, has_tau : bool
        Which dimensions the variable carries.
    category : callable, optional
        ``category(k)``, returning the `CategoryCredit` of a metric that is defined for scored
        categories too; ``credit`` is then the same metric for the scores 0 and 1.
    on_answers : bool
        Whether the metric judges the answers themselves (a vote); it then has no credit.
    unit : str
        Label of an axis of its values.
    meaning, formula : str
        Definition for the reader of a report, and the value at a success probability p (HTML).
    source : str
        Publication that `bayesatk.cite` names: an arXiv identifier, a DOI, or a short reference.

    See Also
    --------
    bayesatk.metrics.register : makes it known by its symbol, where a saved result is read.

    Examples
    --------
    A new metric is defined by its credit. Here: at least two of k trials succeed.

    >>> from bayesatk.metrics.credit import Credit
    >>> two = Family("two_at_k", "two@", lambda k: Credit.of(j >= 2 for j in range(k + 1)))
    >>> two.at(3).latent(0.5).round(12).item()
    0.5
    """

    variable: str
    symbol: str
    credit: Callable[..., Credit]
    has_k: bool = True
    has_tau: bool = False
    category: Callable[[int], CategoryCredit] | None = None
    on_answers: bool = False
    unit: str = "score"
    meaning: str = "a metric of your own"
    formula: str = ""
    source: str = ""

    def at(self, k: int = 1, tau: float | None = None) -> "Metric":
        """Return the member with this ``k`` (and ``tau``)."""
        if (tau is None) == self.has_tau:
            rule = "needs a tau in [0, 1]" if self.has_tau else "takes no tau"
            raise ValueError(f"tau: {self.symbol}k {rule}; got tau={tau}. Example: 'g-pass@8:0.5'.")
        return Metric(self, check_k(k), tau)


@dataclass(frozen=True)
class Metric:
    """One metric: a family with its ``k`` and ``tau``.

    See Also
    --------
    Family : its family.

    Examples
    --------
    >>> FAMILIES["g-pass@"].at(8, 0.5).label
    'g-pass@8:0.5'
    """

    family: Family
    k: int
    tau: float | None = None

    @property
    def voted(self) -> bool:
        """Whether it is a vote between answers, and not a function of the scores of trials."""
        return self.family.on_answers

    @cached_property
    def credit(self) -> Credit:
        """The credit of k trials as a function of how many of them succeed."""
        credit = self.family.credit(*((self.k,) if self.tau is None else (self.k, self.tau)))
        if not isinstance(credit, Credit) or credit.k != self.k:
            kind = type(credit).__name__
            got = f"one of {credit.k} trials" if isinstance(credit, Credit) else kind
            raise ArgumentError(
                "credit",
                f" of {self.label} must return a Credit of {self.k} trials; got {got}. "
                f"Return bayesatk.metrics.Credit.of(values), with the {self.k + 1} values of 0 to "
                f"{self.k} successes.",
            )
        return credit

    @property
    def category_credit(self) -> CategoryCredit:
        """The credit on categories, or an error that says what the metric needs."""
        if self.family.category is None:
            raise ArgumentError(
                f"{self.label} judges right and wrong, and the data have categories with other "
                "scores. Say which of them succeed, as in ",
                Argument("success", "score >= 0.5"),
                "; metrics of scores are 'mean', 'max@k' and 'min@k'.",
            )
        return self.family.category(self.k)

    @property
    def label(self) -> str:
        """The metric as people write it: ``pass@4``, ``g-pass@8:0.5``."""
        if not self.family.has_k:
            return self.family.symbol
        return f"{self.family.symbol}{self.k}" + ("" if self.tau is None else f":{self.tau:g}")

    def latent(self, p: ArrayLike) -> Array:
        r"""Latent value ``g(p)``: expected credit of ``k`` fresh trials at success probability p.

        .. math:: g(p) = \sum_{j=0}^k x_j \binom{k}{j} p^j (1 - p)^{k - j}

        Parameters
        ----------
        p : array_like, any shape
            Success probabilities in [0, 1].

        Returns
        -------
        ndarray, shape of p
            In the units of the credit. Absolute error below 1e-12.

        Examples
        --------
        >>> FAMILIES["pass@"].at(2).latent([0.0, 0.5, 1.0]).round(12).tolist()
        [0.0, 0.75, 1.0]
        """
        p = np.asarray(p, float)
        with np.errstate(divide="ignore"):
            logs = (np.maximum(log, -1e15).ravel() for log in (np.log(p), np.log1p(-p)))
        return credits.latent(self.credit, *logs)[0].reshape(p.shape)

    def predictive(self, alpha: ArrayLike, beta: ArrayLike) -> Array:
        r"""Posterior predictive value: expected credit of ``k`` fresh trials, ``p ~ Beta(a, b)``.

        .. math:: \sum_{j=0}^k x_j \binom{k}{j} \frac{B(a + j, b + k - j)}{B(a, b)}

        Parameters
        ----------
        alpha, beta : array_like, broadcastable
            Beta parameters, > 0.

        Returns
        -------
        ndarray
            Relative error below 1e-11 for k up to 2000.

        Examples
        --------
        >>> FAMILIES["pass@"].at(2).predictive(1.0, 1.0).round(12).item()  # 1 - 1/3
        0.666666666667
        """
        a, b = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(beta, float))
        value, log_mass, k = np.zeros(a.shape), np.zeros(a.shape), self.k
        for i in range(k):  # log probability of 0 successes
            log_mass += np.log((b + i) / (a + b + i))
        for j, x in enumerate(self.credit.values):
            value += x * np.exp(log_mass)
            if j < k:
                log_mass += np.log((k - j) * (a + j) / ((j + 1) * (b + (k - 1 - j))))
        return value


def _one_trial(k: int) -> Credit:
    del k  # the mean score is that of one trial
    return credits.pass_at(1)


def _no_credit(k: int) -> Credit:
    raise ValueError(
        f"plurality@{k} is a vote between answers: it has no value for a success probability. Its "
        "proxy that has is the strict majority, 'maj@k'."
    )


# The mean score by five names: a result has it under the name that was asked for.
MEAN_NAMES = ("mean", "bayes", "avg", "average", "accuracy")
_G_PASS = "Findings of ACL 2025, 905"
FAMILIES: dict[str, Family] = {family.symbol: family for family in (
    Family(
        "pass_at_k", "pass@", credits.pass_at, unit="probability", source="arXiv:2107.03374",
        meaning="the probability that at least one of k new trials of a question is right",
        formula="E[1 &minus; (1 &minus; p)<sup>k</sup>]",
    ),
    Family(
        "pass_hat_k", "pass^", credits.pass_hat, unit="probability", source="arXiv:2406.12045",
        meaning="the probability that all k new trials of a question are right",
        formula="E[p<sup>k</sup>]",
    ),
    Family(
        "g_pass_at_k", "g-pass@", credits.g_pass_at, has_tau=True, unit="probability",
        source=_G_PASS,
        meaning="the probability that at least a share τ of k new trials of a question is right",
        formula="E[P(X ≥ max(1, ⌈τk⌉))], X ~ Binomial(k, p)",
    ),
    Family(
        "mg_pass_at_k", "mg-pass@", credits.mg_pass_at, unit="score, 0 to 1", source=_G_PASS,
        meaning="the published mean of g-pass@k over the shares τ from 1/2 to 1",
        formula="(2/k) E[max(0, X &minus; ⌈k/2⌉)], X ~ Binomial(k, p)",
    ),
    Family(
        "maj_at_k", "maj@", credits.maj_at, unit="probability",
        meaning="the probability that more than half of k new trials of a question are right",
        formula="E[P(X &gt; k/2)], X ~ Binomial(k, p)",
    ),
    Family(
        "auc_at_k", "auc@", credits.auc_at, unit="area, 0 to 1", source="arXiv:2601.08763",
        meaning="the area under pass@1 to pass@k, over its width",
        formula=(
            "Σ<sub>j</sub> w<sub>j</sub> E[1 &minus; (1 &minus; p)<sup>j</sup>], "
            "trapezoid weights w"
        ),
    ),
    Family(
        "max_at_k", "max@", credits.pass_at, category=CategoryCredit, source="arXiv:2510.23393",
        meaning="the expected highest score among k new trials of a question",
        formula="E[max of k scores]",
    ),
    Family(
        "min_at_k", "min@", credits.pass_hat, category=partial(CategoryCredit, lowest=True),
        meaning="the expected lowest score among k new trials of a question",
        formula="E[min of k scores]",
    ),
    Family(
        "plurality_at_k", "plurality@", _no_credit, on_answers=True, unit="probability",
        meaning=(
            "the probability that the most frequent answer of k new trials is right, ties at random"
        ),
        formula="E[P(the plurality of k answers is right)]",
    ),
    *(
        Family(
            name, name, _one_trial, has_k=False, category=CategoryCredit,
            unit="mean score", source="arXiv:2510.04265",
            meaning=(
                "the expected score of a new trial; for right and wrong the success probability"
            ),
            formula="E[p]",
        )
        for name in MEAN_NAMES
    ),
)}  # fmt: skip


def _no_credit_of_costs(k: int) -> Credit:
    raise ValueError("costs have no value for a success probability; ask bayesatk.evaluate.")


# Metrics of what trials cost; `bayesatk.evaluate` computes them beside the metrics of scores.
COST, COST_PER_SUCCESS = COSTS = (
    Metric(
        Family(
            "cost", "cost", _no_credit_of_costs, has_k=False, unit="cost of a trial",
            meaning="the expected cost of a new trial", formula="E[c]",
        ),
        1,
    ),
    Metric(
        Family(
            "cost_per_success", "cost/success", _no_credit_of_costs, has_k=False,
            unit="cost of a success", source="arXiv:2504.13359",
            meaning="the expected cost of a new trial over the probability that it succeeds",
            formula="E[c] / E[p]",
        ),
        1,
    ),
)  # fmt: skip
