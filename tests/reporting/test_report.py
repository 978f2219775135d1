"""The report: what it says, and what a real browser makes of it."""

import base64
import gzip
import html
import io
import json
import re
import resource
import shutil
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesatk as bk
from bayesatk.cli.app import app
from bayesatk.io.named_tables import tables_of
from bayesatk.plots.intervals import _shade
from bayesatk.reporting.pictures import _shaded, _stack
from bayesatk.reporting.sentences import levels
from bayesatk.results.result import Result

SYSTEMS = ["alpha", "<script>alert('system')</script>", "$x_1^2$ & {b}"]
QUESTIONS = [
    "<script>document.title = 'owned'</script>", '"><img src=x onerror=alert(1)>', "</td></table>",
    "\u202egnirts\u202c \u0645\u0631\u062d\u0628\u0627", "\U0001f600 \U0001f9ea", "x" * 10_000,
]  # fmt: skip


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    p = rng.beta(0.6, 0.8, 24)
    runs = {
        name: rng.binomial(1, np.clip(p + shift, 0, 1)[:, None], (24, 4))
        for name, shift in zip(SYSTEMS, (0.0, 0.05, 0.25), strict=True)
    }
    return bk.tally(runs, questions=QUESTIONS + [f"q{number}" for number in range(18)])


@pytest.fixture(scope="module")
def fit(data):
    result = bk.evaluate(data, ["pass@1,2,4", "pass^2"], rng=1)
    result = bk.compare(result)
    result["leaderboard"] = bk.leaderboard(result)["leaderboard"]
    return bk.guessing.random_baseline(result, 0.25, 10, rng=1)


