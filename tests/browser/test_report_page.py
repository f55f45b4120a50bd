"""The report as its reader has it: in a browser, with keys, pointer, phone, dark room and paper."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pegfan as pf
from pegfan import results
from pegfan.metrics import METRICS
from pegfan.report import write_comparison
from pegfan.results import Result
from support.results import plain_result

HOSTILE = [
    "</script><script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "\"'><svg onload=window.hit=1>",
    "{{script}} \u202eעברית\u2028",
]
SECTIONS = [
    "warnings", "score", "ranking", "finding", "importance", "against", "data", "choice", "probabilities", "confusion",
    "per_class", "curves", "attention", "tree", "graph", "unsure", "repeat",
]  # fmt: skip


def test_opens_without_a_complaint_and_fills_every_section(tab, report):
    page = tab(report).page
    assert page.locator("main > section").evaluate_all("all => all.map(one => one.id)") == SECTIONS
    for section in SECTIONS:
        assert page.locator(f"#{section} .body > *").count() > 0, section
        assert page.locator(f"#{section} .absent").count() == 0, section
    assert page.locator("#contents a").count() == len(SECTIONS)


@pytest.fixture(params=["small", "bank", "numbers"])
def every_report(request):
    """The reports of four classes, of rare frauds, and of numbers."""
    return request.getfixturevalue("report") if request.param == "small" else request.getfixturevalue(request.param)[1]


def size_of(width):
    return {"viewport": {"width": width, "height": 900}, "color_scheme": "dark" if width < 500 else "light"}


CHECKS = Path(__file__).with_name("checks.js").read_text(encoding="utf-8").strip().rstrip(";")


def check(page, *names):
    """No check of `checks.js` finds anything."""
    assert {name: page.evaluate(f"{CHECKS}.{name}()") for name in names} == {name: [] for name in names}


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_broken_or_overlapping(tab, every_report, width):
    page = tab(every_report, **size_of(width)).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".chart").count() >= 3
    check(page, "wide", "broken", "charts")


def test_prints_every_section_whole(tab, every_report):
    page = tab(
        every_report, viewport={"width": 688, "height": 1000}, color_scheme="dark"
    ).page  # A4 but for its margins
    page.emulate_media(media="print")
    assert page.locator("main > section:visible h2:visible").count() == page.locator("main > section").count() >= 12
    check(page, "wide", "broken", "charts")
    clipped = (
        """[...document.querySelectorAll(".scroll")].filter((one) => one.scrollHeight > one.clientHeight + 1).length"""
    )
    assert page.evaluate(clipped) == 0
    assert page.evaluate("getComputedStyle(document.querySelector('.lede')).color") == "rgb(28, 27, 25)"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_first_screen_tells_how_good_compared_with_what_and_where_to_look(tab, bank, numbers):
    for result, file in (bank, numbers):
        for width in (390, 1280):
            page = tab(file, **size_of(width)).page
            shown = METRICS[result.data.metric].show
            figures = page.locator("#figures").inner_text()
            for spread in (result.test, result.features_only, result.majority):
                assert shown(spread.mean, 1).replace("-", "−") in figures
            first = page.locator("#first")
            rows = result.ranking.rows if result.ranking else result.regression.first
            assert all(row.id in first.inner_text() for row in rows[:5])
            box = first.bounding_box()
            assert box["y"] + box["height"] <= 900


@pytest.mark.parametrize("width", [390, 1280])
def test_keys_reach_the_reasons_of_listed_nodes(tab, bank, width):
    result, file = bank
    page = tab(file, **size_of(width)).page
    why = {reason.id: reason for reason in result.reasons}
    page.locator("#ranking thead button").last.focus()
    for row in result.ranking.rows[:12]:
        page.keyboard.press("Tab")
        while page.evaluate("document.activeElement.tagName") != "BUTTON":
            page.keyboard.press("Tab")
        page.wait_for_timeout(30)  # the page may scroll to it
        assert page.evaluate("document.activeElement.textContent") == row.id
        tip = page.locator("#tip")
        assert tip.is_visible()
        assert tip.inner_text().startswith(row.id)
        assert why[row.id].parts[0].words in tip.inner_text()
        box = tip.bounding_box()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 900
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_boosted_trees_folds_and_things_are_said_for_what_they_are(tab, bank):
    result, file = bank
    opened = tab(file)
    heads = {candidate.name: candidate.recipe.is_boosted for candidate in result.candidates if candidate.chosen}
    assert sorted(heads.values()) == [False, True]
    assert opened.page.locator("#choice thead").inner_text().count("Epochs or rounds") == 1
    words = opened.text("#curves")
    assert ("rounds →" in words, "epochs →" in words) == (True, True)
    said = {}
    for place, member in enumerate(result.attention):
        opened.page.locator("#attention select").select_option(str(place))
        said[member.member] = "boosted trees gained" in opened.text("#attention")
    assert said == heads
    page = opened.text("body")
    assert page.count("comes from the members that did not learn from it") == 1
    assert "over 5 folds" in opened.text("#choice")
    assert opened.text("#choice").count("in the model: 50%") == 2
    bars = opened.page.locator("#choice .bars")
    words = bars.inner_text().split("\n")  # which of two equal shares comes first depends on the CPU
    assert sorted(zip(words[::2], words[1::2], strict=True)) == [("boosted trees", "50%"), ("network on hops", "50%")]
    widths = bars.locator(".fill").evaluate_all(
        "fills => fills.map((f) => f.clientWidth / f.parentElement.clientWidth)"
    )
    assert widths == pytest.approx([0.5, 0.5], abs=0.01)
    assert "the networks" not in page
    things = result.data.things
    assert things > 0
    assert f"{things:,} nodes are things" in opened.text("#data")
    assert "things, not predicted" in opened.text("#graph .key-line")
    drawn = opened.page.evaluate("JSON.parse(document.getElementById('content').textContent).graph")
    assert drawn["predicted"].count(-1) == things
    opened.page.locator("#find").fill(drawn["ids"][drawn["predicted"].index(-1)])
    opened.page.locator("#find").press("Enter")
    assert "nothing is predicted for it" in opened.text("#graph .key-line")


def test_numbers_have_their_own_sections(tab, numbers):
    result, file = numbers
    opened = tab(file)
    shown = opened.page.locator("main > section").evaluate_all("all => all.map(one => one.id)")
    assert "numbers" in shown
    assert not {"finding", "probabilities", "confusion", "per_class", "unsure"} & set(shown)
    assert opened.page.locator("#numbers .chart").count() == 2
    worst = result.regression.worst[0]
    row = opened.page.locator("#numbers .table").nth(1).locator("tbody tr").first
    assert row.inner_text().startswith(worst.id)
    scatter = opened.page.locator("#numbers .plot").first
    scatter.scroll_into_view_if_needed()
    scatter.hover()
    assert re.search(r"h\d{4}\npredicted [\d,]+, is [\d,]+", opened.text("#tip"))


def test_slider_walks_the_levels(tab, report, small):
    opened = tab(report)
    tree = small[2]
    seen = {opened.picture()}
    for level in range(1, tree.K + 1):
        opened.page.locator("#level").fill(str(level))
        clusters = tree.n_clusters[level - 1]
        assert f"{level} of {tree.K}, {clusters} cluster" in opened.text("#graph output")
        seen.add(opened.picture())
    assert len(seen) == tree.K


@pytest.mark.parametrize("colour", ["true", "confidence", "cluster", "framelet"])
def test_colours_change_the_picture_and_its_key(tab, report, colour):
    opened = tab(report)
    before, key = opened.picture(), opened.text("#graph .key-line")
    opened.page.select_option("#colour", colour)
    assert opened.picture() != before
    if colour != "true":
        assert opened.text("#graph .key-line") != key


def test_framelets_of_a_level_can_be_chosen(tab, report, small):
    opened = tab(report)
    opened.page.select_option("#colour", "framelet")
    opened.page.locator("#level").fill("3")
    options = opened.page.locator("#framelet option")
    assert options.count() > 1
    assert re.fullmatch(r"\(1, \d+, \d+\): child \d+ − child \d+, [\d,]+ nodes?", options.first.text_content())
    before = opened.picture()
    opened.page.select_option("#framelet", "1")
    assert opened.picture() != before
    opened.page.locator("#level").fill(str(small[2].K))  # single nodes have none: the nearest level that has
    assert opened.page.locator("#level").input_value() == str(small[2].K - 1)


def test_arrangements_glide_or_jump(tab, report):
    for motion in ("reduce", "no-preference"):
        opened = tab(report, reduced_motion=motion)
        before = opened.picture()
        opened.page.select_option("#arrange", "links")
        opened.page.wait_for_function("before => document.querySelector('canvas').toDataURL() !== before", arg=before)


def test_pointing_at_a_node_tells_about_it(tab, report, small):
    opened = tab(report)
    canvas = opened.page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    assert not opened.page.locator("#tip").is_visible()
    opened.page.locator("#find").fill("17")
    opened.page.locator("#find").press("Enter")
    box = canvas.bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = opened.text("#tip")
    expected = small[3][17].argmax()
    assert tip.startswith("17")
    assert f"predicted {small[0].data.classes[expected]} with {100 * small[3][17].max():.1f}%" in tip
    opened.page.keyboard.press("Escape")
    assert not opened.page.locator("#tip").is_visible()


def test_zoom_and_pan_by_mouse_buttons_and_keys(tab, report):
    opened = tab(report)
    canvas = opened.page.locator("canvas")
    canvas.scroll_into_view_if_needed()
    whole = opened.picture()
    box = canvas.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    opened.page.mouse.move(*middle)
    opened.page.mouse.wheel(0, -5)  # the wheel scrolls the page until the picture is clicked
    canvas.click()
    opened.page.mouse.wheel(0, -300)
    opened.page.wait_for_function("before => document.querySelector('canvas').toDataURL() !== before", arg=whole)
    near = opened.picture()
    opened.page.mouse.down()
    opened.page.mouse.move(middle[0] + 60, middle[1] + 30, steps=3)
    opened.page.mouse.up()
    assert opened.picture() != near
    opened.page.mouse.move(box["x"] - 5, 5)
    canvas.press("0")
    assert opened.picture() == whole
    for key in ("+", "ArrowLeft"):
        before = opened.picture()
        canvas.press(key)
        assert opened.picture() != before
    opened.page.get_by_role("button", name="Show all").click()
    assert opened.picture() == whole


def test_tables_sort(tab, report, small):
    opened = tab(report)
    rows = opened.page.locator("#unsure tbody tr th")
    given = rows.all_inner_texts()
    head = opened.page.locator("#unsure thead th").nth(2)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    probabilities = {row.id: row.probability for row in small[0].unsure}
    assert rows.all_inner_texts() == sorted(given, key=lambda name: -probabilities[name])
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert rows.all_inner_texts() == sorted(given, key=probabilities.get)


def test_doubtful_node_is_shown_in_the_picture(tab, report):
    opened = tab(report)
    before = opened.picture()
    link = opened.page.locator("#unsure tbody button").first
    node = link.inner_text()
    link.click()
    assert opened.picture() != before
    assert opened.text("#graph .key-line").startswith(node)


@pytest.mark.parametrize("settings", [{}, {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}])
def test_pointing_at_a_listed_node_tells_its_reasons(tab, report, small, settings):
    page = tab(report, **settings).page
    row, why = small[0].ranking.rows[0], small[0].reasons[0]
    link = page.locator("#ranking tbody button").first
    assert link.inner_text() == row.id == why.id
    link.scroll_into_view_if_needed()
    link.hover()
    tip = page.locator("#tip").inner_text()
    assert tip.startswith(row.id)
    for part in why.parts:
        assert part.words in tip
        assert f"{abs(part.contribution):.2f}" in tip
    link.click()
    assert why.parts[0].words in page.locator("#graph .key-line").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_attention_has_a_chooser_of_members(tab, report):
    opened = tab(report)
    before = opened.text("#attention")
    opened.page.locator("#attention select").select_option("1")
    assert opened.text("#attention") != before


def test_theme_follows_the_system_and_the_button(tab, report):
    opened = tab(report, color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light, picture = opened.page.evaluate(colour), opened.picture()
    opened.page.locator("#theme").click()
    dark = opened.page.evaluate(colour)
    assert dark != light
    assert opened.picture() != picture
    opened.page.locator("#theme").click()
    assert opened.page.evaluate(colour) == light
    assert tab(report, color_scheme="dark").page.evaluate(colour) == dark


CONTRAST = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const poor = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !one.checkVisibility() || ["SCRIPT", "OPTION", "NOSCRIPT"].includes(one.tagName)) continue;
    let ground = one;
    while (ground && rgba(getComputedStyle(ground).backgroundColor)[3] < 255) ground = ground.parentElement;
    const [a, b] = [rgba(getComputedStyle(one).color), rgba(getComputedStyle(ground ?? document.body).backgroundColor)]
      .map(light).sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.4) poor.push(`${one.tagName}.${one.className} ${one.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return poor;
}"""


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_lines_stand_out_from_their_ground(tab, every_report, scheme):
    page = tab(every_report, color_scheme=scheme).page
    assert page.evaluate(CONTRAST) == []
    ground = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    lines = set(page.evaluate(f"{CHECKS}.lines()"))
    assert lines
    for line in lines:
        low, high = sorted((ground, luminance(line)))
        assert (high + 0.05) / (low + 0.05) >= 3, line


