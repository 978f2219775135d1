"""Claims as people write them, each with its probability and a verdict, from Python or a file."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesatk._tools.messages import ArgumentError, proper_probability, real_number, whole_number
from bayesatk._tools.words import probability_words, share_error
from bayesatk.comparison.joint.posterior import joint_attrs
from bayesatk.comparison.pairs.systems import compare
from bayesatk.comparison.pairs.verdicts import PairSentences, named
from bayesatk.costs.tables import pareto
from bayesatk.metrics.grid import Metric
from bayesatk.priors.choice import prior_from
from bayesatk.results.costs import read_result
from bayesatk.results.result import Fit, Result, analysis_group, with_analyses
from bayesatk.results.schema import TARGET_NAMES, metric_values

HOLDS, REFUTED, OPEN = "holds", "refuted", "open"
EXIT_CODES = {HOLDS: 0, REFUTED: 1, OPEN: 3}
_SHARED = ("metric", "target", "prob")  # may stand once, for all claims of a file


@dataclass(frozen=True)
class Claim:
    """One claim.

    Parameters
    ----------
    says : str
        Its kind.
    system : label
        Which system it is about.
    number : int
        Its place among all claims, from 1.
    metric : str, optional
        One metric of the result; default: its first.
    target : str
        "questions", "population" or "new_groups".
    prob : float
        Probability from which on it holds; it is refuted at ``1 - prob`` or less.
    other : label, optional
        The system that it is compared with.
    by, within : float
        Margins, in units of the metric.
    top : int
        Number of ranks.
    k : int, optional
        Largest number of tries, of claims about cost.
    share, spend : float
        Share of questions solved, and cost per question.
    """

    says: str
    system: Any
    number: int = 1
    metric: str | None = None
    target: str = "population"
    prob: float = 0.95
    other: Any = None
    by: float = 0.0
    within: float = 0.0
    top: int = 1
    k: int | None = None
    share: float = 0.0
    spend: float = 0.0

    def refuse(self, key: str, rule: str, remedy: str) -> ArgumentError:
        """Return the refusal of one of its keys."""
        value = getattr(self, key, None)
        return ArgumentError(
            f"claim {self.number} ({self.says!r} of {self.system!r}): {key} must {rule}; got "
            f"{value!r:.80}. {remedy}"
        )


Answer = tuple[float, float, str]  # probability, its Monte Carlo error, and the claim in words


@dataclass(frozen=True)
class Evidence:
    """The results that claims are checked against.

    Parameters
    ----------
    fit : Result or None
        Of metrics.
    costs : Result or None
        Of `bayesatk.costs.evaluate_cost`.
    """

    fit: Result | None
    costs: Result | None
    _compared: dict[float, Result] = field(default_factory=dict)

    def of(self, claim: Claim, name: str, maker: str) -> Result:
        """Return a result, with the systems of the claim in it, or refuse the claim."""
        result: Result | None = getattr(self, name)
        if result is None:
            raise ArgumentError(
                f"claim {claim.number} ({claim.says!r} of {claim.system!r}) needs {maker}, which "
                f"was not given: pass {name}={maker}."
            )
        for key in ("system", *["other"] * ("other" in KINDS[claim.says].needs)):
            if getattr(claim, key) not in result.systems:
                names = ", ".join(map(repr, result.systems))
                raise claim.refuse(key, f"be one of {names:.200}", "Name a system of the data.")
        if claim.other is not None and claim.other == claim.system:
            raise claim.refuse("other", "be another system", "Name two systems.")
        targets = result.targets if name == "fit" else tuple(TARGET_NAMES)[:2]
        if claim.target not in targets:
            raise claim.refuse("target", f"be one of {', '.join(targets)}", f"Try {targets[0]!r}.")
        return result

    def compared(self, claim: Claim, rope: float = 0.0) -> tuple[Result, Metric, int]:
        """Return the comparison with a margin, the metric, and the place of the target."""
        fit = self.of(claim, "fit", "bayesatk.evaluate(data, metrics)")
        if len(fit.systems) < 2:
            raise claim.refuse("system", "have a rival", "Evaluate two systems or more together.")
        if rope not in self._compared:
            attrs = joint_attrs(fit)
            prior = prior_from(json.loads(attrs["joint_prior"])) if "joint_prior" in attrs else None
            seed = int(attrs["seed"]) if str(attrs.get("seed", "")).isdecimal() else 0
            tree = compare(fit, rope=rope, prior=prior, rng=seed, progress=False)
            self._compared[rope] = Result.of(tree)
        compared, labels = self._compared[rope], [metric.label for metric in fit.metrics]
        label = labels[0] if claim.metric is None else claim.metric
        if label not in labels:
            raise claim.refuse(
                "metric", f"be one of {', '.join(labels)}", "Evaluate it, or claim one of these."
            )
        return compared, fit.metrics[labels.index(label)], fit.targets.index(claim.target)

    def draws(self, claim: Claim, name: str, **where: Any) -> tuple[list[Any], Any]:
        """Return the systems of a result of costs, and draws (draws, systems) of a quantity."""
        costs = self.of(claim, "costs", "bayesatk.costs.evaluate_cost(data)")
        read_result(costs)
        for key, value in where.items():
            levels = costs.posterior[key].values.tolist() if key in costs.posterior.dims else []
            if value not in levels:
                option = {"budget": "spend"}.get(key, key)
                raise claim.refuse(
                    option, f"be one of {levels}, as evaluated",
                    f"Evaluate it: bayesatk.costs.evaluate_cost(data, {option}=[{value:g}]).",
                )  # fmt: skip
        held = costs.posterior[name].sel(target=claim.target, **where)
        values = held.transpose("chain", "draw", "system").values
        return costs.systems, values.reshape(-1, len(costs.systems))

    def tries(self, claim: Claim) -> int:
        """Return the k of a claim about cost: its own, or the smallest that was evaluated."""
        costs = self.of(claim, "costs", "bayesatk.costs.evaluate_cost(data)")
        held = costs.posterior["k"].values.tolist() if "k" in costs.posterior.dims else []
        return int(min(held, default=1) if claim.k is None else claim.k)


def _in_top(claim: Claim, evidence: Evidence) -> Answer:
    """Return the probability of one of the first ranks, as a leaderboard has it."""
    compared, metric, target = evidence.compared(claim)
    size = len(compared.systems)
    if not claim.top < size:
        raise claim.refuse("top", f"be less than the {size} systems", "All are among so many.")
    ranks = metric_values(compared.group("ranks"), metric).isel(target=target)
    first = ranks.sel(system=claim.system).isel(rank=slice(claim.top)).values
    if np.isnan(first).any():
        raise claim.refuse("system", "share questions with all others", "Claim pairs: 'ahead of'.")
    place = "the best" if claim.top == 1 else f"in the top {claim.top}"
    probability = float(first.sum())
    error = share_error(probability, float(compared.group("ranks").attrs["effective_draws"]))
    return (probability, error, f"is {place} of {size} systems {_where(claim, metric)}")


def _pair(claim: Claim, evidence: Evidence) -> Answer:
    """Return the probability of a difference beyond a margin, or within one, as tables have it."""
    compared, metric, target = evidence.compared(claim, claim.by or claim.within)
    places = (compared.systems.index(name) for name in (claim.system, claim.other))
    contrast = PairSentences(compared).rows(metric, *places)[target]
    if np.isnan(contrast["mean"]):
        raise claim.refuse("other", "share a question with the system", "Claim another pair.")
    beyond = "prob_above_rope" if claim.by else "prob_greater"
    probability = contrast["prob_in_rope" if claim.within else beyond]
    error = contrast["monte_carlo_error"]
    if claim.by or claim.within:
        draws = float(compared.group("comparison").attrs["effective_draws"])
        error = share_error(probability, draws)
    relation = f"within {claim.within:g}" if claim.within else "ahead"
    words = f"is {relation} of {named(claim.other)}{_margin(claim)} {_where(claim, metric)}"
    return probability, error, words


def _cheaper(claim: Claim, evidence: Evidence) -> Answer:
    """Return the joint probability of both, over draws of success and cost together."""
    k = evidence.tries(claim)
    systems, solved = evidence.draws(claim, "pass_at_k", k=k)
    _, cost = evidence.draws(claim, "cost_to_success", k=k)
    i, j = (systems.index(name) for name in (claim.system, claim.other))
    both = (solved[:, i] >= solved[:, j] - claim.by) & (cost[:, i] < cost[:, j])
    probability = float(both.mean())
    return (
        probability, share_error(probability, len(both)),
        f"is not worse than {named(claim.other)}{_margin(claim)} in pass@{k}, and cheaper, on "
        f"{TARGET_NAMES[claim.target]}",
    )  # fmt: skip


def _on_the_front(claim: Claim, evidence: Evidence) -> Answer:
    k = evidence.tries(claim)
    evidence.draws(claim, "pass_at_k", k=k)  # refuses what was not evaluated
    rows = pareto(evidence.of(claim, "costs", ""), k).set_index(["system", "target"])
    row = rows.loc[(claim.system, claim.target)]
    return (
        float(row["prob_pareto"]), float(row["prob_error"]),
        f"is on the Pareto front of pass@{k} and its cost, on {TARGET_NAMES[claim.target]}",
    )  # fmt: skip


def _solves(claim: Claim, evidence: Evidence) -> Answer:
    systems, solved = evidence.draws(claim, "coverage_at_budget", budget=claim.spend)
    probability = float((solved[:, systems.index(claim.system)] > claim.share).mean())
    costs = evidence.of(claim, "costs", "")
    unit = str(costs.tree.attrs.get("cost_unit", ""))
    amount = f"{claim.spend:g}{f' {unit}' * bool(unit)}"
    return (
        probability, share_error(probability, len(solved)),
        f"solves more than {claim.share:g} of {TARGET_NAMES[claim.target]} for {amount} a question",
    )  # fmt: skip


def _where(claim: Claim, metric: Metric) -> str:
    return f"in {metric.label} on {TARGET_NAMES[claim.target]}"


def _margin(claim: Claim) -> str:
    return f" by more than {claim.by:g}" * (claim.by > 0.0)


@dataclass(frozen=True)
class Kind:
    """A kind of claim: how it is answered, which keys it needs, and which it may have."""

    answer: Callable[[Claim, Evidence], Answer]
    needs: tuple[str, ...] = ()
    may_have: tuple[str, ...] = ("metric",)


KINDS: Mapping[str, Kind] = {
    "best": Kind(_in_top),
    "in the top": Kind(_in_top, ("top",)),
    "ahead of": Kind(_pair, ("other",), ("metric", "by")),
    "equivalent to": Kind(_pair, ("other", "within")),
    "not worse and cheaper than": Kind(_cheaper, ("other",), ("by", "k")),
    "on the Pareto front": Kind(_on_the_front, (), ("k",)),
    "solves more than": Kind(_solves, ("share", "spend"), ()),
}
OF_COSTS = ("not worse and cheaper than", "on the Pareto front", "solves more than")


def check_claims(
    claims: str | Path | Sequence[Mapping[str, Any]],
    fit: Fit | None = None,
    costs: Fit | None = None,
) -> xr.DataTree:
    r"""Check claims against a result: the posterior probability of each, and a verdict.

    Probabilities are those of the tables: given the observed trials, over the unknown success
    probabilities and, for questions like these, over which questions are drawn.

    Parameters
    ----------
    claims : path or sequence of mappings
        A TOML file with a table ``[[claim]]`` for each, or the same as mappings. Each ``says`` its
        kind, and names the ``system`` that it is about:

        =================================  ======================================================
        says                               needs, and may have in parentheses
        =================================  ======================================================
        ``"best"``                         (``metric``)
        ``"in the top"``                   ``top``, a number of ranks (``metric``)
        ``"ahead of"``                     ``other`` (``by``, a margin; ``metric``)
        ``"equivalent to"``                ``other``, ``within``, a margin (``metric``)
        ``"not worse and cheaper than"``   ``other`` (``by``, a margin of pass@k; ``k`` tries)
        ``"on the Pareto front"``          (``k`` tries)
        ``"solves more than"``             ``share`` of the questions, ``spend`` per question
        =================================  ======================================================

        All may have ``target`` (default: ``"population"``) and ``prob``, the probability that
        the claim needs (0.95). ``metric``, ``target`` and ``prob`` may stand above all tables, for
        all claims.
    fit : xarray.DataTree, optional
        From `bayesatk.evaluate`, `bayesatk.sample`, `bayesatk.compare` or `bayesatk.leaderboard`,
        for the first four kinds.
    costs : xarray.DataTree, optional
        From `bayesatk.costs.evaluate_cost`, for the last three.

    Returns
    -------
    xarray.DataTree
        The result (that of costs, if there is no other) with the group ``claims``, which
        ``bayesatk.table(tree, "claims")`` shows, a row for each claim: ``claim`` (its number),
        ``says``, ``system``, ``probability``, its ``monte_carlo_error``, ``needed``, the
        ``verdict`` ("holds", "refuted": ``1 - prob`` or less, or "open") and a ``sentence``.
        Attributes: ``exit_code`` (0 all hold, 1 one is refuted, 3 one is open).

    Raises
    ------
    ValueError
        Of a claim that the results cannot answer, by its number, key and value.

    See Also
    --------
    bayesatk.claim : the sentence that a result supports.
    bayesatk.costs.pareto : the Pareto set of cost and success.

    Notes
    -----
    ``best`` and ``in the top`` are sums of probabilities of ranks (ties are broken at random), as
    `bayesatk.leaderboard` has them; ``ahead of`` is ``prob_greater`` of `bayesatk.compare`, and
    with a margin ``prob_above_rope``; ``equivalent to`` is ``prob_in_rope``. ``not worse and
    cheaper than`` is the probability of both together, over joint draws of pass@k and of the cost
    of at most k tries; ``on the Pareto front`` is ``prob_pareto``. ``solves more than`` is about
    ``coverage_at_budget``: tries stop at the first success. Several claims at 0.95 each are not all
    right with 0.95.

    Examples
    --------
    >>> import bayesatk
    >>> runs = {"a": [[1, 1, 1, 1]] * 6, "b": [[1, 0, 1, 0]] * 6}
    >>> fit = bayesatk.evaluate(runs, "bayes", pooling="none", rng=1)
    >>> claims = [{"says": "ahead of", "system": "a", "other": "b", "by": 0.9}]
    >>> checked = check_claims(claims, fit)
    >>> print(bayesatk.table(checked, "claims"))
    REFUTED: a is ahead of b by more than 0.9 in bayes on questions like these with probability ...
    """
    read = read_claims(claims)
    if fit is None and costs is None:
        raise ArgumentError(
            "a result must be given: fit=bayesatk.evaluate(data, metrics), or "
            "costs=bayesatk.costs.evaluate_cost(data)."
        )
    results = [None if tree is None else Result.of(tree) for tree in (fit, costs)]
    evidence = Evidence(results[0], results[1])
    rows = [_row(claim, KINDS[claim.says].answer(claim, evidence)) for claim in read]
    table = pd.DataFrame(rows)
    codes = {EXIT_CODES[verdict] for verdict in table["verdict"]}
    attrs: dict[str, Any] = {
        "exit_code": next(code for code in (1, 3, 0) if code in codes),
        "citations": [],
    }
    base = evidence.fit or evidence.costs
    assert base is not None
    return with_analyses(base.tree, {"claims": analysis_group(table, ["claim"], attrs)})


def _row(claim: Claim, answer: Answer) -> dict[str, Any]:
    """Return the row of a claim, with its verdict."""
    chance, error, words = answer
    verdict = HOLDS if chance >= claim.prob else REFUTED if 1.0 - chance >= claim.prob else OPEN
    sentence = (
        f"{verdict.upper()}: {named(claim.system)} {words} with probability "
        f"{probability_words(chance, error)} (needed: {claim.prob:g})."
    )
    return {
        "claim": claim.number, "says": claim.says, "system": claim.system,
        "target": claim.target, "probability": chance, "monte_carlo_error": error,
        "needed": claim.prob, "verdict": verdict, "sentence": sentence,
    }  # fmt: skip


def read_claims(source: str | Path | Sequence[Mapping[str, Any]]) -> list[Claim]:
    r"""Read claims from a TOML file, or mappings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "claims.toml"
    >>> _ = path.write_text('prob = 0.9\n[[claim]]\nsays = "best"\nsystem = "a"\n')
    >>> [(claim.says, claim.system, claim.prob) for claim in read_claims(path)]
    [('best', 'a', 0.9)]
    """
    defaults: dict[str, Any] = {}
    tables: Any = source
    if isinstance(source, str | Path):
        try:
            content = tomllib.loads(Path(source).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"claims must be a TOML file; {source} is none: {error}.") from None
        tables = content.pop("claim", None)
        unknown = [key for key in content if key not in _SHARED]
        if unknown:
            raise ValueError(
                f"claims must have the keys {', '.join(_SHARED)} and tables [[claim]]; {source} "
                f"has {unknown[0]!r}. Put it into a table [[claim]]."
            )
        defaults = content
    listed = isinstance(tables, list | tuple) and all(isinstance(t, Mapping) for t in tables)
    if not (listed and tables):
        raise ValueError(
            f"claims must have a table for each claim; got {tables!r:.80}. Write [[claim]], says = "
            '"best", system = "NAME".'
        )
    return [_claim(number, table, defaults) for number, table in enumerate(tables, 1)]


def _claim(number: int, table: Mapping[str, Any], defaults: Mapping[str, Any]) -> Claim:
    """Return one claim, with the keys of its kind and no others."""
    says, where = table.get("says"), f"claim {number}"
    if says not in KINDS:
        kinds = ", ".join(map(repr, KINDS))
        raise ValueError(f"{where}: says must be one of {kinds}; got {says!r:.80}.")
    kind = KINDS[str(says)]
    needed = ("says", "system", *kind.needs)
    keys = (*needed, *kind.may_have, "target", "prob")
    lacking = [key for key in needed if key not in table]
    unknown = [key for key in table if key not in keys]
    if lacking or unknown:
        fault = f"it lacks {lacking[0]!r}" if lacking else f"it has {unknown[0]!r}"
        raise ValueError(f"{where} ({says!r}) must have keys from {', '.join(keys)}; {fault}.")
    shared = {key: value for key, value in defaults.items() if key in keys}
    claim = Claim(**{"number": number, **shared, **table})
    for name in ("share", "by", "within", "spend"):
        value = real_number(f"{where}: {name}", getattr(claim, name))
        if name != "share" and (value < 0.0 or (name in kind.needs and value == 0.0)):
            raise claim.refuse(name, "be above 0" if name in kind.needs else "be 0 or more", "")
    whole_number(f"{where}: top", claim.top)
    if claim.k is not None:
        whole_number(f"{where}: k", claim.k)
    proper_probability(f"{where}: prob", claim.prob, 0.95, least=0.5)
    if claim.target not in TARGET_NAMES:
        raise claim.refuse("target", f"be one of {', '.join(TARGET_NAMES)}", "Try 'population'.")
    return claim


def asked_of_costs(claims: Sequence[Claim]) -> tuple[list[int], list[float]]:
    """Return the k and the budgets that claims about cost need."""
    about = [claim for claim in claims if claim.says in OF_COSTS]
    ks = sorted({claim.k for claim in about if claim.k is not None}) or [1]
    return ks, sorted({claim.spend for claim in about if claim.says == "solves more than"})
