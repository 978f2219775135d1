"""Numbers in words: with as many digits as are known."""

_FINE = 5e-4  # error up to which three digits are known
_COARSE = 5e-3  # error up to which two are


def probability_words(value: float, error: float = 0.0) -> str:
    """Write a probability, never as a false 0 or 1, with the digits that its error leaves.

    Parameters
    ----------
    value : float
    error : float
        Monte Carlo standard error; 0: exact.

    Examples
    --------
    >>> [probability_words(p) for p in (0.99996, 0.25, 0.0)]
    ['> 0.999', '0.250', '< 0.001']
    >>> probability_words(0.6243, 0.002), probability_words(0.6243, 0.008)
    ('0.62', '0.62 ± 0.01')
    """
    digits = 3 if error <= _FINE else 2
    unit = 10.0**-digits
    if value >= 1.0 - 0.5 * unit:
        return f"> {1.0 - unit:.{digits}f}"
    if value < 0.5 * unit:
        return f"< {unit:.{digits}f}"
    return f"{value:.{digits}f}" + (f" ± {error:.2f}" if error > _COARSE else "")