@pytest.mark.parametrize("width", [320, 390, 768, 2560])
def test_no_width_scrolls_sideways(tab, report, width):
    opened = tab(report, viewport={"width": width, "height": 844}, has_touch=width < 500)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.page.locator("canvas").bounding_box()["width"] > 0.6 * min(width, 1200) - 120


def test_a_tap_on_the_phone_tells_about_a_node(tab, report):
    opened = tab(report, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    opened.page.locator("#find").fill("17")
    opened.page.locator("#find").press("Enter")
    opened.page.locator("canvas").tap()
    assert opened.text("#tip").startswith("17")


def test_prints_in_light_colours(tab, report):
    opened = tab(report, color_scheme="dark")
    note = "document.body.dataset.seen = document.documentElement.dataset.theme"
    opened.page.evaluate(f"addEventListener('beforeprint', () => {{ {note}; }})")
    before = opened.picture()
    printed = opened.page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert len(printed) > 50_000
    assert opened.page.evaluate("document.body.dataset.seen") == "light"
    assert opened.picture() == before
    opened.page.emulate_media(media="print")
    assert not opened.page.locator("#graph .controls").is_visible()
    assert not opened.page.locator("nav").is_visible()


def test_can_be_read_without_a_pointer(tab, report):
    page = tab(report).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    unnamed = """[...document.querySelectorAll("button, select, input, canvas, [role=img], [role=region]")].filter(
      (one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length)).length"""
    assert page.evaluate(unnamed) == 0
    assert page.evaluate("[...document.querySelectorAll('h1, h2, h3')].filter(h => !h.textContent.trim()).length") == 0


def test_names_from_data_stay_text(tab, write, small):
    result, graph, tree, probabilities = small
    graph = graph.replace(class_names=HOSTILE, node_names=[f"{HOSTILE[i % 3]}{i}" for i in range(graph.n)])
    channel = results.ChannelWeight(HOSTILE[0], HOSTILE[1], HOSTILE[2], "other", None, 1.0)
    result = replace(
        result,
        title=HOSTILE[0],
        command=HOSTILE[1],
        data=replace(result.data, classes=HOSTILE, report=HOSTILE[0]),
        candidates=[results.Candidate(HOSTILE[0], {"tree_file": HOSTILE[1:3]}, 0.5, 0.5, 1.0, 3, True, HOSTILE[1])],
        chosen=results.Chosen(HOSTILE[0], HOSTILE[1]),
        warnings=[results.Note(HOSTILE[0], HOSTILE[1])],
        versions={HOSTILE[0]: HOSTILE[1]},
        attention=[results.Attention(HOSTILE[0], [channel])],
        curves=[replace(result.curves[0], name=HOSTILE[0])],
        per_class=[replace(row, name=name) for row, name in zip(result.per_class, HOSTILE, strict=True)],
        ranking=results.Ranking(None, (results.Ranked(f"{HOSTILE[0]}0", HOSTILE[0], 0.5, HOSTILE[1]),), 1),
        precision_recall=[replace(result.precision_recall[0], name=HOSTILE[0])],
        importances=results.Importances((results.Importance(HOSTILE[1], 1, 0.1, 0.01, 0.1),)),
        reasons=[results.Reasons(f"{HOSTILE[0]}0", HOSTILE[1], 1.0, 0.0, (results.ReasonPart(HOSTILE[2], 0.5),))],
        decided=results.Decided(HOSTILE[0], offsets=(0.0,) * 4),
        metric_reason=HOSTILE[0],
        unsure=[replace(result.unsure[0], id=f"{HOSTILE[0]}0", predicted=HOSTILE[0], true=HOSTILE[1])],
    )
    opened = tab(write(result, graph, tree, probabilities))
    assert opened.text("h1") == HOSTILE[0]
    assert opened.page.evaluate("window.hit") is None
    assert opened.page.locator("script").count() == 2
    assert opened.page.locator("main img, main svg[onload], body > svg").count() == 0
    for section in ("score", "per_class", "ranking", "finding", "probabilities"):
        assert HOSTILE[0] in opened.text(f"#{section}"), section
    assert HOSTILE[1] in opened.text("#importance")
    assert HOSTILE[2] in opened.text("#ranking")
    assert opened.text("#first").startswith(f"Look at these first: {HOSTILE[0]}0")
    opened.page.locator("#ranking tbody button").hover()
    assert HOSTILE[2] in opened.text("#tip")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 1280
    opened.page.locator("#unsure tbody button").click()
    assert opened.text("#graph .key-line").startswith(f"{HOSTILE[0]}0")


def test_policy_stops_scripts_that_are_not_ours(browser, report, tmp_path):
    changed = tmp_path / "changed.html"
    changed.write_text(report.read_text().replace("</body>", "<script>window.hit = 1</script></body>"))
    page = browser.new_page()
    page.goto(changed.as_uri())
    assert page.evaluate("window.hit") is None
    assert page.locator("#score .dot").count() == 3
    page.close()


def one_node():
    graph = pf.Graph(np.zeros((1, 1)))
    return plain_result(graph, 1), graph, pf.Hierarchy([]), np.ones((1, 1))


def two_nodes():
    graph = pf.Graph(np.zeros((2, 2)))
    return plain_result(graph, 2, title="Two"), graph, pf.Hierarchy.from_nested([0, 1]), np.eye(2)


def no_links():
    graph = pf.Graph(np.zeros((40, 40)), labels=np.arange(40) % 2)
    tree = pf.Hierarchy.from_nested([list(range(20)), list(range(20, 40))])
    return plain_result(graph), graph, tree, np.eye(2)[graph.labels]


def one_class():
    graph = pf.Graph.from_edges([[i, i + 1] for i in range(9)], labels=np.zeros(10, int))
    result = plain_result(graph, confusion=[[3]], per_class=[results.PerClass("0", 3, 1.0, 1.0)])
    return result, graph, None, np.ones((10, 1))


def many_classes():
    rng = np.random.default_rng(0)
    names = [f"class number {k}" for k in range(300)]
    graph = pf.Graph.from_edges(rng.integers(0, 600, (2000, 2)), n=600, labels=np.arange(600) % 300, class_names=names)
    result = Result(
        data=replace(results.data(graph), ccns=rng.random((300, 300))),
        confusion=np.eye(300, dtype=int),
        per_class=[results.PerClass(name, 1, 1.0, 0.5) for name in names],
        test=results.Spread.of([0.5]),
    )
    return result, graph, pf.build_tree(graph, h=8), rng.dirichlet(np.ones(300), 600)


def nothing_finite():
    nan, graph = float("nan"), pf.Graph.from_edges([[0, 1]])
    result = plain_result(
        graph,
        2,
        test=results.Spread(nan, nan, [nan]),
        majority=results.Spread(nan, nan),
        curves=[results.Curve("x", [nan, nan], [1.0, nan], [], 7)],
        candidates=[results.Candidate("", {}, nan, nan, 0.0, 0, False)],
    )
    result = replace(result, data=replace(result.data, ccns=[[nan, 1], [1, nan]]))
    return result, graph, pf.Hierarchy.from_nested([0, 1]), np.full((2, 2), nan)


def single_children():
    tree = pf.Hierarchy([np.arange(6), np.arange(6), np.zeros(6, int), [0]])
    graph = pf.Graph.from_edges([[i, i + 1] for i in range(5)])
    return plain_result(graph, 2), graph, tree, np.full((6, 2), 0.5)


@pytest.mark.parametrize(
    "parts",
    [one_node, two_nodes, no_links, one_class, many_classes, nothing_finite, single_children],
    ids=lambda parts: parts.__name__,
)
def test_odd_results_do_not_break_the_page(tab, write, parts):
    opened = tab(write(*parts()), viewport={"width": 390, "height": 800})
    page = opened.page
    assert page.get_by_text("could not be drawn").count() == 0
    assert page.locator("canvas").count() == 1
    for colour in page.locator("#colour option").evaluate_all("all => all.map(one => one.value)"):
        page.select_option("#colour", colour)
        if page.locator("#level").count():
            for level in range(1, int(page.locator("#level").get_attribute("max")) + 1):
                page.locator("#level").fill(str(level))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_of_a_comparison_has_its_sections_alone(tab, tmp_path):
    graph = pf.datasets.synthetic(0.1, n=120, n_edges=900, n_features=6, splits=2)
    found = pf.compare(graph, ["pegfan", "fsgnn"], tries=1, changes={"epochs": 5, "hidden": 4})
    page = tab(write_comparison(tmp_path / "page.html", found)).page
    assert page.locator("main > section").evaluate_all("all => all.map(one => one.id)") == ["against", "data", "repeat"]
    assert page.locator("#against .dots .scale").count() == len(found.rows)
    assert page.locator("#against tbody tr").count() == len(found.rows)
