"""One way to accept randomness, and to record it."""

import numpy as np

RandomSource = int | np.random.Generator | None


def resolve_rng(rng: RandomSource) -> tuple[np.random.Generator, str]:
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
    if isinstance(rng, np.random.Generator):
        return rng, f"caller's {type(rng.bit_generator).__name__}"
    if rng is None:
        rng = int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise TypeError(f"rng must be an integer >= 0, a numpy Generator or None; got {rng!r}.")
    return np.random.default_rng(int(rng)), str(int(rng))
