"""Priors: definitions shared by the closed forms and the PyMC models."""

from typing import Literal

from bayesatk.priors.counts import DIFFICULTY_FAMILIES as DIFFICULTY_FAMILIES
from bayesatk.priors.counts import INFLATION as INFLATION
from bayesatk.priors.counts import AnswerHyperPrior as AnswerHyperPrior
from bayesatk.priors.counts import AnswerPrior as AnswerPrior
from bayesatk.priors.counts import BetaPrior as BetaPrior
from bayesatk.priors.counts import DirichletHyperPrior as DirichletHyperPrior
from bayesatk.priors.counts import DirichletPrior as DirichletPrior
from bayesatk.priors.counts import Families as Families
from bayesatk.priors.counts import HyperPrior as HyperPrior
from bayesatk.priors.counts import family_probabilities as family_probabilities

__all__ = [
    "AnswerHyperPrior",
    "AnswerPrior",
    "BetaPrior",
    "DirichletHyperPrior",
    "DirichletPrior",
    "HyperPrior",
]

Pooling = Literal["none", "partial", "complete"]
Population = Literal["law", "bootstrap"]
Prior = BetaPrior | HyperPrior
CategoryPrior = DirichletPrior | DirichletHyperPrior
ModelPrior = Prior | CategoryPrior
VotePrior = AnswerPrior | AnswerHyperPrior
AnyPrior = ModelPrior | VotePrior


def __dir__() -> list[str]:
    return __all__
