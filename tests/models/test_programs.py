"""Programs of nutpie are kept between calls of `bayesatk.sample`, and never mix up data."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import numpy as np
import nutpie
import pytest
import xarray as xr

import bayesatk as bk
from bayesatk.data.study import Study, read_study
from bayesatk.models import sampling
from bayesatk.models.program import build_models
from bayesatk.models.sampling import compiler_of

SHORT = {"draws": 200, "tune": 200, "chains": 2, "progress": False}
PLAIN = {
    "pooling": "partial", "prior": None, "success": None, "prior_trials": None,
    "prior_weight": 1.0, "answer_prior": None, "ci_prob": 0.95, "keep": (),
}  # fmt: skip


@pytest.fixture
def compiled(monkeypatch) -> Iterator[list[object]]:
    """Models compiled during the test, which begins with none kept."""
    sampling._compiled.cache_clear()
    made: list[object] = []
    compile_model = nutpie.compile_pymc_model
    monkeypatch.setattr(
        nutpie, "compile_pymc_model", lambda model: made.append(model) or compile_model(model)
    )
    yield made
    sampling._compiled.cache_clear()


def runs(seed: int, questions: int, trials: int = 4, systems: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (systems, questions, trials))


@pytest.mark.long
@pytest.mark.slow
def test_other_data_take_the_kept_program_and_get_the_draws_of_a_fresh_one(compiled) -> None:
    options = SHORT | {"difficulty": ["beta", "inflated"], "rng": 5}
    fresh = bk.sample(runs(1, 30), "pass@2", **options)
    assert len(compiled) == 2
    other = bk.tally({"other": runs(2, 17, 6)[0]})
    named = bk.sample(other, "pass@1,2", **options | {"difficulty": "beta"}, keep=["p"])
    assert named.posterior["p"]["system"].values.tolist() == ["other"]
    assert named.posterior.sizes["question"] == 17
    again = bk.sample(runs(1, 30), "pass@2", **options)
    assert len(compiled) == 2
    for group in ("posterior", "families"):  # evidence too is of the right data
        xr.testing.assert_equal(again[group].to_dataset(), fresh[group].to_dataset())


@pytest.mark.long  # models of other kinds: calibration in tests/verification exchanges their data
@pytest.mark.parametrize(("pooling", "metric"), [("none", "pass@2"), ("partial", "bayes")])
def test_questions_and_categories_take_other_data(compiled, pooling, metric) -> None:
    scored = {"scores": {0: 0.0, 1: 1.0, 2: 0.5}} if metric == "bayes" else {}
    options = SHORT | {"pooling": pooling, "rng": 5}
    rng = np.random.default_rng(3)
    one, two = (bk.tally(rng.integers(0, 2 + len(scored), (2, 6, 5)), **scored) for _ in range(2))
    fresh = bk.sample(two, metric, **options)
    sampling._compiled.cache_clear()
    bk.sample(one, metric, **options)
    again = bk.sample(two, metric, **options)
    assert len(compiled) == 2
    xr.testing.assert_equal(again.posterior.to_dataset(), fresh.posterior.to_dataset())


class Compiled:
    """Stands for a program, and says what data it was given."""

    def with_data(self, **values) -> "Compiled":
        self.values = values
        return self


def test_what_a_model_depends_on_beside_its_data_has_its_own_program(monkeypatch) -> None:
    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda _: Compiled())
    sampling._compiled.cache_clear()

    def asked(questions=20, systems=1, seed=1, metric="pass@2", scored=0, **options) -> Study:
        data = runs(seed, questions, systems=systems)
        if scored:
            data = bk.tally(data, scores={i: i / (scored - 1) for i in range(scored)})
        return read_study(data, metric, **{**PLAIN, **options})

    def program(family="beta", **options) -> Compiled | None:
        one = asked(**options)
        compiler = compiler_of(one, family)
        if compiler is None:
            return None
        return compiler(build_models(one)[family])

    first = program()
    assert program(seed=2, questions=9) is first
    assert first.values["successes_data"].shape == (1, 9)
    assert program(prior=bk.priors.HyperPrior(families={"beta": 3, "mixture": 1})) is first
    others = [
        program(family="mixture"),
        program(prior=bk.priors.HyperPrior(mean=(90.0, 10.0))),
        program(systems=2),
        program("", pooling="none"),
        program("", pooling="complete"),
        program("", pooling="none", questions=9),
        program(metric="bayes", scored=3),
        program(metric="bayes", scored=4),
        program("", metric="bayes", scored=3, prior=bk.priors.DirichletHyperPrior()),
        program("", metric="bayes", scored=4, prior=bk.priors.DirichletHyperPrior()),
    ]
    assert len({id(one) for one in [first, *others]}) == 1 + len(others)
    assert program(judge=bk.JudgeError(tp=90, p=100, fp=5, n=100), difficulty="beta") is None
    assert program("", metric="bayes", prior_trials=runs(3, 20)) is None
    sampling._compiled.cache_clear()


@pytest.mark.long
@pytest.mark.slow
def test_threads_do_not_exchange_their_data(monkeypatch) -> None:
    options = {"draws": 200, "tune": 200, "chains": 2, "rng": 5, "sample_kwargs": {"cores": 1}}
    every = [runs(seed, 10 + seed) for seed in range(2)]
    ask = partial(bk.sample, metrics="pass@2", difficulty="beta", progress=False, **options)
    alone = [ask(data) for data in every]
    both, sample_model = Barrier(2), nutpie.sample

    def at_once(*arguments, **others) -> xr.DataTree:
        both.wait()  # until the other thread has its data ready too
        return sample_model(*arguments, **others)

    monkeypatch.setattr(nutpie, "sample", at_once)
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(ask, every))
    for one, other in zip(alone, together, strict=True):
        xr.testing.assert_equal(one["posterior"].to_dataset(), other["posterior"].to_dataset())


@pytest.mark.long
@pytest.mark.slow
def test_nothing_has_to_be_tuned_and_what_was_interrupted_is_no_result(monkeypatch) -> None:
    options = SHORT | {"pooling": "complete", "rng": 5}
    assert bk.sample(runs(1, 5), "pass@2", **options | {"tune": 0}).posterior.sizes["draw"] == 200
    sample_model = nutpie.sample

    def interrupted(*arguments, draws, **others) -> xr.DataTree:
        return sample_model(*arguments, draws=draws // 2, **others)

    monkeypatch.setattr(nutpie, "sample", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bk.sample(runs(1, 5), "pass@2", **options)


def test_options_that_sample_sets_itself_are_refused_before_anything_is_done() -> None:
    with pytest.raises(ValueError, match="sample_kwargs must hold arguments of nutpie"):
        bk.sample([[1, 0]], "pass@1", sample_kwargs={"blocking": False}, **SHORT)