@pytest.fixture(scope="module")
def page(data, fit, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return bk.report(fit, path, data=data, guess=0.25, title="A <b>bold</b> claim")


class _Parts(HTMLParser):
    """Tags and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data) -> None:
        self.text += data


def _text(path: Path) -> str:
    return _Parts(path.read_text(encoding="utf-8")).text


@pytest.mark.long
def test_the_page_says_what_was_found_from_the_same_numbers(page, fit, data) -> None:
    text = _text(page)
    assert bk.claim(fit, system="alpha") in text
    assert bk.claim(fit) in text  # the tiers
    of_best = f"metric == 'pass@1' and target == 'population' and system == {SYSTEMS[2]!r}"
    against_others = bk.table(fit, "comparison").query(of_best)["sentence"].tolist()
    assert len(against_others) == 2
    assert all(sentence in text for sentence in against_others)
    for words in (
        "random guessers: accuracy",
        "E[1 \u2212 (1 \u2212 p)k]",
        "@misc{chen2021evaluating",
    ):
        assert words in text
    assert fit.attrs["input_sha256"] in text
    assert data.card().splitlines()[0] in text
    assert f"bayesatk {bk.__version__}; numpy " in text
    assert '{"' not in text
    for cells in ("[0.", "like these", "P(best)", "shrunken mean", "observed accuracy"):
        assert cells in text


def test_each_note_is_on_the_page_once_for_all_its_systems(tmp_path) -> None:
    scores = {name: [[0.0], [1.0], [0.5], [0.25]] * 3 for name in "ab"}
    fit = bk.evaluate(bk.tally(scores, scores="numbers"), "mean max@2", pooling="none", rng=1)
    text = _text(bk.report(fit, tmp_path / "report.html"))
    assert any(note.startswith("a, b: one trial of each question") for note in fit.notes)
    for note in fit.notes:
        assert text.count(note) == 1
    assert "<details>\n<summary>Questions" in (tmp_path / "report.html").read_text("utf-8")


def test_names_are_text_whatever_they_hold(page) -> None:
    text = page.read_text(encoding="utf-8")
    parts = _Parts(text)
    assert parts.tags.count("script") == 1
    assert "img" not in parts.tags
    assert "b" not in parts.tags
    for name in [*QUESTIONS, *SYSTEMS]:
        assert name in parts.text
    assert not [value for name, value in parts.attributes if name.startswith("on")]


def test_the_numbers_can_be_taken_away(page, fit) -> None:
    links = dict(re.findall(r'download="(.*?)" href="(.*?)"', page.read_text(encoding="utf-8")))
    held = {}
    for name, link in links.items():
        content = base64.b64decode(link.partition(",")[2])
        long = name.endswith(".gz")
        held[name.removesuffix(".gz")] = gzip.decompress(content) if long else content
    tables, expected = (
        json.loads(held["bayesatk.json"])["tables"],
        tables_of(fit, questions=True),
    )
    assert tables.keys() == expected.keys()
    key = ["system", "question"]
    influence = pd.DataFrame(tables["questions"]).set_index(key)["influence"]
    of_fit = expected["questions"].astype({"question": str}).set_index(key)["influence"]
    np.testing.assert_allclose(influence, of_fit.loc[influence.index])
    keys = ["system", "metric", "target"]
    rows = pd.read_csv(io.BytesIO(held["results.csv"])).set_index(keys)["mean"]
    np.testing.assert_allclose(
        rows, bk.table(fit, "results").set_index(keys)["mean"].loc[rows.index]
    )
    means = rows.xs(("pass@1", "population"), level=("metric", "target"))
    assert means.tolist() == sorted(means, reverse=True)  # one order of systems on the page


@pytest.mark.long
def test_many_systems_make_no_large_page(tmp_path) -> None:
    """Tables are cut on the page, and whole in its files."""
    rng = np.random.default_rng(1)
    runs = {f"s{i}": rng.binomial(1, 0.5, (6, 2)) for i in range(24)}
    fit = bk.compare(bk.evaluate(runs, "bayes", pooling="complete", draws=5, rng=1))
    path = bk.report(fit, tmp_path / "r.html")
    text = path.read_text(encoding="utf-8")
    assert "(552 rows, the first 500 here)" in text
    (link,) = re.findall(r'download="bayesatk.json.gz" href="data:.*?,(.*?)"', text)
    tables = json.loads(gzip.decompress(base64.b64decode(link)))["tables"]
    assert len(tables["comparison"]) == 552
    assert 'download="comparison.csv' not in text
    assert path.stat().st_size < 1_500_000


def test_scores_come_first_with_tiers_and_no_rope_that_nobody_asked_for(page, fit) -> None:
    text = page.read_text(encoding="utf-8")
    first = _Parts(text[text.index('id="scores"') : text.index('id="claims"')]).text
    board = bk.table(fit, "leaderboard")
    rows = board.query("metric == 'pass@1' and target == 'population'")
    places = [first.index(str(name)) for name in rows["system"]]
    assert places == sorted(places)
    for row in rows.to_dict("records"):
        assert f"[{row['ci_lower']:.3f}, {row['ci_upper']:.3f}]" in first
    lines = int(rows["tier"].max()) - 1
    assert text[: text.index("pass@2</h3>")].count('<tr class="line">') == lines
    assert "rope" not in text[text.index('id="tables"') : text.index('id="data"')]


def test_nothing_points_outside(page) -> None:
    parts = _Parts(page.read_text(encoding="utf-8"))
    links = [value for name, value in parts.attributes if name in ("src", "href", "xlink:href")]
    kinds = ("image/png", "text/csv", "application/json", "application/gzip")
    held = ("#", *(f"data:{kind};base64," for kind in kinds))
    assert all(value.startswith(held) for value in links)
    assert not re.search(r"url\((?!#)", page.read_text(encoding="utf-8"))


def test_pictures_are_there_and_follow_the_page(page) -> None:
    text = page.read_text(encoding="utf-8")
    # Curve, forest, questions, shrinkage, shape, guessers; of 4 metrics differences and ranks.
    assert text.count('role="img"') == 2 * (6 + 4 * 2)  # wide and narrow
    clips = re.findall(r'<clipPath id="(\w+)"', text)
    assert len(clips) == len(set(clips))
    assert "by chance alone" in text
    assert "currentColor" in text
    assert not re.search(r"<metadata", text)


def test_small_probabilities_are_no_white_cells_in_a_dark_page() -> None:
    for chance in (0.005, 0.01, 0.02, 0.3, 1.0):
        cell = f"fill: {_shade(chance)}; stroke"
        shade, opacity = re.fullmatch(
            r"fill: var\((--\w+)\); fill-opacity: ([\d.]+); stroke", _shaded(cell)
        ).groups()  # type: ignore[union-attr]
        assert shade == "--shade"
        assert float(opacity) == pytest.approx(chance, abs=0.004)
    for ink in ("fill: #767676;", "fill: #000000;"):
        assert _shaded(ink) == ink


@pytest.mark.parametrize("pooling", ["none", "complete"])
def test_one_system_of_scored_categories_or_other_poolings(pooling, tmp_path) -> None:
    data = bk.tally([["b", "a", "c", "b"]] * 5, scores={"c": 0, "b": 0.5, "a": 1})
    fit = bk.evaluate(data, "bayes max@2", pooling=pooling, rng=1)
    text = _text(bk.report(fit, tmp_path / "r.html"))
    assert "Probability to reach a score" in text
    assert "expected highest score" in text
    right = bk.evaluate([[1, 0, 1]] * 5, "pass@1,2", pooling=pooling, rng=1)
    text = _Parts(bk.report(right, tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert "How difficult" not in text


def test_right_and_wrong_with_prior_trials_by_category_have_a_noise_floor(tmp_path) -> None:
    runs = [[1, 0, 1], [0, 0, 1], [1, 1, 1]] * 4
    fit = bk.evaluate(runs, "mean", pooling="complete", prior_trials=runs, rng=1)
    text = bk.report(fit, tmp_path / "prior.html").read_text(encoding="utf-8")
    assert "differ in mean by up to" in text


def test_report_says_what_it_cannot_write(fit, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.html; got 'report\.pdf'"):
        bk.report(fit, tmp_path / "report.pdf")
    with pytest.raises(TypeError, match="must be a DataTree"):
        bk.report({"a": 1}, tmp_path / "report.html")


@pytest.mark.long
def test_a_page_is_replaced_whole_or_not_at_all(fit, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("bayesatk.reporting.pictures", lambda *_: [])
    path = tmp_path / "report.html"
    path.write_text("the old page")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # a disk that is nearly full
    try:
        with pytest.raises(OSError, match="what was there is as it was"):
            bk.report(fit, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "the old page"
    bk.report(fit, path)
    assert path.read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


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
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, page):
    browser.get(page.as_uri())
    return browser


@browser_test
def test_a_browser_renders_it_without_errors_or_requests(opened) -> None:
    assert opened.get_log("browser") == []
    assert opened.title == "A <b>bold</b> claim"
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    sizes = opened.execute_script(
        "return [...document.querySelectorAll('figure:not([hidden]) .wide svg')]"
        ".map(s => s.getBoundingClientRect())"
        ".map(r => [r.width, r.height])"
    )
    assert len(sizes) == 8
    assert min(min(size) for size in sizes) > 100
    wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert opened.execute_script(wide)


@browser_test
def test_metrics_switch_in_place_and_nothing_is_wider_than_a_telephone(opened) -> None:
    shown = (
        "return [...document.querySelectorAll('.scores')].filter(s => !s.hidden)"
        ".map(s => s.dataset.metric)"
    )
    assert opened.execute_script(shown) == ["pass@1"]
    opened.execute_script(
        "const s = document.querySelector('#chooser select'); s.value = 'pass^2';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert opened.execute_script(shown) == ["pass^2"]
    drawn = (
        "return [...document.querySelectorAll('figure[data-metric]')]"
        ".filter(f => f.offsetHeight > 0).map(f => f.querySelector('h3').textContent)"
    )
    assert opened.execute_script(drawn) == [
        "Differences in pass^2 on questions like these",
        "Ranks in pass^2 on questions like these",
    ]
    size = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wide = (
        "return [document.documentElement, document.querySelector('.scores:not([hidden]) .scroll')]"
        ".map(e => e.scrollWidth - e.clientWidth)"
    )
    assert opened.execute_script(wide) == [0, 0]
    stacked = (
        "return [...document.querySelectorAll('figure:not([hidden]) .drawing')]"
        ".filter(d => d.offsetHeight > 0).map(d => [d.className, d.scrollWidth - d.clientWidth])"
    )
    assert opened.execute_script(stacked) == [["drawing narrow", 0]] * 8
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@browser_test
def test_names_stay_text_in_a_browser(opened) -> None:
    shown = opened.execute_script(
        "return [...document.querySelectorAll('#questions tbody tr')]"
        ".map(r => r.cells[0].textContent)"
    )
    assert set(QUESTIONS) <= set(shown)
    assert (
        opened.execute_script("return document.querySelectorAll('td img, td script').length") == 0
    )


@browser_test
@pytest.mark.parametrize(("heading", "numeric"), [("mean", True), ("system", False)])
def test_a_click_on_a_heading_sorts(opened, heading, numeric) -> None:
    read = (
        "const table = document.querySelector('#tables table');"
        "const at = [...table.tHead.rows[0].cells].findIndex(c => c.textContent === arguments[0]);"
        "return [...table.tBodies[0].rows].map(row => row.cells[at].textContent)"
    )
    click = (
        "[...document.querySelector('#tables table').tHead.rows[0].cells]"
        ".find(c => c.textContent === arguments[0]).querySelector('button').click()"
    )
    order = [float, lambda text: text][not numeric]
    before = opened.execute_script(read, heading)
    opened.execute_script(click, heading)
    rising = opened.execute_script(read, heading)
    opened.execute_script(click, heading)
    falling = opened.execute_script(read, heading)
    assert sorted(before) == sorted(rising) == sorted(falling)
    if numeric:
        assert list(map(order, rising)) == sorted(map(order, before))
    assert falling == rising[::-1] or list(map(order, falling)) == list(map(order, rising))[::-1]
    marked = opened.execute_script(
        "return [...document.querySelectorAll('#tables th[aria-sort]')].map(c => c.ariaSort)"
    )
    assert marked == ["descending"]


@browser_test
def test_light_dark_and_paper(opened) -> None:
    def colours(scheme: str) -> list[str]:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        return opened.execute_script(
            "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor,"
            " getComputedStyle(document.querySelector('figure svg text')).fill]"
        )

    light, dark = colours("light"), colours("dark")
    assert light[1] == "rgb(255, 255, 255)"
    assert light[2] == light[0]  # text in plots has the colour of the page's
    assert dark[2] == dark[0] != light[0]
    assert sum(json.loads(dark[1].replace("rgb(", "[").replace(")", "]"))) < 120
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    size = {"width": 700, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    opened.execute_script("dispatchEvent(new Event('beforeprint'))")
    beyond = (
        "return [...document.querySelectorAll('th, td')].filter(e => e.offsetHeight > 0"
        " && e.getBoundingClientRect().right > 701).map(e => e.textContent.slice(0, 40))"
    )
    assert opened.execute_script(beyond) == []  # what is beyond the edge of paper is lost
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 50_000


AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"


@browser_test
@pytest.mark.skipif(not AXE.exists(), reason="needs axe-core, which npm installs")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screen_reader_and_low_contrast_eyes_can_read_it(opened, scheme) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    opened.execute_script("document.querySelectorAll('details').forEach(own => own.open = true)")
    opened.execute_script(AXE.read_text(encoding="utf-8"))
    opened.set_script_timeout(100)
    violations = opened.execute_async_script(
        "const done = arguments[0]; axe.run().then(r => done(r.violations.map("
        "v => [v.id, v.nodes.map(n => n.html.slice(0, 200))])))"
    )
    assert violations == []


@browser_test
def test_the_references_are_copied_or_selected(opened) -> None:
    opened.execute_script("document.querySelector('#copier button').click()")
    read_status = "return document.getElementById('copied').textContent"
    for _ in range(50):
        if opened.execute_script(read_status):
            break
        time.sleep(0.1)
    if opened.execute_script(read_status).startswith("Selected"):
        entries = opened.execute_script("return getSelection().toString()")
        assert entries.startswith("@")
    else:
        assert opened.execute_script(read_status) == "Copied."


@pytest.mark.long
def test_the_number_of_guessers_is_said_where_it_was_not_given(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("question,outcome\na,1\na,0\nb,0\nb,1\n")
    line = ["report", str(path), "-o", str(tmp_path / "r.html"), "--guess", "0.25", "-q"]
    silent = CliRunner().invoke(app, line)
    assert silent.exit_code == 0
    assert "the best of t = 10 guessers" in silent.stdout
    assert "best of 10" in (tmp_path / "r.html").read_text()
    stated = CliRunner().invoke(app, [*line, "-t", "3"])
    assert "t = " not in stated.stdout
    assert "best of 3" in (tmp_path / "r.html").read_text()


def test_doubts_about_what_was_read_stand_beside_the_scores(fit, tmp_path) -> None:
    table = pd.DataFrame({"question": ["p", "q"] * 4, "prompt": ["x"] * 8, "outcome": [0, 1] * 4})
    with pytest.warns(UserWarning, match="ask the same"):
        doubtful = bk.tally(table)
    assert "CHECK: " in doubtful.card()
    path = bk.report(fit, tmp_path / "r.html", data=doubtful)
    scores = path.read_text().partition('<section id="claims">')[0]
    assert "CHECK: " in scores.partition('<section id="scores">')[2]


@pytest.mark.long
@pytest.mark.parametrize("difficulty", ["inflated", "beta", "averaged"])
def test_questions_that_are_never_solved_are_claimed(difficulty) -> None:
    """A third impossible: the claim gives the share, where the model has one."""
    data = bk.tally(([0] * 30 + [8] * 30 + [12] * 30, [16] * 90))
    fit = bk.evaluate(data, "pass@4", difficulty=difficulty, rng=1)
    sentences = [line for line in levels(Result.of(fit)) if "never solved" in line]
    assert len(sentences) == (difficulty != "beta")
    if sentences:
        assert ("impossible; if so, an" in sentences[0]) == (difficulty == "averaged")
        never = fit["closed_form"]["never_solved"].squeeze()
        mean, low, high = (
            100 * float(never.sel(statistic=name)) for name in ("mean", "ci_lower", "ci_upper")
        )
        estimate = f"an estimated {mean:.0f}% [{low:.0f}%, {high:.0f}%] of questions like these"
        assert estimate in sentences[0] or difficulty == "averaged"


def test_impossible_questions_are_not_claimed_where_a_law_of_large_k_is_refused() -> None:
    runs = [[0, 0]] * 6 + [[0, 1], [1, 1]] * 3
    given = {"covariates": {"x": list(range(12))}, "group": ["a", "b"] * 6}
    for name, values in given.items():
        data = bk.tally(runs, **{name: values})
        named = ["x"] if name == "covariates" else None
        fit = bk.evaluate(data, "pass@1,8", difficulty="inflated", covariates=named, rng=1)
        assert not [line for line in levels(Result.of(fit)) if "never solved" in line]


def test_probable_families_are_named_once() -> None:
    """Where more than one has 5%; and that k beyond the trials rests on them."""
    counts = ([0, 0, 1, 2, 3, 4, 4, 2, 1, 0] * 3, [4] * 30)
    fit = bk.evaluate(bk.tally(counts), "pass@2,16", difficulty="averaged", rng=1)
    probability = fit["closed_form"]["family_probability"].squeeze("system").to_series()
    note, beyond = fit.notes
    named = probability[probability >= 0.05].sort_values(ascending=False)
    words = {"beta": "Beta", "inflated": "inflated", "mixture": "mixture of two Betas"}
    listed = ", ".join(f"{words[name]} {100 * p:.0f}%" for name, p in named.items())
    assert note == (
        f"system: difficulty is averaged over shapes that are as probable as: {listed}."
    )
    assert beyond.startswith("system: difficulty families matter for the interval of pass@16, ")
    alone = bk.evaluate(bk.tally(counts), "pass@2,16", difficulty="beta", rng=1)
    assert not [note_of for note_of in alone.notes if "difficulty:" in note_of]


MARKS, COST = [[1, 0, 1], [0, 0, 1], [1, 1, 1]] * 2, [[1, 2, 1], [3, 2, 2], [1, 1, 2]] * 2


def test_costs_are_part_of_a_report(tmp_path) -> None:
    data = bk.tally({"a": MARKS, "b": MARKS}, cost={"a": COST, "b": 3.0 * np.array(COST)})
    fit = bk.evaluate(data, "pass@1 cost cost/success", difficulty="beta", draws=50, rng=1)
    path = bk.report(bk.compare(fit), tmp_path / "costs.html")
    text = path.read_text(encoding="utf-8")
    assert "the expected cost of a new trial over the probability that it succeeds" in text
    assert 'aria-label="Score and cost' in text
    assert "<option>cost/success</option>" in text  # which shows its rows of tables
    assert re.search(r"a trial costs .* P\(a is cheaper\)", text)
    assert "difficulty distribution; of costs, these questions, resampled by the Bayesian" in text
    assert "Costs have no model. On questions like these" in text
    assert "A system is called ahead where P(better) is 0.975 or more." in text


def test_methods_of_marks_by_a_judge_have_its_rates_with_their_priors(tmp_path) -> None:
    """The better system comes first in the scores, and each keeps its judge."""
    rng = np.random.default_rng(1)
    runs = {"low": rng.binomial(1, 0.3, (20, 3)), "high": rng.binomial(1, 0.7, (20, 3))}
    judges = {"low": bk.JudgeError(90, 100, 4, 90), "high": bk.JudgeError(50, 60, 9, 30)}
    fit = bk.evaluate(
        runs, "pass@1,2", judge=judges, difficulty="beta", pooling="partial", draws=50, rng=1
    )
    text = _text(bk.report(fit, tmp_path / "judge.html"))
    for system, *priors in (("low", "91, 11", "5, 87"), ("high", "51, 11", "10, 22")):
        for rate, prior in zip(("sensitivity", "false_positive_rate"), priors, strict=True):
            assert f"judge of {system}{rate}Beta({prior})" in re.sub(r"\n", "", text)
    for words in (
        "Estimates are those of the marks as they are, with the errors of the judge",
        "a wrong one with false_positive_rate. Every system",
        "posterior is of true success",
        "Open marker: unbiased estimate from the observed trials, by the marks as they are.",
    ):
        assert words in text
    for words in ("Estimates are unbiased", "Costs have no model"):
        assert words not in text


def test_pictures_have_the_systems_in_the_order_of_the_data_and_so_their_colours(
    fit, tmp_path, monkeypatch
) -> None:
    drawn = []
    monkeypatch.setattr(
        bk.reporting, "pictures", lambda result, *_: drawn.append(result.systems) or []
    )
    page = bk.report(fit, tmp_path / "page.html").read_text(encoding="utf-8")
    assert drawn == [SYSTEMS]
    first = re.search(r'<tbody>\s*<tr><th scope="row"><bdi>(.*?)</bdi>', page)
    assert first
    assert first[1] == html.escape(SYSTEMS[2])


def test_a_report_on_costs_alone_has_the_score_and_a_table_by_group_refuses_them(tmp_path) -> None:
    group = ["x", "y", "x"] * 2
    data = bk.tally({"a": MARKS, "b": MARKS}, cost={"a": COST, "b": COST}, group=group)
    fit = bk.evaluate(data, "cost", difficulty="beta", draws=50, rng=1)
    text = bk.report(fit, tmp_path / "costs.html").read_text(encoding="utf-8")
    assert "<option>mean</option>" in text
    assert "a trial costs" in text
    with pytest.raises(ValueError, match=r"by='group' is for metrics of scores.*'mean', 'cost'"):
        bk.table(fit, by="group")
    compared = bk.compare(fit)
    assert "group_comparison" not in compared
    lines = str(bk.table(compared)).splitlines()
    assert len(lines) == len(set(lines) - {""}) + lines.count("")


def test_panels_of_groups_share_an_axis_and_targets_without_costs_have_no_panel(tmp_path) -> None:
    rng = np.random.default_rng(4)
    rows = [
        f"{system},{q},{t},{int(rng.random() < 0.3 + 0.1 * (q % 5))},{'xyz'[q % 3]},{cost}"
        for system, cost in (("a", 1.0), ("b", 2.5))
        for q in range(15)
        for t in range(3)
    ]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["system,question,trial,outcome,kind,usd", *rows]))
    data = bk.load(path, group="kind", cost="usd", progress=False)
    fit = bk.evaluate(data, ["pass@1,2", "cost"], group="group", difficulty="beta", rng=1)
    by_group = bk.plots.plot_systems(fit, "pass@1", by="group").viz["figure"].item()
    assert len({panel.get_xlim() for panel in by_group.axes}) == 1
    cost = bk.plots.plot_cost(fit).viz["figure"].item()
    assert len(cost.axes) == 2  # three groups say nothing of costs in new ones
    curve = bk.plots.plot_curve(fit, "pass@").viz["figure"].item()
    _stack(curve, shaded=False)
    assert len(curve.axes) == 3  # a panel for each target, and no place for a fourth
    page = bk.report(fit, tmp_path / "page.html").read_text(encoding="utf-8")
    prior = page[page.index("Prior distributions:") : page.index("<h3>References")]
    for text in ("group_sd", "HalfNormal(1)", "mean", "Beta(1, 1)"):
        assert f"<bdi>{text}</bdi>" in prior
    assert "families" not in prior


def test_costs_of_which_nothing_is_known_have_no_picture(tmp_path) -> None:
    data = bk.tally([[1]], cost=[[0.5]], cost_unit="USD")
    fit = bk.evaluate(data, ["pass@1", "cost"], difficulty="beta", draws=20, rng=1)
    with pytest.raises(ValueError, match=r"must have enough trials .*plot_systems") as error:
        bk.plots.plot_cost(fit)
    assert "these questions, questions like these" in str(error.value)
    bk.plots.plot_systems(fit)
    page = bk.report(fit, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "nothing tells how uncertain its costs are" in page
    assert "Score and cost" not in page


def test_the_command_says_what_it_does_where_nobody_watches(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "system,question,trial,outcome\n" + "".join(f"a,{q},0,{q % 2}\n" for q in range(4))
    )
    line = ["report", str(path), "-o", str(tmp_path / "page.html"), "--pooling", "none"]
    done = CliRunner().invoke(app, line)
    assert done.stderr.splitlines() == ["Evaluating ...", "Drawing the page ..."]
    assert CliRunner().invoke(app, [*line, "--quiet"]).stderr == ""
