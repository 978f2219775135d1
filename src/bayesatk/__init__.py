"""Exact Bayesian statistics of repeated-trial evaluation, verified by sampling."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesatk import datasets as datasets
    from bayesatk import plots as plots
    from bayesatk.comparison.criticism import criticise as criticise
    from bayesatk.comparison.growing import simulate_stopping as simulate_stopping
    from bayesatk.comparison.models import compare_models as compare_models
    from bayesatk.comparison.models import exact_loo as exact_loo
    from bayesatk.comparison.models import log_bayes_factor_chance as log_bayes_factor_chance
    from bayesatk.comparison.models import log_bayes_factor_equal as log_bayes_factor_equal
    from bayesatk.comparison.models import log_evidence as log_evidence
    from bayesatk.comparison.planning import plan as plan
    from bayesatk.comparison.stopping import StoppingRule as StoppingRule
    from bayesatk.comparison.stopping import StoppingStudy as StoppingStudy
    from bayesatk.comparison.systems import compare as compare
    from bayesatk.comparison.systems import comparison_table as comparison_table
    from bayesatk.comparison.trial_order import check_trial_order as check_trial_order
    from bayesatk.data.answers import AnswerRules as AnswerRules
    from bayesatk.data.outcomes import Outcomes as Outcomes
    from bayesatk.data.outcomes import tally as tally
    from bayesatk.data.validation import OutcomeError as OutcomeError
    from bayesatk.data.validation import OutcomeWarning as OutcomeWarning
    from bayesatk.guessing.baseline import baseline_table as baseline_table
    from bayesatk.guessing.baseline import random_baseline as random_baseline
    from bayesatk.guessing.baseline import (
        random_baseline_distribution as random_baseline_distribution,
    )
    from bayesatk.guessing.distributions import LargestPoissonBinomial as LargestPoissonBinomial
    from bayesatk.guessing.distributions import PoissonBinomial as PoissonBinomial
    from bayesatk.guessing.max_random import (
        MaxOrderStatisticPoissonBinomial as MaxOrderStatisticPoissonBinomial,
    )
    from bayesatk.guessing.max_random import PValueRange as PValueRange
    from bayesatk.guessing.max_random import max_random_baseline as max_random_baseline
    from bayesatk.guessing.max_random import max_random_F as max_random_F
    from bayesatk.guessing.max_random import max_random_p_value as max_random_p_value
    from bayesatk.guessing.max_random import max_random_pmf as max_random_pmf
    from bayesatk.guessing.selection import SelectedSkill as SelectedSkill
    from bayesatk.guessing.selection import skill_if_selected as skill_if_selected
    from bayesatk.io.convert import convert as convert
    from bayesatk.io.exports import export as export
    from bayesatk.io.exports import provenance as provenance
    from bayesatk.io.exports import tables_of as tables_of
    from bayesatk.io.load import load as load
    from bayesatk.io.saved import load_result as load_result
    from bayesatk.io.saved import save as save
    from bayesatk.metrics.category_credit import CategoryCredit as CategoryCredit
    from bayesatk.metrics.credit import Credit as Credit
    from bayesatk.metrics.families import Family as Family
    from bayesatk.metrics.families import Metric as Metric
    from bayesatk.metrics.grid import register as register
    from bayesatk.models.builders import build_beta_binomial as build_beta_binomial
    from bayesatk.models.categories import build_answers as build_answers
    from bayesatk.models.categories import (
        build_dirichlet_multinomial as build_dirichlet_multinomial,
    )
    from bayesatk.models.compiled import CompiledModel as CompiledModel
    from bayesatk.models.compiled import compile_beta_binomial as compile_beta_binomial
    from bayesatk.models.compiled import compile_crossed as compile_crossed
    from bayesatk.models.compiled import (
        compile_dirichlet_multinomial as compile_dirichlet_multinomial,
    )
    from bayesatk.models.derived import metrics_from_draws as metrics_from_draws
    from bayesatk.models.guessers import build_random_guessers as build_random_guessers
    from bayesatk.models.guessers import sample_random_baseline as sample_random_baseline
    from bayesatk.models.logit_normal import build_crossed as build_crossed
    from bayesatk.models.logit_normal import build_logit_normal as build_logit_normal
    from bayesatk.models.sampling import sample as sample
    from bayesatk.plots import plot_baseline as plot_baseline
    from bayesatk.plots import plot_calibration as plot_calibration
    from bayesatk.plots import plot_curve as plot_curve
    from bayesatk.plots import plot_difference as plot_difference
    from bayesatk.plots import plot_difficulty as plot_difficulty
    from bayesatk.plots import plot_ranks as plot_ranks
    from bayesatk.plots import plot_shrinkage as plot_shrinkage
    from bayesatk.plots import plot_systems as plot_systems
    from bayesatk.plots import plot_verification as plot_verification
    from bayesatk.posterior.evaluate import evaluate as evaluate
    from bayesatk.priors import AnswerPrior as AnswerPrior
    from bayesatk.priors import BetaPrior as BetaPrior
    from bayesatk.priors import CrossedPrior as CrossedPrior
    from bayesatk.priors import DirichletHyperPrior as DirichletHyperPrior
    from bayesatk.priors import DirichletPrior as DirichletPrior
    from bayesatk.priors import HyperPrior as HyperPrior
    from bayesatk.published.answers import plurality_at_k as plurality_at_k
    from bayesatk.published.right_wrong import auc_at_k as auc_at_k
    from bayesatk.published.right_wrong import auc_at_k_ci as auc_at_k_ci
    from bayesatk.published.right_wrong import g_pass_at_k as g_pass_at_k
    from bayesatk.published.right_wrong import g_pass_at_k_ci as g_pass_at_k_ci
    from bayesatk.published.right_wrong import g_pass_at_k_tau as g_pass_at_k_tau
    from bayesatk.published.right_wrong import g_pass_at_k_tau_ci as g_pass_at_k_tau_ci
    from bayesatk.published.right_wrong import maj_at_k as maj_at_k
    from bayesatk.published.right_wrong import maj_at_k_ci as maj_at_k_ci
    from bayesatk.published.right_wrong import mg_pass_at_k as mg_pass_at_k
    from bayesatk.published.right_wrong import mg_pass_at_k_ci as mg_pass_at_k_ci
    from bayesatk.published.right_wrong import pass_at_k as pass_at_k
    from bayesatk.published.right_wrong import pass_at_k_ci as pass_at_k_ci
    from bayesatk.published.right_wrong import pass_hat_k as pass_hat_k
    from bayesatk.published.right_wrong import pass_hat_k_ci as pass_hat_k_ci
    from bayesatk.published.scores import avg as avg
    from bayesatk.published.scores import avg_ci as avg_ci
    from bayesatk.published.scores import bayes as bayes
    from bayesatk.published.scores import bayes_ci as bayes_ci
    from bayesatk.reporting import report as report
    from bayesatk.results.citations import cite as cite
    from bayesatk.results.schema import one_system as one_system
    from bayesatk.results.tables import category_table as category_table
    from bayesatk.results.tables import table as table
    from bayesatk.verification.calibration import Calibration as Calibration
    from bayesatk.verification.calibration import calibrate as calibrate
    from bayesatk.verification.verify import Verification as Verification
    from bayesatk.verification.verify import verify as verify

__version__ = "0.1.0"

_HOME = {
    "AnswerPrior": "priors",
    "AnswerRules": "data.answers",
    "BetaPrior": "priors",
    "CategoryCredit": "metrics.category_credit",
    "CrossedPrior": "priors",
    "build_crossed": "models.logit_normal",
    "DirichletHyperPrior": "priors",
    "DirichletPrior": "priors",
    "plurality_at_k": "published.answers",
    "category_table": "results.tables",
    "build_answers": "models.categories",
    "build_dirichlet_multinomial": "models.categories",
    "Credit": "metrics.credit",
    "Family": "metrics.families",
    "HyperPrior": "priors",
    "Metric": "metrics.families",
    "register": "metrics.grid",
    "Outcomes": "data.outcomes",
    "auc_at_k": "published.right_wrong",
    "auc_at_k_ci": "published.right_wrong",
    "avg": "published.scores",
    "avg_ci": "published.scores",
    "bayes": "published.scores",
    "bayes_ci": "published.scores",
    "datasets": "",
    "plots": "",
    "evaluate": "posterior.evaluate",
    "g_pass_at_k": "published.right_wrong",
    "g_pass_at_k_ci": "published.right_wrong",
    "g_pass_at_k_tau": "published.right_wrong",
    "g_pass_at_k_tau_ci": "published.right_wrong",
    "maj_at_k": "published.right_wrong",
    "maj_at_k_ci": "published.right_wrong",
    "mg_pass_at_k": "published.right_wrong",
    "mg_pass_at_k_ci": "published.right_wrong",
    "pass_at_k": "published.right_wrong",
    "pass_at_k_ci": "published.right_wrong",
    "pass_hat_k": "published.right_wrong",
    "pass_hat_k_ci": "published.right_wrong",
    "CompiledModel": "models.compiled",
    "build_beta_binomial": "models.builders",
    "build_logit_normal": "models.logit_normal",
    "compile_beta_binomial": "models.compiled",
    "compile_crossed": "models.compiled",
    "compile_dirichlet_multinomial": "models.compiled",
    "load": "io.load",
    "load_result": "io.saved",
    "metrics_from_draws": "models.derived",
    "save": "io.saved",
    "sample": "models.sampling",
    "OutcomeError": "data.validation",
    "one_system": "results.schema",
    "table": "results.tables",
    "verify": "verification.verify",
    "Verification": "verification.verify",
    "Calibration": "verification.calibration",
    "calibrate": "verification.calibration",
    "tally": "data.outcomes",
    "exact_loo": "comparison.models",
    "log_evidence": "comparison.models",
    "compare": "comparison.systems",
    "comparison_table": "comparison.systems",
    "compare_models": "comparison.models",
    "criticise": "comparison.criticism",
    "plan": "comparison.planning",
    "StoppingRule": "comparison.stopping",
    "StoppingStudy": "comparison.stopping",
    "simulate_stopping": "comparison.growing",
    "check_trial_order": "comparison.trial_order",
    "log_bayes_factor_chance": "comparison.models",
    "log_bayes_factor_equal": "comparison.models",
    "MaxOrderStatisticPoissonBinomial": "guessing.max_random",
    "PValueRange": "guessing.max_random",
    "PoissonBinomial": "guessing.distributions",
    "LargestPoissonBinomial": "guessing.distributions",
    "max_random_baseline": "guessing.max_random",
    "max_random_p_value": "guessing.max_random",
    "max_random_pmf": "guessing.max_random",
    "max_random_F": "guessing.max_random",
    "random_baseline": "guessing.baseline",
    "random_baseline_distribution": "guessing.baseline",
    "baseline_table": "guessing.baseline",
    "skill_if_selected": "guessing.selection",
    "SelectedSkill": "guessing.selection",
    "build_random_guessers": "models.guessers",
    "sample_random_baseline": "models.guessers",
    "OutcomeWarning": "data.validation",
    "cite": "results.citations",
    "convert": "io.convert",
    "export": "io.exports",
    "provenance": "io.exports",
    "tables_of": "io.exports",
    "report": "reporting",
    "plot_baseline": "plots",
    "plot_calibration": "plots",
    "plot_curve": "plots",
    "plot_difference": "plots",
    "plot_difficulty": "plots",
    "plot_ranks": "plots",
    "plot_shrinkage": "plots",
    "plot_systems": "plots",
    "plot_verification": "plots",
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
