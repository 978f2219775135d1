"""Random generators from the argument `rng`, and the seed that results record."""

import numpy as np

from bayesatk._tools.arrays import Rng
from bayesatk._tools.messages import ArgumentError

RandomSource = int | Rng | None


def resolve_rng(rng: RandomSource) -> tuple[Rng, str]:
    """Return a generator and the text that lets a reader repeat the draws.

    Parameters
    ----------
    rng : int, numpy.random.Generator or None
        A seed; a generator, which is advanced; or None for fresh entropy.

    Returns
    -------
    generator : numpy.random.Generator
    seed : str
        The integer seed, or the bit generator's name for one that was passed in.

    Examples
    --------
    >>> resolve_rng(7)[1]
    '7'
    """
    if isinstance(rng, Rng):
        return rng, f"caller's {type(rng.bit_generator).__name__}"
    if rng is None:
        rng = int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        rule = f" must be an integer >= 0, a numpy Generator or None; got {rng!r:.80}."
        raise ArgumentError("rng", rule)
    return np.random.default_rng(int(rng)), str(int(rng))
