from .evaluation import CostPrior as CostPrior
from .evaluation import evaluate_cost as evaluate_cost
from .tables import compare_cost as compare_cost
from .tables import pareto as pareto
