"""A headless Chromium for the tests of the page: offline, and with what it logs and asks for."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains, Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

# Where a point of a chart is on the screen, by the chart's own scales.
_POINT = """
const [id, x, y] = arguments;
const plot = Bokeh.documents.map((d) => d.get_model_by_name(id)).find(Boolean);
const view = Bokeh.index.find_one(plot);
document.getElementById(id).scrollIntoView({ block: "center" });
const { left, top } = view.el.getBoundingClientRect();
return [left + view.frame.x_scale.compute(x), top + view.frame.y_scale.compute(y)];
"""
_DATA = "return Bokeh.documents.map((d) => d.get_model_by_name(arguments[0])).find(Boolean).data"


@contextmanager
def chromium(profile: Path, width: int = 1280, height: int = 900) -> Iterator[Chrome]:
    """A browser with an empty profile. Without Chromium the test is skipped, but in CI it fails."""
    programs = [shutil.which("chromium"), shutil.which("chromedriver")]
    if not all(programs):
        cause = "the page needs a browser to be tested: apt-get install -y chromium chromium-driver"
        pytest.fail(cause) if os.environ.get("CI") else pytest.skip(cause)
    options = ChromeOptions()
    options.binary_location = str(programs[0])
    for argument in (*QUIET, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(str(programs[1])))
    try:
        yield driver
    finally:
        driver.quit()


def open_page(driver: Chrome, path: Path) -> None:
    """Load the page and wait until it is drawn."""
    driver.get(path.as_uri())
    WebDriverWait(driver, 30).until(lambda d: d.execute_script("return document.body.classList.contains('ready')"))


def complaints(driver: Chrome) -> list[str]:
    """Warnings and errors of the console since it was last asked."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")]


def requests(driver: Chrome) -> list[str]:
    """The addresses asked for since this was last called."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def points(driver: Chrome, source: str) -> list[dict]:
    """What a chart's source holds, a dictionary for each point."""
    data = driver.execute_script(_DATA, source)
    return [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]


def move_to(driver: Chrome, chart: str, x: float, y: float) -> ActionChains:
    """The pointer over a point of a chart."""
    left, top = driver.execute_script(_POINT, chart, x, y)
    chain = ActionChains(driver, duration=20)
    chain.w3c_actions.pointer_action.move_to_location(round(left), round(top))
    return chain


def choose(driver: Chrome, control: str, value: str) -> None:
    """Set one of the page's controls as a user would."""
    driver.execute_script(
        "const c = document.getElementById(arguments[0]); c.value = arguments[1]; c.dispatchEvent(new Event('input'))",
        control,
        value,
    )
