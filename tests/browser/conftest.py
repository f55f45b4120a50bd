"""The system's Chromium, and reports to open in it."""

import functools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import pegfan as pf
from pegfan.auto.outcome import Plan, carry_out
from pegfan.auto.reasons import add_importances, add_reasons
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


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """Rare frauds, payments, devices, five folds, boosted trees and a network together: the result and its report."""
    folder = tmp_path_factory.mktemp("bank")
    tables = pf.datasets.transactions(300, n_payments=1500, fraud=0.1, seed=1).write(folder)
    graph = pf.read_graph(*tables, label="fraud").replace(metric="average_precision")
    return _searched(graph, folder, pf.Recipe(method="none", head="boosting", hops=1, labels=True))


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """Prices of houses, some of them not known: the result and its report."""
    rng = np.random.default_rng(0)
    place = rng.random((150, 2))
    rooms = rng.integers(1, 7, 150)
    price = 350_000 + 60_000 * rooms + 90_000 * np.sin(5 * place[:, 0]) + rng.normal(0, 20_000, 150)
    near = np.argsort(((place[:, None] - place[None]) ** 2).sum(-1), axis=1)[:, 1:5]
    graph = pf.Graph.from_edges(
        np.column_stack([np.repeat(np.arange(150), 4), near.ravel()]),
        n=150,
        features=np.column_stack([rooms, rng.random(150)]),
        feature_names=["rooms", "noise"],
        targets=np.where(np.arange(150) % 4, price, np.nan),
        node_names=[f"h{i:04}" for i in range(150)],
    )
    return _searched(graph, tmp_path_factory.mktemp("numbers"), pf.Recipe(h=4, hops=2))


def _searched(graph: pf.Graph, folder: Path, first: pf.Recipe) -> tuple[Result, Path]:
    """What a small search over a recipe and a network finds, and its report."""
    network = pf.Recipe.of({"method": "none", "hops": 2, "hop_normalize": False, "lr_fc": 0.005, "epochs": 40})
    recipes = [first, network]
    found = carry_out(graph, Plan(budget=60, recipes=recipes, choose="mean", metric_reason="it was asked for"))
    fitted = found.model.fitted_
    explained = add_reasons(add_importances(found.result, fitted, found.graph), fitted, found.graph)
    result = replace(explained, title="Accounts + payments", command="pegfan train -o out")
    tree = next((member.tree for member in found.model.fitted_.members if member.tree is not None), None)
    return result, write_report(folder / "report.html", result, found.graph, tree, found.probabilities)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a report of given parts."""
    return functools.partial(write_report, tmp_path / "report.html")
