"""The system's Chromium, and reports to open in it."""

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import pegfan as pf
from pegfan.report import write_report
from pegfan.results import Result
from support.results import trained


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.exit("these tests need Chromium: apt-get install chromium", returncode=2)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


class Tab:
    """A page, and all that it complained about or asked the network for."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page, self.trouble = page, []
        page.on("console", lambda message: self.trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        page.on("request", lambda request: self._asked(request.url, file.as_uri()))
        page.goto(file.as_uri())

    def _asked(self, url: str, own: str) -> None:
        if url != own and not url.startswith("data:"):
            self.trouble.append(f"request: {url}")

    def picture(self) -> str:
        """The pixels of the graph."""
        return str(self.page.evaluate("document.querySelector('canvas').toDataURL()"))

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Open a file in a page of given settings; it must not complain about anything."""
    pages: list[Tab] = []

    def make(file: Path, **settings: Any) -> Tab:
        options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **settings}
        pages.append(Tab(browser.new_page(**options), file))
        return pages[-1]

    yield make
    trouble = [line for opened in pages for line in opened.trouble]
    for opened in pages:
        opened.page.close()
    assert trouble == []


@pytest.fixture(scope="session")
def small() -> tuple[Result, pf.Graph, pf.Hierarchy, Any]:
    """A result, its graph, its tree and its probabilities."""
    graph = pf.datasets.synthetic(0.0, n=300, n_edges=1500, n_features=20, splits=3)
    graph = graph.replace(class_names=["ant", "bee", "cicada", "dragonfly"])
    result, model = trained(graph)
    return result, graph, model.tree_, model.predict_proba()


@pytest.fixture(scope="session")
def report(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report") / "report.html", *small)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a report of given parts."""
    return functools.partial(write_report, tmp_path / "report.html")
