"""The page in headless Chromium: it asks for nothing, complains of nothing, filters, sorts, and leads to every case."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import choose, chromium, complaints, move_to, open_page, points, requests
from hostile_names import HOSTILE
from reporting import run
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

KERNELS = Path(__file__).with_name("kernels_for_page.py")
MINE = (*HOSTILE, "doubled", "raises", "zeros")


# What the pointer's box says, and how many images there are, looking into shadow roots.
_TIP = """
const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
const found = all(document);
const tip = found.filter((e) => e.localName === "b").map((e) => e.textContent).join();
return [tip, found.filter((e) => e.localName === "img").length];
"""


def plainly(name: str) -> str:
    """A name as the charts draw it: nothing that would start TeX."""
    return name.replace("$$", "$\u2060$").replace("\\(", "\\\u2060(")


def glob_for(name: str) -> str:
    return "".join(f"[{c}]" if c in "[*?" else c for c in name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of names that try everything."""
    made = tmp_path_factory.mktemp("page")
    chosen = [word for name in MINE for word in ("--impl", glob_for(name))]
    assert run("report", "--impls", KERNELS, *chosen, "--quick", "--dtype", "float32", "--out", made) == 0
    return made


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def page(driver: Chrome, folder: Path) -> Iterator[Chrome]:
    """The page as it opens. Whatever a test does with it, it stays quiet, and no name ever runs."""
    requests(driver)
    complaints(driver)
    driver.set_window_size(1280, 900)
    open_page(driver, folder / "report.html")
    yield driver
    assert complaints(driver) == []
    assert {url for url in requests(driver) if not url.startswith("data:")} == {(folder / "report.html").as_uri()}
    assert driver.execute_script("return window.hacked ?? null") is None
    assert driver.find_elements(By.TAG_NAME, "img") == []


