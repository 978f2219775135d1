"""Cumulants of credits given counts, when p is drawn from one of several priors.

A prior ("node") has Betas and atoms at 0 and 1; given it and counts of right and wrong trials, p
has the density ``prior(p) p^c (1-p)^f``. On the points of one quadrature rule the weights of a
node and a state are a product, so expectations for all nodes and states are one matrix product;
an atom is one more point. Nodes of similar concentration share a rule; what no rule of reasonable
size resolves is integrated state by state. Few trials need no rule: powers of credits are sums of
the probabilities of how many of some more trials are right, so the probabilities of how many of
all trials are right are all that is needed of a node. Where a judge that errs marked the trials
(nodes with rates), a state is a mixture of states of right trials, and its expectations are
mixtures of theirs.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln

from bayesatk._tools.arrays import PROBABILITY_FLOOR, Array, Flags, Indices, Ints, exp_or_zero
from bayesatk.core.numerics.quadrature import BetaRule, beta_rule, resolving_degree
from bayesatk.core.pooling.marks import right_counts, right_given_marked
from bayesatk.core.pooling.nodes import Nodes
from bayesatk.core.pooling.states import States
from bayesatk.core.question.bernstein import elevate_degree, power_coefficients
from bayesatk.core.question.beta_binomial import beta_binomial_moments, latent_on_nodes
from bayesatk.metrics.credit import Credit, log_binomials

_MAX_FLOATS_PER_BLOCK = 4_000_000  # 32 MB
_RULE_DEGREES = (60.0, 200.0, 3000.0, 50_000.0)  # beyond the last there is no rule
_LONG_TAIL_PARAMETER_MAX = 0.1  # of a Beta, below which a rule needs many more points in its tails
RULE_PARAMETER_FLOOR = 1e-8  # of Betas: a rule for it leaves out 2e-10 of the probability
_STATE_DEGREE_MAX = 20_000.0  # of a rule that shares its points between states
_OVERLAP_MIN = 1e-140  # of prior and likelihood, each at most one: far above underflow
_RIGHT_COUNTS_MAX = 300  # possible numbers of right trials, up to which no rule is needed
_LOGIT_MAX = 40.0  # beyond it p is 0 or 1 to double precision
_RELATIVE_VARIANCE_MIN = 1e-7  # over the squared mean; below it a third cumulant is rounding error


def few_trials(states: States, credits: Sequence[Credit]) -> bool:
    """Whether trials are whole and few enough for exact sums instead of quadrature."""
    later = 3 * max(credit.k for credit in credits)
    whole_counts = not (states.counts % 1).any()
    return whole_counts and int(states.trials.max(initial=0)) + later < _RIGHT_COUNTS_MAX


class Cumulants(NamedTuple):
    """Mean, variance and third cumulant of credits; each (nodes, states, credits)."""

    mean: Array
    variance: Array
    third: Array


def credit_cumulants(nodes: Nodes, states: States, credits: Sequence[Credit]) -> Cumulants:
    """Cumulants of credits of a question in each state, given each node.

    Parameters
    ----------
    nodes : Nodes
    states : States
        Without prior trials; counts may be fractions.
    credits : sequence of Credit

    Examples
    --------
    >>> from bayesatk.metrics.credit import pass_at
    >>> given = credit_cumulants(Nodes.single(1.0, 1.0), States.of([1], [3]), [pass_at(1)])
    >>> [values.round(6).item() for values in given]  # Beta(2, 3)
    [0.4, 0.04, 0.002286]
    """
    right = states if nodes.rates is None else right_counts(states)
    # Sums over states are matrix products: states come last in memory.
    empty = np.zeros((3, len(nodes), len(credits), len(states)))
    totals = Cumulants(*np.swapaxes(empty, 2, 3))
    width = len(states) * (3 * len(credits) if nodes.rates is None else len(right))
    step = max(1, _MAX_FLOATS_PER_BLOCK // max(width, 1))
    for block in (
        np.arange(start, min(start + step, len(nodes))) for start in range(0, len(nodes), step)
    ):
        nodes_of_block = nodes.among(block)
        right_probability = (
            None if nodes.rates is None else right_given_marked(nodes_of_block, states, right)
        )
        for rows, columns, cumulants in _of_right_trials(nodes_of_block, right, credits):
            if right_probability is None:
                for total, values in zip(totals, cumulants, strict=True):
                    total[np.ix_(block[rows], columns)] = values
            else:
                _mix(totals, block[rows], right_probability[rows][:, :, columns], cumulants)
    return totals if nodes.rates is None else _centred(totals)


def _mix(totals: Cumulants, rows: Indices, chance: Array, cumulants: Cumulants) -> None:
    """Add raw moments, weighted by the chances of right trials (nodes, states, right)."""
    mean, variance, third = cumulants
    square = mean**2
    raw = mean, variance + square, third + mean * (3.0 * variance + square)
    for total, values in zip(totals, raw, strict=True):
        total[rows] += chance @ values


def _centred(raw: Cumulants) -> Cumulants:
    """Cumulants from raw moments."""
    first, second, third = raw
    central = third - first * (3.0 * second - 2.0 * first**2)
    return Cumulants(first, np.maximum(second - first**2, 0.0), central)


def _of_right_trials(
    nodes: Nodes, states: States, credits: Sequence[Credit]
) -> Iterator[tuple[Indices, Indices, Cumulants]]:
    """Yield nodes, states and their cumulants, where states are counts of right trials."""
    right, wrong = states.successes, states.trials - states.successes
    if few_trials(states, credits):
        yield np.arange(len(nodes)), np.arange(len(states)), _of_few_trials(nodes, states, credits)
        return
    unresolved = resolving_degree(right, wrong) > _STATE_DEGREE_MAX
    with_rule, without_rule = np.flatnonzero(~unresolved), np.flatnonzero(unresolved)
    degree = _degrees(nodes, right[~unresolved], wrong[~unresolved], credits)
    long_tailed = np.minimum(nodes.alpha, nodes.beta).min(axis=1) < _LONG_TAIL_PARAMETER_MAX
    beyond = 2 * len(_RULE_DEGREES)
    label = np.minimum(2 * np.searchsorted(_RULE_DEGREES, degree) + long_tailed, beyond)
    if len(without_rule):
        rows = np.arange(len(nodes))
        yield rows, without_rule, _exact(nodes, right[without_rule], wrong[without_rule], credits)
    for band in np.unique(label) if len(with_rule) else ():
        rows = np.flatnonzero(label == band)
        band_states = nodes.among(rows), right[with_rule], wrong[with_rule]
        if band == beyond:
            yield rows, with_rule, _exact(*band_states, credits)
            continue
        # The tails of a single node are not cut off.
        parameter_min = 0.0 if len(nodes) == 1 else RULE_PARAMETER_FLOOR
        a = max(float(band_states[0].alpha.min() + band_states[1].min()), parameter_min)
        b = max(float(band_states[0].beta.min() + band_states[2].min()), parameter_min)
        rule = beta_rule(a, b, float(degree[rows].max()))
        for chunk, cumulants in _on_rule(*band_states, rule, credits):
            yield rows, with_rule[chunk], cumulants


def _degrees(nodes: Nodes, right: Ints, wrong: Ints, credits: Sequence[Credit]) -> Array:
    """Degree of a rule that resolves all states and credits at each node."""
    # Squares of steps at one end are kernels themselves; other credits have their degree.
    ends = [c for c in credits if c.shape == "threshold" and c.threshold in (1, c.k)]
    missed = max((3 * c.k for c in ends if c.threshold == 1), default=0)
    hit = max((3 * c.k for c in ends if c.threshold == c.k), default=0)
    inner = max((3 * c.k for c in credits if c not in ends), default=0)
    degree = np.zeros(len(nodes))
    for up, down in {(0, 0), (hit, 0), (0, missed)}:
        for _, alpha, beta in nodes.components:
            needed = resolving_degree(alpha[:, None] + right + up, beta[:, None] + wrong + down)
            degree = np.maximum(degree, needed.max(axis=1, initial=0.0))
    return degree + inner


def _on_rule(
    nodes: Nodes, right: Ints, wrong: Ints, rule: BetaRule, credits: Sequence[Credit]
) -> Iterator[tuple[slice, Cumulants]]:
    """Yield cumulants of some states, on the points of a rule.

    Moments are taken about the mean of a state over all nodes, and of the smaller of a credit and
    its complement: squares about zero leave no digits to the variance of many trials.
    """
    interior_rule, prior = prior_on_rule(nodes, rule)
    rule = interior_rule.with_ends()
    log_likelihood = _kernels(right, wrong, rule)
    likelihood = _exponential(log_likelihood)
    total = prior @ likelihood.T
    node, state = np.nonzero(total < _OVERLAP_MIN)
    underflowed_weights = _exponential(
        _log_prior(nodes.among(node), interior_rule) + log_likelihood[state]
    )
    total[node, state] = 1.0
    low, high = latent_on_nodes(credits, rule)
    average_likelihood = likelihood * prior.sum(axis=0)
    scale = np.maximum(average_likelihood.sum(axis=1, keepdims=True), PROBABILITY_FLOOR)
    mean, complement = average_likelihood @ low / scale, average_likelihood @ high / scale
    step = max(1, _MAX_FLOATS_PER_BLOCK // (max(len(nodes), len(rule)) * 3 * len(credits)))
    for start in range(0, len(likelihood), step):
        chunk = slice(start, start + step)
        gap = np.where(
            mean[chunk] <= complement[chunk],
            low[:, None] - mean[chunk],
            complement[chunk] - high[:, None],
        )
        powers = np.empty((*gap.shape[:2], 3, gap.shape[2]))
        powers[:, :, 0] = gap
        np.multiply(gap, gap, out=powers[:, :, 1])
        np.multiply(powers[:, :, 1], gap, out=powers[:, :, 2])  # a power of three is slow
        joint = (likelihood[chunk].T[..., None, None] * powers).reshape(len(rule), -1)
        raw = (prior @ joint).reshape(len(nodes), *powers.shape[1:])
        raw /= total[:, chunk, None, None]
        inside = (state >= start) & (state < start + step)
        column = state[inside] - start
        weights = underflowed_weights[inside]
        weights = weights / weights.sum(axis=1, keepdims=True)
        raw[node[inside], column] = np.einsum("ir,rick->ick", weights, powers[:, column])
        first, variance, third = _centred(Cumulants(*np.moveaxis(raw, 2, 0)))
        yield chunk, Cumulants(mean[chunk] + first, variance, third)


def _of_few_trials(nodes: Nodes, states: States, credits: Sequence[Credit]) -> Cumulants:
    """Cumulants of states of few trials, by the probability of each number of right trials.

    Later trials bring every question to the same number N of trials: with c of n trials right, j of
    the N - n later ones are right if c + j of N are. All states and powers of credits therefore
    use the same probabilities. Cumulants are those of a credit or of its complement, whichever is
    smaller on average, so that saturated data lose no digits.
    """
    total = int(states.trials.max()) + 3 * max(credit.k for credit in credits)
    right_of_all = np.arange(total + 1)
    logs = nodes.log_likelihood(right_of_all, total - right_of_all)
    chance = np.exp(logs - logs.max(axis=1, keepdims=True))
    counts = np.stack([states.successes, states.trials]).astype(np.int64)
    state_factors, factors = _factors(counts.tobytes(), total, tuple(credits))
    first = np.tensordot(chance.sum(axis=0), factors[:, :, 0], 1)  # of credits and complements
    is_smaller = first[0] <= first[1]
    factors = np.where(is_smaller, factors[:, 0], factors[:, 1])
    probability = chance @ state_factors
    powers = (chance @ factors.reshape(total + 1, -1)).reshape(len(nodes), *factors.shape[1:])
    node, underflowed = np.nonzero(probability < _OVERLAP_MIN)
    for state in np.unique(underflowed):
        rows, possible = node[underflowed == state], state_factors[:, state] > 0.0
        conditional = _exponential(logs[rows][:, possible])
        powers[rows, ..., state] = np.tensordot(conditional, factors[possible, ..., state], 1)
        probability[rows, state] = conditional @ state_factors[possible, state]
    powers /= probability[:, None, None]
    return _of_powers(powers, is_smaller)


@lru_cache(maxsize=1)  # all blocks of points repeat the call
def _factors(counts: bytes, total: int, credits: tuple[Credit, ...]) -> tuple[Array, Array]:
    """Return factors of the probabilities of right trials in the expected powers of credits.

    Returns
    -------
    ndarray, shape (total + 1, states)
        Of the probability of the state itself.
    ndarray, shape (total + 1, 2, 3, credits, states)
        Of the first three powers of credits, and of those of their complements.
    """
    right, trials = np.frombuffer(counts, np.int64).reshape(2, -1)
    coefficients = power_coefficients(credits)
    state_factors = np.zeros((total + 1, len(trials)))
    factors = np.zeros((total + 1, coefficients.shape[1], len(trials)))
    for size in np.unique(trials)[::-1]:
        coefficients = elevate_degree(coefficients, total - int(size))
        of_size = np.flatnonzero(trials == size)
        orders = np.exp(log_binomials(len(coefficients) - 1))[:, None]
        row = right[of_size] + np.arange(len(coefficients))[:, None]
        state_factors[row, of_size] = orders
        factors[row, :, of_size] = (orders * coefficients)[:, None]
    factors = factors.reshape(total + 1, 2, 3, len(credits), len(trials))
    for array in (state_factors, factors):
        array.setflags(write=False)  # cached
    return state_factors, factors


def _of_powers(powers: Array, is_smaller: Flags) -> Cumulants:
    """Cumulants of credits from expected powers (nodes, 3, credits, states) of these, or of theirs.

    Parameters
    ----------
    is_smaller : ndarray of bool, shape (credits, states)
        Whether powers are those of the credit, not of its complement.
    """
    first, second, third = np.moveaxis(powers, 1, 0)
    square = first**2
    variance = np.maximum(second - square, 0.0)
    third = third - first * (3.0 * second - 2.0 * square)
    third *= np.where(is_smaller, 1.0, -1.0)  # an odd cumulant of 1 - g has the other sign
    third *= variance > _RELATIVE_VARIANCE_MIN * square
    mean = np.where(is_smaller, first, 1.0 - first)
    return Cumulants(*(np.swapaxes(values, 1, 2) for values in (mean, variance, third)))


def _exact(nodes: Nodes, right: Ints, wrong: Ints, credits: Sequence[Credit]) -> Cumulants:
    """Means and variances state by state; third cumulants of densities so narrow are zero."""
    shape = (len(nodes), len(right), len(credits))
    logs = nodes.log_parts(right, wrong)
    share = np.exp(logs - logs.max(axis=0))
    share /= share.sum(axis=0)
    component_moments = []
    for _, alpha, beta in nodes.components:
        a, b = (alpha[:, None] + right).ravel(), (beta[:, None] + wrong).ravel()
        mean, _, variance = beta_binomial_moments(credits, a, b)
        component_moments.append((mean.reshape(shape), variance.reshape(shape)))
    zero_cumulant = np.zeros(shape)
    component_moments += [(end + zero_cumulant, zero_cumulant) for end in at_ends(credits)]
    if len(component_moments) == 3 and not nodes.atoms.any():
        return Cumulants(*component_moments[0], zero_cumulant)
    mixture_mean = sum(
        p[..., None] * mean for p, (mean, _) in zip(share, component_moments, strict=True)
    )
    mixture_variance = sum(
        p[..., None] * (variance + (mean - mixture_mean) ** 2)
        for p, (mean, variance) in zip(share, component_moments, strict=True)
    )
    return Cumulants(np.asarray(mixture_mean), np.asarray(mixture_variance), zero_cumulant)


def at_ends(credits: Sequence[Credit]) -> Array:
    """Credits at p = 0 and p = 1; shape (2, credits)."""
    return np.array([[float(credit.vector[end]) for credit in credits] for end in (0, -1)])


def _kernels(a: ArrayLike, b: ArrayLike, rule: BetaRule) -> Array:
    """Return ``a log p + b log(1 - p)`` on the points of a rule; shape (kernels, points)."""
    powers = np.stack([np.asarray(a, float), np.asarray(b, float)], axis=1)
    return np.asarray(powers @ np.stack([rule.log_p, rule.log_q]))


def _parts(nodes: Nodes, rule: BetaRule) -> Iterator[tuple[Indices | slice, Array]]:
    """Yield nodes that have a component, and its log weights on the points of a rule."""
    single = nodes.alpha.shape[1] == 1 and not nodes.atoms.any()
    for share, alpha, beta in nodes.components:
        rows = slice(None) if share.all() else np.flatnonzero(share)
        logs = _kernels(alpha[rows], beta[rows], rule)
        logs += rule.log_weight
        if not single:
            logs += (np.log(share[rows]) - betaln(alpha[rows], beta[rows]))[:, None]
        yield rows, logs


def prior_on_rule(nodes: Nodes, rule: BetaRule) -> tuple[BetaRule, Array]:
    """Return points of a rule, and prior probabilities of these and of both ends, by node.

    Points at which p is 0 or 1 to double precision count towards that end: the tails of Betas of
    small parameters reach hundreds of points further.
    """
    components = list(_parts(nodes, rule))
    with np.errstate(divide="ignore"):
        atoms = np.log(nodes.atoms)
    log_max = atoms.max(axis=1)
    for rows, logs in components:
        log_max[rows] = np.maximum(log_max[rows], logs.max(axis=1))
    density = np.zeros((len(nodes), len(rule)))
    for rows, logs in components:
        logs -= log_max[rows, None]
        density[rows] += np.exp(logs, out=logs)
    logit = rule.log_p - rule.log_q
    is_inside = np.abs(logit) <= _LOGIT_MAX
    beyond = np.stack([logit < -_LOGIT_MAX, logit > _LOGIT_MAX], axis=1).astype(float)
    at_ends = np.exp(atoms - log_max[:, None]) + density @ beyond
    interior_rule = BetaRule(
        rule.log_p[is_inside], rule.log_q[is_inside], rule.log_weight[is_inside]
    )
    prior = np.concatenate([density[:, is_inside], at_ends], axis=1)
    return interior_rule, prior / prior.sum(axis=1, keepdims=True)


def _log_prior(nodes: Nodes, rule: BetaRule) -> Array:
    """Log prior of points and ends, for nodes whose prior would underflow."""
    logs = np.full((len(nodes), len(rule)), -np.inf)
    for rows, log_density in _parts(nodes, rule):
        logs[rows] = np.logaddexp(logs[rows], log_density)
    with np.errstate(divide="ignore"):
        return np.concatenate([logs, np.log(nodes.atoms)], axis=1)


def _exponential(logs: Array) -> Array:
    """Exponentials, each row scaled to a maximum of one."""
    return exp_or_zero(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
