# The one list of public names: type checkers read it, and lazy_loader imports from it on first use.
# Names of one topic live in its package only: bk.published, bk.guessing, bk.models, bk.plots and
# bk.datasets, each with a list of its own beside its __init__.py.

from . import datasets as datasets
from . import guessing as guessing
from . import models as models
from . import plots as plots
from . import published as published
from .comparison.board_questions import next_questions as next_questions
from .comparison.board_questions import suspicious_questions as suspicious_questions
from .comparison.claims import claim as claim
from .comparison.criticism import criticise as criticise
from .comparison.growing import simulate_stopping as simulate_stopping
from .comparison.leaderboard import Leaderboard as Leaderboard
from .comparison.leaderboard import leaderboard as leaderboard
from .comparison.models import compare_models as compare_models
from .comparison.models import exact_loo as exact_loo
from .comparison.models import log_bayes_factor_chance as log_bayes_factor_chance
from .comparison.models import log_bayes_factor_equal as log_bayes_factor_equal
from .comparison.models import log_evidence as log_evidence
from .comparison.planning import plan as plan
from .comparison.stopping import StoppingRule as StoppingRule
from .comparison.stopping import StoppingStudy as StoppingStudy
from .comparison.systems import compare as compare
from .comparison.systems import comparison_table as comparison_table
from .comparison.trial_order import check_trial_order as check_trial_order
from .data.answers import AnswerRules as AnswerRules
from .data.outcomes import Outcomes as Outcomes
from .data.outcomes import tally as tally
from .data.validation import OutcomeError as OutcomeError
from .data.validation import OutcomeWarning as OutcomeWarning
from .io.convert import convert as convert
from .io.exports import export as export
from .io.exports import provenance as provenance
from .io.exports import tables_of as tables_of
from .io.load import load as load
from .io.saved import load_result as load_result
from .io.saved import save as save
from .metrics.category_credit import CategoryCredit as CategoryCredit
from .metrics.credit import Credit as Credit
from .metrics.families import Family as Family
from .metrics.families import Metric as Metric
from .metrics.grid import register as register
from .models.sampling import sample as sample
from .posterior.evaluate import evaluate as evaluate
from .posterior.extrapolation import extrapolation_range as extrapolation_range
from .posterior.tail import tail_exponent as tail_exponent
from .priors import AnswerPrior as AnswerPrior
from .priors import BetaPrior as BetaPrior
from .priors import CrossedPrior as CrossedPrior
from .priors import DirichletHyperPrior as DirichletHyperPrior
from .priors import DirichletPrior as DirichletPrior
from .priors import HyperPrior as HyperPrior
from .priors import LeaderboardPrior as LeaderboardPrior
from .reporting import report as report
from .results.citations import cite as cite
from .results.result import notes as notes
from .results.schema import one_system as one_system
from .results.tables import category_table as category_table
from .results.tables import table as table
from .verification.calibration import Calibration as Calibration
from .verification.calibration import calibrate as calibrate
from .verification.verify import Verification as Verification
from .verification.verify import verify as verify

__version__: str
