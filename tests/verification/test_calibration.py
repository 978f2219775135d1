"""Simulation-based calibration: right posteriors pass, planted bugs do not, resumed runs agree."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.verification import replications
from tests.conftest import FALSE_ALARM

QUIET = {"progress": False}
NUTS = {"engine": "pymc", "alpha": FALSE_ALARM, **QUIET}
SCORES = (0.0, 0.5, 1.0)


LONG = pytest.mark.long


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pooling", "size"),
    [pytest.param("partial", 120, marks=LONG), ("none", 280), ("complete", 280)],
)
def test_closed_forms_are_calibrated(pooling, size) -> None:
    found = bk.checks.calibrate(
        6, 3, "pass@1,4 maj@3", pooling=pooling, replications=size, rng=3, **QUIET
    )
    assert found.verdict == "calibrated", found.table.to_string()
    names = set(found.table.index)
    assert {"p_first", "pass@4 questions"} <= names
    assert ("pass@4 population" in names) == (pooling != "none")
    assert (found.table["detectable_bias"] < 0.45).all()  # what 120 are enough for


@pytest.mark.long
@pytest.mark.slow
def test_other_priors_are_calibrated() -> None:
    prior = bk.priors.HyperPrior((3.0, 1.5), (1.0, 4.0), families="beta")
    found = bk.checks.calibrate(4, 2, "pass^2", prior=prior, replications=250, rng=4, **QUIET)
    assert found.verdict == "calibrated", found.table.to_string()
    assert (found.table["detectable_bias"] < 0.3).all()


@pytest.mark.slow
@pytest.mark.long
def test_pymc_is_calibrated() -> None:
    found = bk.checks.calibrate(5, 4, "pass@2", difficulty="beta", replications=80, rng=5, **NUTS)
    assert found.verdict == "calibrated", found.table.to_string()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("pooling", "prior", "size"),
    [
        ("none", None, 400), ("complete", None, 400),
        pytest.param("partial", bk.priors.DirichletHyperPrior(), 60, marks=LONG),
        # Expected scores within 1e-5 of an end are drawn as that end, which ranks would tell.
        pytest.param(
            "partial", bk.priors.HyperPrior(icc=(2.0, 6.0), families="beta"), 60, marks=LONG
        ),
    ],
)  # fmt: skip
def test_scored_categories_are_calibrated(pooling, prior, size) -> None:
    found = bk.checks.calibrate(
        5, 4, "bayes max@3", pooling=pooling, prior=prior, scores=SCORES, replications=size,
        rng=6, **QUIET,
    )  # fmt: skip
    assert found.verdict == "calibrated", found.table.to_string()
    names = set(found.table.index)
    assert ("mean_p lowest" in names) == (pooling != "none")
    assert "max@3 questions" in names


def test_a_planted_bug_in_categories_is_caught(monkeypatch) -> None:
    right = replications.Declared.of_study
    prior = bk.priors.DirichletPrior((3.0, 1.0, 1.0))
    monkeypatch.setattr(
        replications.Declared,
        "of_study",
        lambda study: right(replace(study, prior=prior)),
    )
    found = bk.checks.calibrate(
        8, 2, "bayes", pooling="none", scores=SCORES, replications=400, rng=6, **QUIET
    )
    assert found.verdict == "wrong"


@pytest.mark.parametrize("bug", ["prior", "counts"])
def test_a_planted_bug_is_caught(monkeypatch, bug) -> None:
    right = replications.Declared.of_study

    def wrong(study):
        declared = right(study)
        if bug == "prior":
            return replace(declared, prior=bk.priors.BetaPrior(2.0, 1.0))
        missed = np.minimum(declared.counts[..., 1:], 1) * [1, -1]
        return replace(declared, counts=declared.counts + missed)

    monkeypatch.setattr(replications.Declared, "of_study", wrong)
    found = bk.checks.calibrate(8, 2, pooling="none", replications=400, rng=6, **QUIET)
    assert found.verdict == "wrong"


@pytest.mark.long
def test_a_resumed_run_gives_the_same_answer(tmp_path) -> None:
    options = {"pooling": "none", "rng": 7, **QUIET}
    path = tmp_path / "study.jsonl"
    bk.checks.calibrate(3, 2, replications=100, path=path, **options)
    text = path.read_text()
    path.write_text(text + text.splitlines()[0][:40])  # killed while writing
    with pytest.warns(UserWarning, match=r"study\.jsonl: the last 40 bytes .* done again"):
        resumed = bk.checks.calibrate(3, 2, replications=250, path=path, **options)
    whole = bk.checks.calibrate(3, 2, replications=250, **options)
    xr.testing.assert_identical(resumed.tree["prior_sbc"].ds, whole.tree["prior_sbc"].ds)
    assert resumed.tree["prior_sbc"].sizes["draw"] == 250
    with pytest.raises(ValueError, match="file of this study"):
        bk.checks.calibrate(3, 2, replications=50, path=path, pooling="none", rng=8, **QUIET)
    for content in (b"a,b\n1,2\n", b"\x89PNG\r\n\x1a\n\xff", b'{"other": 1}\n'):
        path.write_bytes(content)  # of something else, and left as it is
        with pytest.raises(ValueError, match="file of this study"):
            bk.checks.calibrate(3, 2, replications=50, path=path, **options)
        assert path.read_bytes() == content
    for bad in (tmp_path, tmp_path / "absent" / "study.jsonl", 3):
        with pytest.raises(ValueError, match="path must be that of a file"):
            bk.checks.calibrate(3, 2, replications=50, path=bad, **options)
    assert json.loads(whole.tree.attrs["study"])["seed"] == 7


@pytest.mark.slow
def test_workers_do_not_change_the_answer() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cluster's own start and end
        from dask.distributed import Client

        with Client(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as c:
            spread = bk.checks.calibrate(
                3, 2, pooling="none", replications=150, rng=9, client=c, **QUIET
            )
    alone = bk.checks.calibrate(3, 2, pooling="none", replications=150, rng=9, **QUIET)
    xr.testing.assert_identical(spread.tree["prior_sbc"].ds, alone.tree["prior_sbc"].ds)


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(ValueError, match="must be proper"):
        bk.checks.calibrate(3, 2, prior=bk.priors.HyperPrior.bda3())
    with pytest.raises(ValueError, match="engine must be"):
        bk.checks.calibrate(3, 2, engine="stan")
    with pytest.raises(ValueError, match=r"metrics must be of marks .*got plurality@1"):
        bk.checks.calibrate(3, 2, "plurality@1 pass@1")
    for scores in ((1.0, 0.0), (0.0, float("nan")), (0.0, float("inf")), "ab", 3):
        with pytest.raises(ValueError, match="two or more finite numbers in rising order"):
            bk.checks.calibrate(3, 2, "bayes", scores=scores)
    for size in ((0, 2), (3, 0), (3.5, 2)):
        with pytest.raises(ValueError, match="must be an integer >= 1"):
            bk.checks.calibrate(*size)
    with pytest.raises(ValueError, match="replications must be an integer >= 1"):
        bk.checks.calibrate(3, 2, replications=0)
