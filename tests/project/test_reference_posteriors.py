"""The reference posteriors: against a quadrature in other coordinates, and their own draws."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import binomtest

STUDY = Path(__file__).parents[2] / "case_studies/11_reference_posteriors"
DATABASE = STUDY / "posterior_database"
NAMES = sorted(path.stem for path in (DATABASE / "posteriors").glob("*.json"))


def read(kind, name):
    path = DATABASE / kind / f"{name}.json"
    if path.exists():
        return json.loads(path.read_text())
    with ZipFile(path.with_name(f"{path.name}.zip")) as archive:
        return json.loads(archive.read(path.name))


@pytest.fixture(scope="module", params=NAMES)
def reference(request):
    """Data, exact statistics, and draws by name of the parameter."""
    posterior = read("posteriors", request.param)
    info = read("reference_posteriors/draws/info", f"{request.param}.info")
    chains = read("reference_posteriors/draws/draws", request.param)
    draws = {name: np.array([chain[name] for chain in chains]) for name in ("mean_p", "icc")}
    return read("data/data", posterior["data_name"]), info["exact"], draws


def log_likelihood(data, alpha, beta):
    """Beta-binomial, by gamma functions; the script has products without them."""
    y, n = (np.array(data[name])[:, None, None] for name in ("y", "n"))

    def log_beta(a, b):
        return gammaln(a) + gammaln(b) - gammaln(a + b)

    return (log_beta(alpha + y, beta + n - y) - log_beta(alpha, beta)).sum(axis=0)


def test_five_posteriors_are_there() -> None:
    stems = ("baseball", "game24_cot", "game24_standard", "rats", "surgical")
    assert [f"{stem}-beta_binomial" for stem in stems] == NAMES
    size = sum(path.stat().st_size for path in STUDY.rglob("*") if path.is_file())
    assert size < 700_000


def test_statistics_are_those_of_a_gauss_rule_in_logs_of_alpha_and_beta(reference) -> None:
    """Gauss-Legendre over log(alpha/beta) and log(alpha+beta), with the Jacobian by hand."""
    data, exact, _ = reference
    told = exact["statistics"]
    nodes, weights = np.polynomial.legendre.leggauss(300)
    m, sd = told["mean_p"]["mean"], told["mean_p"]["sd"]
    centre, half = np.log(m / (1.0 - m)), 12.0 * sd / (m * (1.0 - m))
    ratio = (centre + half * nodes)[:, None]  # logit of the mean
    log_total = (9.0 + 13.0 * nodes)[None, :]  # alpha + beta from 0.02 to 4e9
    mean, total = 1.0 / (1.0 + np.exp(-ratio)), np.exp(log_total)
    icc = 1.0 / (1.0 + total)
    log_prior = (data["icc_a"] - 1.0) * np.log(icc) + (data["icc_b"] - 1.0) * np.log(total * icc)
    jacobian = np.log(mean * (1.0 - mean)) + np.log(total) + 2.0 * np.log(icc)
    density = log_prior + jacobian + log_likelihood(data, mean * total, (1.0 - mean) * total)
    density = density + np.log(weights)[:, None] + np.log(weights)[None, :]
    share = np.exp(density - logsumexp(density))
    for name, values in (("mean_p", mean + 0.0 * icc), ("icc", icc + 0.0 * mean)):
        first = float((share * values).sum())
        spread = float(np.sqrt((share * (values - first) ** 2).sum()))
        # gamma functions of 4e9 lose digits, of a density that is next to nothing there
        assert first == pytest.approx(told[name]["mean"], abs=1e-4 * told[name]["sd"])
        assert spread == pytest.approx(told[name]["sd"], rel=1e-4)
    for i in (1, data["N"]):
        y, n = data["y"][i - 1], data["n"][i - 1]
        value = float((share * (mean * total + y) / (total + n)).sum())
        told_p = told[f"p[{i}]"]
        assert value == pytest.approx(told_p["mean"], abs=1e-4 * told_p["sd"])


def test_draws_have_the_stated_moments_and_quantiles(reference) -> None:
    data, exact, draws = reference
    assert 0.0 < exact["error_in_sds"] < 1e-4
    assert len(exact["statistics"]) == data["N"] + 2
    for name, chains in draws.items():
        told = exact["statistics"][name]
        assert chains.shape == (10, 1000)
        assert len(np.unique(chains)) > 9_800  # independent draws, of eight digits
        z = (chains.mean() - told["mean"]) / told["sd"] * np.sqrt(chains.size)
        assert abs(z) < 4.0
        assert chains.std() == pytest.approx(told["sd"], rel=0.05)
        for level in (5, 50, 95):
            below = int((chains < told[f"q{level}"]).sum())
            assert binomtest(below, chains.size, level / 100).pvalue > 1e-4
        neighbours = np.corrcoef(chains[:, :-1].ravel(), chains[:, 1:].ravel())[0, 1]
        assert abs(neighbours) < 0.04  # 4 standard errors


def test_the_script_makes_the_files(tmp_path, monkeypatch) -> None:
    spec = importlib.util.spec_from_file_location("make_references", STUDY / "make_references.py")
    script = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_references", script)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "DATABASE", tmp_path)
    (rats,) = [one for one in script.references() if one.name == "rats"]
    assert script.write(rats, 1) < 1e-4
    info = "reference_posteriors/draws/info/rats-beta_binomial.info.json"
    made, kept = (json.loads((folder / info).read_text()) for folder in (tmp_path, DATABASE))
    for name, values in kept["exact"]["statistics"].items():
        assert made["exact"]["statistics"][name] == pytest.approx(values, rel=1e-8)
    archive = "data/data/rats.json.zip"
    assert (tmp_path / archive).read_bytes() == (DATABASE / archive).read_bytes()


def test_posteriordb_reads_the_folder() -> None:
    """The package of that database (make test-schemas)."""
    posteriordb = pytest.importorskip("posteriordb")
    database = posteriordb.PosteriorDatabase(str(DATABASE))
    assert sorted(database.posterior_names()) == NAMES
    assert database.model_names() == ["beta_binomial"]
    for posterior in database.posteriors():
        values = posterior.data.values()
        assert len(values["y"]) == len(values["n"]) == values["N"]
        assert "target += -log1p(j * r);" in posterior.model.stan_code()
        chains = posterior.reference_draws()
        assert len(chains) == posterior.reference_draws_info()["diagnostics"]["nchains"]
        assert set(chains[0]) == set(posterior.information["dimensions"])


def test_stan_accepts_the_model(tmp_path: Path) -> None:
    """Stan's own compiler, from the package httpstan (make test-schemas)."""
    package = importlib.util.find_spec("httpstan")
    if package is None:
        pytest.skip("httpstan is not installed")
    (model,) = DATABASE.glob("models/stan/*.stan")
    compiler = Path(str(package.origin)).with_name("stanc")
    written = tmp_path / "model.cpp"
    command = [str(compiler), "--o", str(written), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "stan::math::log1p(" in written.read_text()
