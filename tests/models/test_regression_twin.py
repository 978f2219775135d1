"""The regression on covariates sampled by PyMC, against weighted points."""

import pytest

import bayesatk as bk
from tests.conftest import FALSE_ALARM

SEEDS = (
    [10, 23, 23, 26, 17, 5, 53, 55, 32, 46, 10, 8, 10, 8, 23, 0, 3, 22, 15, 32, 3],
    [39, 62, 81, 51, 39, 6, 74, 72, 51, 79, 13, 16, 30, 28, 45, 4, 12, 41, 30, 51, 7],
    [1] * 11 + [0] * 10,  # seed O. aegyptiaca 75, or 73
    [0] * 5 + [1] * 6 + [0] * 5 + [1] * 5,  # extract of cucumber, or bean
)


@pytest.mark.long
def test_nuts_agrees_on_the_seeds() -> None:
    """Crowder 1978: 21 plates, two kinds of seed, two extracts."""
    c, n, seed, root = SEEDS
    both = [a * b for a, b in zip(seed, root, strict=True)]  # the interaction
    data = bk.tally(c, trials=n, covariates={"seed": seed, "root": root, "both": both})
    options = {"covariates": ["seed", "root", "both"], "rng": 3}
    exact = bk.evaluate(data, "pass@1,2 pass^4", **options)
    sampled = bk.sample(
        data, "pass@1,2 pass^4", chains=2, draws=3000, progress=False,
        sample_kwargs={"cores": 1}, **options,
    )  # fmt: skip
    found = bk.verify(exact, sampled, alpha=FALSE_ALARM)
    assert found.verdict == "agree", found.table
    assert "coefficients" in set(found.table["variable"])
    other = bk.evaluate(data, "pass@1,2", covariates=["seed", "root"], rng=1)
    with pytest.raises(ValueError, match="same covariates"):
        bk.verify(other, sampled)
