"""The page that evaluates a table in a browser.

NumPy, SciPy and pandas for Pyodide are on no package registry, so no test here runs them there.
The Python of the page is run with nothing but the packages that the page loads; the page is driven
in Chromium with a stand-in for Pyodide that hands the file to CPython; and with Pyodide itself,
from npm, as far as those packages, whose absence it must say.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

import bayesatk as bk
from tests.project.test_dependencies import HIDDEN

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/_static/browser"
NPM = Path(sys.prefix) / "axe/node_modules/pyodide"  # from .ci/browser
PYODIDE = Path(os.environ.get("BAYESATK_PYODIDE", NPM))
# What else the library can use, and the page does not load.
ABSENT = (
    *HIDDEN, "arviz", "arviz_base", "arviz_stats", "arviz_plots", "h5netcdf", "h5py", "jinja2",
    "dask", "distributed", "pyarrow", "formulaic", "zarr", "polars", "pydantic",
)  # fmt: skip
STAND_IN = """
let file;
export async function loadPyodide() {
  return {
    loadedPackages: {}, unpackArchive() {}, runPython() {},
    async loadPackage(names) { for (const name of names) this.loadedPackages[name] = "stand-in"; },
    FS: { writeFile(path, bytes) { file = bytes; } },
    globals: { get: () => (path) => {
      const request = new XMLHttpRequest();
      request.open("POST", "/python" + path, false);
      request.send(file);
      return request.responseText;
    } },
  };
}
"""


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("in_browser", PAGE / "in_browser.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    rows = [
        f"{system},{q},{t},{t < (q + extra) % 5:d}"
        for extra, system in enumerate(("base", "<b>tuned</b>")) for q in range(8) for t in range(4)
    ]  # fmt: skip
    path.write_text("system,question,trial,outcome\n" + "\n".join(rows) + "\n")
    return path


def test_table_and_curve_are_those_of_the_library(script, runs) -> None:
    shown = json.loads(script.evaluate_file(str(runs)))
    data = bk.load(runs)
    fit = bk.evaluate(data, "pass@1,2,4", rng=1)
    assert shown["card"] == str(data)
    assert f"{bk.table(fit)['mean'][0]:.3f}" in shown["table"]
    assert "style=" not in shown["table"]
    assert shown["sentences"][0].startswith("<b>tuned</b> scored")
    assert shown["curve"].count("<polyline") == shown["curve"].count("<polygon") == 2
    assert "&lt;b&gt;tuned&lt;/b&gt;" in shown["curve"]
    assert "<b>" not in shown["curve"] + shown["table"]
    first = shown["curve"].partition('<polyline points="')[2].partition(" ")[0].split(",")
    share = (script.HEIGHT - script.EDGE - float(first[1])) / (script.HEIGHT - 2 * script.EDGE)
    assert share == pytest.approx(bk.table(fit)["mean"][0], abs=1e-3)


def test_it_says_what_is_wrong_with_a_file(script, tmp_path) -> None:
    (tmp_path / "runs.csv").write_text("question,outcome\nq1,maybe\nq2,1\n")
    assert "maybe" in json.loads(script.evaluate_file(str(tmp_path / "runs.csv")))["error"]


def test_scores_have_a_table_and_no_curve(script, monkeypatch) -> None:
    """Of a log whose format has scores; a table's numbers other than 0 and 1 are refused."""
    data = bk.tally([[0.5, 1.0], [0.0, 0.5]], scores={0.0: 0, 0.5: 0.5, 1.0: 1})
    monkeypatch.setattr(script, "bk", SimpleNamespace(**{
        name: getattr(bk, name) for name in ("evaluate", "table", "compare", "comparison_table")
    }, load=lambda path: data))  # fmt: skip
    shown = json.loads(script.evaluate_file("log.json"))
    assert shown["curve"] == ""
    assert "bayes" in shown["table"]


