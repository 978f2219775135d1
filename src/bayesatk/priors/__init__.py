"""Priors: definitions shared by the closed forms and the PyMC models."""

from typing import Literal

from bayesatk.priors.counts import (
    INFLATION,
    AnswerPrior,
    BetaPrior,
    DirichletHyperPrior,
    DirichletPrior,
    HyperPrior,
)
from bayesatk.priors.shapes import FAMILIES, Families, family_probabilities
from bayesatk.priors.systems import (
    CrossedPrior,
    GroupedPrior,
    LeaderboardPrior,
    RegressionPrior,
)

Pooling = Literal["none", "partial", "complete"]
Prior = BetaPrior | HyperPrior
CategoryPrior = DirichletPrior | DirichletHyperPrior
ModelPrior = Prior | CategoryPrior | CrossedPrior | RegressionPrior | GroupedPrior
AnyPrior = ModelPrior | AnswerPrior

__all__ = [
    "FAMILIES",
    "INFLATION",
    "AnswerPrior",
    "AnyPrior",
    "BetaPrior",
    "CategoryPrior",
    "CrossedPrior",
    "DirichletHyperPrior",
    "DirichletPrior",
    "Families",
    "GroupedPrior",
    "HyperPrior",
    "LeaderboardPrior",
    "ModelPrior",
    "Pooling",
    "Prior",
    "RegressionPrior",
    "family_probabilities",
]
