"""The exact posteriors of a case study, against a quadrature in other coordinates."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import gammaln, logit, logsumexp

import bayesatk as bk

FILE = Path(__file__).parents[2] / "case_studies/06_classics/exact_posteriors.json"
DATA = {
    "rats": bk.datasets.rat_tumors,
    "surgical": bk.datasets.surgical,
    "baseball": bk.datasets.batting_1975,
}


def log_likelihood(y, n, alpha, beta):
    """Beta-binomial, by gamma functions; the page has products without them."""
    y, n = y[:, None, None], n[:, None, None]

    def log_beta(a, b):
        return gammaln(a) + gammaln(b) - gammaln(a + b)

    return (log_beta(alpha + y, beta + n - y) - log_beta(alpha, beta)).sum(axis=0)


def below(nodes, density, place):
    """Probability of less, by a spline through the density."""
    cdf = CubicSpline(nodes, density).antiderivative()
    return float(cdf(place) / cdf(nodes[-1]))


@pytest.mark.parametrize("name", DATA)
def test_statistics_are_those_of_a_gauss_rule_in_logs_of_alpha_and_beta(name) -> None:
    """Gauss-Legendre over log(alpha/beta) and log(alpha+beta), with the Jacobian by hand."""
    stored, data = json.loads(FILE.read_text())[name], DATA[name]()
    y, n = data.successes.values[0], data.trials.values[0]
    assert (stored["y"], stored["n"]) == (y.tolist(), n.tolist())
    statistics, (a, b) = stored["statistics"], stored["icc_prior"]
    assert len(statistics) == len(y) + 2
    nodes, weights = np.polynomial.legendre.leggauss(300)
    m, sd = statistics["mean_p"]["mean"], statistics["mean_p"]["sd"]
    centre, half = np.log(m / (1.0 - m)), 12.0 * sd / (m * (1.0 - m))
    ratio = (centre + half * nodes)[:, None]  # logit of the mean
    log_total = (9.0 + 13.0 * nodes)[None, :]  # alpha + beta from 0.02 to 4e9
    mean, total = 1.0 / (1.0 + np.exp(-ratio)), np.exp(log_total)
    icc = 1.0 / (1.0 + total)
    log_prior = (a - 1.0) * np.log(icc) + (b - 1.0) * np.log(total * icc)
    jacobian = np.log(mean * (1.0 - mean)) + np.log(total) + 2.0 * np.log(icc)
    density = log_prior + jacobian + log_likelihood(y, n, mean * total, (1.0 - mean) * total)
    density = density + np.log(weights)[:, None] + np.log(weights)[None, :]
    share = np.exp(density - logsumexp(density))
    for name, values in (("mean_p", mean + 0.0 * icc), ("icc", icc + 0.0 * mean)):
        first = float((share * values).sum())
        spread = float(np.sqrt((share * (values - first) ** 2).sum()))
        # gamma functions of 4e9 lose digits, of a density that is next to nothing there
        assert first == pytest.approx(statistics[name]["mean"], abs=1e-4 * statistics[name]["sd"])
        assert spread == pytest.approx(statistics[name]["sd"], rel=1e-4)
    for label, level in (("q5", 0.05), ("q50", 0.5), ("q95", 0.95)):
        at = (logit(statistics["mean_p"][label]) - centre) / half
        assert below(nodes, share.sum(axis=1) / weights, at) == pytest.approx(level, abs=1e-4)
        at = (logit(1.0 - statistics["icc"][label]) - 9.0) / 13.0  # the larger the icc, the less
        above = below(nodes, share.sum(axis=0) / weights, at)
        assert above == pytest.approx(1.0 - level, abs=1e-4)
    for i in (1, len(y)):
        value = float((share * (mean * total + y[i - 1]) / (total + n[i - 1])).sum())
        told_p = statistics[f"p[{i}]"]
        assert value == pytest.approx(told_p["mean"], abs=1e-4 * told_p["sd"])