@pytest.mark.long
def test_python_of_the_page_needs_only_what_the_page_loads(runs) -> None:
    code = (
        f"import sys\nsys.modules.update(dict.fromkeys({ABSENT!r}))\n"
        f"sys.path.insert(0, {str(PAGE)!r})\nimport in_browser, json\n"
        f"shown = json.loads(in_browser.evaluate_file({str(runs)!r}))\n"
        "assert 'polyline' in shown['curve'], shown\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Server(SimpleHTTPRequestHandler):
    """Serves a folder; POST /python is the stand-in's Python."""

    def __init__(self, *args, evaluate, **options) -> None:
        self.evaluate = evaluate
        super().__init__(*args, **options)

    def do_POST(self) -> None:
        path = Path(self.directory) / Path(self.path).name
        path.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
        body = self.evaluate(str(path)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Say nothing."""


@pytest.fixture
def address(tmp_path, script):
    """Address of the page, in a folder with the library and with room for Pyodide."""
    folder = tmp_path / "site"
    shutil.copytree(PAGE, folder, ignore=shutil.ignore_patterns("*.zip", "__pycache__"))
    shutil.make_archive(
        str(folder / "bayesatk"), "zip", ROOT / "src", "bayesatk"
    )  # as conf.py does
    handler = partial(Server, directory=str(folder), evaluate=script.evaluate_file)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
browser_test = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-dev-shm-usage", f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def drop(browser, address: str, runs: Path, seconds: float) -> str:
    """Give the page a file; return its last line of status."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(address)
    browser.find_element(By.ID, "file").send_keys(str(runs))
    status = browser.find_element(By.ID, "status")
    WebDriverWait(browser, seconds).until(lambda _: not status.text.endswith("...") and status.text)
    return status.text


@pytest.mark.slow
@browser_test
def test_a_file_gives_a_table_and_a_curve(browser, address, runs) -> None:
    folder, url = address
    (folder / "pyodide").mkdir()
    (folder / "pyodide/pyodide.mjs").write_text(STAND_IN)
    assert drop(browser, url, runs, 60) == "runs.csv: done, in this page."
    shown = browser.execute_script(
        "return [document.querySelectorAll('#table tbody tr').length,"
        " document.querySelectorAll('#curve polyline').length,"
        " document.querySelectorAll('#sentences li').length,"
        " document.querySelectorAll('b').length]"
    )
    assert shown == [12, 2, 1, 0]
    severe = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert [line for line in severe if "favicon" not in line["message"]] == []
    # That nothing can be sent away is the browser's to say: it refuses another address.
    refused = browser.execute_async_script(
        "const done = arguments[0];"
        "fetch('http://127.0.0.2:9/').then(() => done('sent'), (e) => done('refused'))"
    )
    assert refused == "refused"
    assert any("Content Security Policy" in line["message"] for line in browser.get_log("browser"))


@pytest.mark.slow
@browser_test
@pytest.mark.skipif(not (PYODIDE / "pyodide.mjs").exists(), reason="needs pyodide from npm")
def test_pyodide_starts_in_the_page_and_says_which_packages_are_not_there(
    browser, address, runs
) -> None:
    folder, url = address
    shutil.copytree(PYODIDE, folder / "pyodide")
    said = drop(browser, url, runs, 120)
    assert said.startswith("No package numpy, scipy, pandas, xarray, narwhals, threadpoolctl in ")
    assert "Content Security Policy" not in str(browser.get_log("browser"))


@pytest.mark.skipif(not (PYODIDE / "pyodide.mjs").exists(), reason="needs pyodide from npm")
def test_the_documentation_has_the_packages_and_versions_of_the_distribution() -> None:
    packages = json.loads((PYODIDE / "pyodide-lock.json").read_text())["packages"]
    listed = (PAGE / "page.js").read_text().partition("PACKAGES = ")[2].partition(";")[0]
    text = (ROOT / "docs/how_to/small_installations.md").read_text()
    for name in json.loads(listed):
        assert re.search(rf"^\| {name} \| .* \| {packages[name]['version']}\b", text, re.MULTILINE)
    assert not {"typer", "nutpie", "arviz", "h5netcdf"} & set(packages)
