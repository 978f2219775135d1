"""Latent values of credits on the points of a rule, and their complements, to full precision."""

from collections.abc import Sequence

import numpy as np

from bayesatk._tools.arrays import Array
from bayesatk.core.numerics.quadrature import BetaRule
from bayesatk.metrics.credit import Credit, latent


def latent_on_nodes(credits: Sequence[Credit], rule: BetaRule) -> tuple[Array, Array]:
    """Latent values of credits on the nodes of a rule, and their complements.

    Returns
    -------
    value, complement : ndarray, shape (nodes, credits)
    """
    pairs = [latent(credit, rule.log_p, rule.log_q) for credit in credits]
    value, complement = (np.stack(values, axis=1) for values in zip(*pairs, strict=True))
    return value, complement