def rows(page: Chrome) -> list[list[str]]:
    """The table as it stands."""
    return page.execute_script(
        "return [...document.querySelectorAll('#table tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    )


def column(page: Chrome, name: str) -> list[str]:
    names = page.execute_script("return [...document.querySelectorAll('#table th')].map((c) => c.dataset.column)")
    return [row[names.index(name)] for row in rows(page)]


def story(page: Chrome) -> dict[str, str]:
    """What the panel tells."""
    pairs = page.execute_script(
        "return [...document.querySelectorAll('#case dd')].map((d) => [d.previousSibling.textContent, d.textContent])"
    )
    return dict(pairs)


def count(page: Chrome) -> int:
    return int(page.find_element(By.ID, "count").text.partition(" ")[0].replace(",", ""))


def click_cell(page: Chrome, impl: str, regime: str) -> None:
    (cell,) = (c for c in points(page, "heat_cells") if impl in c["where"] and c["where"].endswith(f" in {regime}"))
    move_to(page, "heat", cell["x"], cell["y"]).click().perform()


def test_it_opens_offline_and_quietly_with_every_chart_filled(page: Chrome):
    for source in ("heat_cells", "histogram_bars", "condition_pass", "condition_fail", "length_lines", "length_points"):
        assert points(page, source), source
    assert count(page) == page.execute_script("return trueulp.measurements.size")
    assert not page.find_element(By.ID, "case").is_displayed()


def test_a_click_on_a_cell_shows_its_worst_case(page: Chrome):
    click_cell(page, "doubled", "near_ties")
    panel = page.find_element(By.ID, "case")
    assert panel.find_element(By.TAG_NAME, "h2").text == "sum · doubled · float32"
    assert panel.find_element(By.CLASS_NAME, "outcome").text == "fail: over the bound"
    told = story(page)
    assert set(told) >= {"element", "got", "expected", "exact", "error", "allowed", "condition", "verdict"}
    assert len(told["x"].split()) >= len(told["x bits"].split()) > 0
    assert all(len(word) == 8 and int(word, 16) >= 0 for word in told["x bits"].split())
    assert float(told["got"].split()[0]) == pytest.approx(2 * float(told["exact"].split()[0]))
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert not panel.is_displayed()


def test_replay_lines_run_in_a_shell_whatever_the_name(page: Chrome, capsys: pytest.CaptureFixture[str]):
    for name in ("doubled", *HOSTILE):
        choose(page, "search", name)
        page.find_element(By.CSS_SELECTOR, "#table tbody tr").click()
        program, *words = shlex.split(page.find_element(By.CSS_SELECTOR, "#case code").get_property("textContent"))
        capsys.readouterr()
        assert program == "trueulp"
        assert run(*words) == 0
        printed = capsys.readouterr().out.splitlines()
        assert name in printed
        assert sum(line.startswith("  verdict") for line in printed) == 1


def test_a_case_that_raised_is_told_too(page: Chrome):
    click_cell(page, "raises", "absorbed")
    assert story(page)["detail"] == f"RuntimeError: {HOSTILE[2]}"
    assert story(page)["verdict"] == "fail: raised"


def test_filters_narrow_the_table_and_the_charts(page: Chrome):
    everything, cells = count(page), len(points(page, "heat_cells"))
    choose(page, "search", "DOUBLED")
    assert 0 < count(page) < everything
    assert set(column(page, "impl")) == {"doubled"}
    assert 0 < len(points(page, "heat_cells")) < cells
    assert {p["where"] for p in points(page, "histogram_bars")} == {"sum · doubled"}
    choose(page, "outcome", "fail")
    assert set(column(page, "outcome")) == {"✕ fail"}
    assert points(page, "condition_pass") == []
    choose(page, "regime", "masks")
    assert set(column(page, "regime")) == {"masks"}
    choose(page, "search", "nothing is called so")
    assert (count(page), points(page, "heat_cells"), points(page, "length_lines")) == (0, [], [])
    page.find_element(By.ID, "reset").click()
    assert count(page) == everything


def test_an_operator_can_be_chosen_and_cells_not_run_are_shown(page: Chrome):
    absent = {(p["x"], p["y"]) for p in points(page, "heat_absent")}
    assert absent
    assert absent.isdisjoint((p["x"], p["y"]) for p in [*points(page, "heat_cells"), *points(page, "heat_grey")])
    page.find_element(By.CSS_SELECTOR, "#operators [data-op=rms_norm]").click()
    assert set(column(page, "op")) == {"rms_norm"}
    assert set(column(page, "impl")) == {"zeros †"}


def test_the_measure_is_switched(page: Chrome):
    before = points(page, "heat_cells")
    choose(page, "measure", "max_row_ulp")
    assert points(page, "heat_cells") != before
    assert page.find_element(By.ID, "legend-label").text == "largest error in ULP of the row's largest output"


def test_a_heading_sorts_both_ways(page: Chrome):
    choose(page, "outcome", "pass")
    heading = page.find_element(By.CSS_SELECTOR, "th[data-column=max_ulp]")
    for expected, down in (("descending", True), ("ascending", False)):
        heading.find_element(By.TAG_NAME, "button").click()
        values = [float(v) for v in column(page, "max_ulp")]
        assert heading.get_attribute("aria-sort") == expected
        assert values == sorted(values, reverse=down)
    shown = len(values)
    page.find_element(By.ID, "more").click()
    assert len(rows(page)) == min(count(page), shown + 100)


def test_hostile_names_stay_text_everywhere(page: Chrome):
    for name in HOSTILE:
        choose(page, "search", name)
        assert set(column(page, "impl")) == {name}
        page.find_element(By.CSS_SELECTOR, "#table tbody .open").click()
        assert page.find_element(By.CSS_SELECTOR, "#case h2").get_property("textContent") == f"sum · {name} · float32"
        page.find_element(By.CSS_SELECTOR, "#case .close").click()
        cell = points(page, "heat_cells")[0]
        move_to(page, "heat", cell["x"], cell["y"]).perform()
        tip, images = page.execute_script(_TIP)
        assert plainly(name) in tip
        assert images == 0


def test_a_line_of_the_failures_leads_to_its_case(page: Chrome):
    page.find_element(By.CSS_SELECTOR, "#failures summary").click()
    page.find_element(By.CSS_SELECTOR, "#failures [data-impl=doubled]").click()
    assert page.find_element(By.CSS_SELECTOR, "#case h2").text == "sum · doubled · float32"
    assert {"got", "max ULP"} & story(page).keys()


def test_a_row_that_is_not_the_worst_of_its_regime_leads_to_the_worst(page: Chrome):
    choose(page, "search", "doubled")
    choose(page, "regime", "lengths")
    for line in page.find_elements(By.CSS_SELECTOR, "#table tbody tr"):
        line.click()
        if "max ULP" in story(page):
            break
    assert "max ULP" in story(page)
    page.find_element(By.CSS_SELECTOR, "#case .untold button").click()
    assert "exact" in story(page) or "expected" in story(page)


def test_a_narrow_window_scrolls_charts_and_not_the_page(page: Chrome):
    page.set_window_size(500, 900)
    inner, outer = page.execute_script("return [window.innerWidth, document.documentElement.scrollWidth]")
    assert outer <= inner
    page.find_element(By.CSS_SELECTOR, "#table tbody .open").click()
    assert page.find_element(By.ID, "case").rect["width"] <= inner
