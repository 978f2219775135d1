"""Exact Bayesian statistics of repeated-trial evaluation, verified by sampling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesatk.closed_form.evaluate import evaluate as evaluate
    from bayesatk.core.credit import Credit as Credit
    from bayesatk.core.priors import BetaPrior as BetaPrior
    from bayesatk.core.priors import HyperPrior as HyperPrior
    from bayesatk.metrics import Family as Family
    from bayesatk.metrics import Metric as Metric
    from bayesatk.outcomes import Outcomes as Outcomes
    from bayesatk.outcomes import tally as tally
    from bayesatk.results import table as table

__version__ = "0.1.0"

_HOME = {
    "BetaPrior": "core.priors",
    "Credit": "core.credit",
    "Family": "metrics",
    "HyperPrior": "core.priors",
    "Metric": "metrics",
    "Outcomes": "outcomes",
    "auc_at_k": "parity",
    "auc_at_k_ci": "parity",
    "avg": "parity",
    "avg_ci": "parity",
    "bayes": "parity",
    "bayes_ci": "parity",
    "datasets": "",
    "evaluate": "closed_form.evaluate",
    "g_pass_at_k": "parity",
    "g_pass_at_k_ci": "parity",
    "g_pass_at_k_tau": "parity",
    "g_pass_at_k_tau_ci": "parity",
    "maj_at_k": "parity",
    "maj_at_k_ci": "parity",
    "mg_pass_at_k": "parity",
    "mg_pass_at_k_ci": "parity",
    "pass_at_k": "parity",
    "pass_at_k_ci": "parity",
    "pass_hat_k": "parity",
    "pass_hat_k_ci": "parity",
    "build_beta_binomial": "models.builders",
    "build_logit_normal": "models.builders",
    "load": "io.load",
    "load_result": "io.saved",
    "metrics_from_draws": "models.derived",
    "save": "io.saved",
    "sample": "models.sampling",
    "OutcomeError": "validation",
    "table": "results",
    "verify": "verification.verify",
    "Verification": "verification.verify",
    "tally": "outcomes",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that numpy users never pay for PyMC."""
    if name not in _HOME:
        raise AttributeError(f"module 'bayesatk' has no attribute {name!r}")
    home = _HOME[name]
    module = import_module(f"bayesatk.{home or name}")
    value = getattr(module, name) if home else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
