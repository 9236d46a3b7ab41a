"""`tokamak report --output` of real runs, opened in a headless Chromium on a phone, a laptop and a wide screen, by day and
by night: no complaint in the console, nothing wider than the screen, data in every chart, tables that say the same;
accessible by axe-core's rules. Screenshots go to the folder $SCREENSHOTS. Without Chromium (or axe-core: `accessible`)
exits 77, which ctest shows as skipped. One file, since its cases open the same few runs, each trained once."""
import datetime
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from browser import Browser, find_browser
from harness import TOKAMAK, call, main, tokamak

SCREENSHOTS = os.environ.get("SCREENSHOTS", "")
WIDTHS = {390: 844, 1280: 900, 2560: 1400}  # and the height of such a screen
CHARTS = ["loss", "lr", "grad-norm", "throughput", "data-wait", "memory", "save-stall"]  # and of MFU, where it is recorded
STEPS, STOPPED, INTERVAL = 60, 30, 10
PROMPTS = ["to", "<b>a</b> long"]  # a text, and one that is no markup
MOST_BYTES = 3_000_000
LONG = 100_000  # steps of the run whose page may have so many bytes
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def trained(place, name, *overrides):
    """The directory of a run that was stopped, and started again."""
    if not os.path.exists(place.run(name)):
        wanted = ["metrics.trace=12-13", "metrics.tensor_statistics=5", f"training.max_steps={STEPS}", f"training.validation_interval={INTERVAL}",
                  f"checkpoint.interval={INTERVAL}",
                  f"training.samples={{prompts: {json.dumps(PROMPTS)}, interval: {INTERVAL}, tokens: 24}}", *overrides]
        place.train(name, 1, *wanted, "--stop-at-step", str(STOPPED), expect=75)
        place.train(name, 1, *wanted)
    return place.run(name)


def page_of(place, *arguments):
    path = place.file("report.html")
    tokamak("report", *arguments, "--output", path)
    return path


def share_of(text):
    """The number of "12.3 %", which may be "< 0.1 %" and may have a mark."""
    return 0.05 if text.startswith("<") else float(text.split()[0])


def shoot(browser, name):
    if SCREENSHOTS:
        os.makedirs(SCREENSHOTS, exist_ok=True)
        browser.screenshot(os.path.join(SCREENSHOTS, name + ".png"))


# Of each chart: its name, its rows, how many of its lines have no value, and whether anything of a line is painted.
STATE = """charts.map((chart) => {
  const graph = chart.graph, rows = graph.numRows();
  const empty = chart.columns.filter((column, i) => !column.raw &&
    ![...Array(rows).keys()].some((row) => { const cell = graph.getValue(row, i + 1); return cell && isFinite(cell[1]); }));
  const area = graph.getArea(), canvas = chart.plot.querySelector("canvas"), scale = canvas.width / canvas.clientWidth;
  const pixels = canvas.getContext("2d").getImageData(area.x * scale, area.y * scale, area.w * scale, area.h * scale).data;
  const wanted = chart.lines.map((line) => {  // any of them: of two runs alike the later one's line covers the first
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = style(line.color);
    probe.fillRect(0, 0, 1, 1);
    return probe.getImageData(0, 0, 1, 1).data;
  });
  const alike = (i, color) => [0, 1, 2].every((k) => Math.abs(pixels[i + k] - color[k]) < 24);
  let painted = 0;
  for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 100 && wanted.some((color) => alike(i, color))) ++painted;
  return {id: chart.spec.id, rows, empty: empty.length, painted};
})"""
# Of each heat map: the cells whose middle has not the colour of their value; and where nothing is drawn, one that says so.
PAINTED = """heats.map((heat) => {
  const {area, rows, canvas, tensors} = heat, scale = canvas.width / canvas.clientWidth, [low, high] = heat.range;
  const copy = document.createElement("canvas"), pixels = copy.getContext("2d", {willReadFrequently: true});
  copy.width = canvas.width;
  copy.height = canvas.height;
  pixels.drawImage(canvas, 0, 0);
  const wrong = rows.length * tensors.to.length > 0 && high > low ? [] : ["no cells, or all alike"];
  rows.forEach(({row}, i) => tensors[heat.kind].rows[row].forEach((cell, column) => {
    const x = area.left + (column + 0.5) * area.columnWidth, y = (i + 0.5) * area.rowHeight;
    const found = "rgb(" + [...pixels.getImageData(x * scale, y * scale, 1, 1).data].slice(0, 3).join(",") + ")";
    if (found !== heatColor((cell - low) / (high - low))) wrong.push([row, column, cell, found]);
  }));
  return wrong;
})"""
# Of each heat map: what is wrong with the labels of its rows. Each row has one; none is over another, off the canvas, or not
# painted.
LABELS = """heats.flatMap((heat) => {
  const {labels, left, height, rowHeight} = heat.area, scale = heat.canvas.width / heat.canvas.clientWidth, wrong = [];
  const covered = labels.flatMap((one) => [...Array(one.to - one.from).keys()].map((i) => one.from + i));
  if (covered.join() !== heat.rows.map((_, i) => i).join()) wrong.push(["rows", covered]);
  const copy = document.createElement("canvas"), pixels = copy.getContext("2d", {willReadFrequently: true});
  copy.width = heat.canvas.width;
  copy.height = heat.canvas.height;
  pixels.drawImage(heat.canvas, 0, 0);
  labels.forEach((one, i) => {
    const rows = heat.rows.slice(one.from, one.to);
    if (!rows.every((row) => [row.group, rowTitle(row)].includes(one.text))) wrong.push(["text", one]);
    if (one.y < 6 || one.y > height - 6 || (i > 0 && one.y - labels[i - 1].y < 12)) wrong.push(["place", one]);
    const text = pixels.getImageData(0, (one.y - 6) * scale, (left - 12) * scale, 12 * scale).data;
    if (text.filter((_, k) => k % 4 === 3 && text[k] > 100).length < 20) wrong.push(["no text", one]);
  });
  return wrong;
})"""
WIDE = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
OPEN_TABLES = "document.querySelectorAll('details').forEach((details) => { details.open = true; })"


def choose(browser, among, index, value):
    """Of the menus in `among` that one's entry."""
    browser.value(f"""(() => {{ const one = document.querySelectorAll('{among} select')[{index}];
      one.value = '{value}'; one.dispatchEvent(new Event('change')); }})()""")


def expect_sound(browser, page, width, dark, shot):
    browser.set_window(width, WIDTHS[width], dark)
    browser.open(page)
    charts = browser.value(STATE)
    assert [chart["id"] for chart in charts if chart["id"] not in ("mfu", "bits-per-byte")][:len(CHARTS)] == CHARTS, charts
    has_mfu = browser.value("runs.some((run) => 'throughput/mfu_full' in run.series)")
    assert has_mfu == any(chart["id"] == "mfu" for chart in charts) == ("mfu_full" in browser.value("document.getElementById('overview').innerText"))
    for chart in charts:
        assert chart["rows"] >= 1 and chart["empty"] == 0 and chart["painted"] >= 3, (width, chart)
    steps = browser.value("charts.map((chart) => chart.plot.querySelectorAll('.dygraph-axis-label-x').length)")
    assert min(steps) >= 2, (width, steps)  # a step has a place in each chart
    shoot(browser, shot)
    for when in ("closed", "open"):
        scroll, client = browser.value(WIDE)
        assert scroll <= client == width, (width, when, scroll, client)
        browser.value(OPEN_TABLES)
        time.sleep(0.2)  # `toggle` is dispatched later
    rows = browser.value("[...document.querySelectorAll('figure details')].map((d) => d.querySelectorAll('tbody tr').length)")
    assert len(rows) == len(charts) + len(browser.value("heats.map((heat) => 0)")) and all(rows), rows
    for painted in browser.value(PAINTED):
        assert painted == [], (width, painted)
    assert browser.value(LABELS) == [], (width, browser.value(LABELS))
    assert browser.complaints() == [], browser.complaints()


def on_every_screen(place):
    """a resumed run at 390, 1280 and 2560 pixels, light and dark: no complaint, no overflow, every chart and table filled"""
    page = page_of(place, trained(place, "first"))
    with Browser(find_browser()) as browser:
        for width in WIDTHS:
            for dark in (False, True):
                expect_sound(browser, page, width, dark, f"run-{width}-{'dark' if dark else 'light'}")
        said = browser.value("document.body.innerText")
        for part in ("stopped: --stop-at-step 30", "startup, from exec", "optimizer.lr", "0.003", "A step by operation",
                     "These are the steps of metrics.trace", "trace-12-13.json: 2 steps", "of roofline", "Made by tokamak 0."):
            assert part in said, part
        started = browser.value("[...document.querySelectorAll('#environment tbody tr')].map((row) => [...row.cells].map((c) => c.textContent))")
        system = " ".join((os.uname().sysname, os.uname().release, os.uname().machine))
        assert [row[5] for row in started] == [system, system] and all(row[3].startswith("tokamak 0.") for row in started), started
        assert all(row[4].startswith(os.environ["TOKAMAK"] + " train ") for row in started), started
        expect_roofline(browser)


def expect_roofline(browser):
    """Of each operation that moves bytes or computes: the least time by the machine's rates, over what it took."""
    machine, trace = browser.value("[runs[0].machine, runs[0].traces[runs[0].traces.length - 1]]")
    assert machine["device"].startswith("CPU") and machine["flops"] > 0 and machine["memory_rate"] > 0, machine
    cells = browser.value("[...document.querySelectorAll('#operations tbody tr')].map((row) => [...row.cells].map((c) => c.textContent))")
    bound = {"arithmetic": 0, "memory": 0}
    for one, row in zip(trace["operations"], cells):
        arithmetic, memory = one["flops"] / machine["flops"], one["bytes"] / machine["memory_rate"]
        bound["arithmetic" if arithmetic > memory else "memory"] += 1
        share = 100 * max(arithmetic, memory) / one["seconds"]
        assert row[0] == one["name"] and abs(share_of(row[6]) - share) <= 0.06 + 0.001 * share, (row, share)
    assert min(bound.values()) > 0, bound


def samples(place):
    """each prompt's texts, the newest first, as metrics.jsonl has them: as text, whatever they are; of two runs, side by side"""
    run = trained(place, "first")
    texts = {}
    with open(run + "/metrics.jsonl") as lines:
        for record in map(json.loads, lines):
            for i, one in enumerate(record.get("samples", [])):
                assert one["prompt"] == PROMPTS[i], record
                texts[record["step"], i] = one["prompt"] + one["text"]
    steps = list(range(STEPS, 0, -INTERVAL))
    assert sorted(texts) == sorted((step, i) for step in steps for i in range(2)), texts
    assert len(set(texts.values())) > len(steps), texts
    rows = """[...document.querySelectorAll('#samples table')].map((table) => [table.caption.textContent,
      [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent))])"""
    with Browser(find_browser()) as browser:
        browser.set_window(1280, 900)
        browser.open(page_of(place, run))
        expected = [[f"Prompt {i + 1}: " + (prompt if len(prompt) <= 80 else prompt[:80] + "…"),
                     [[str(step), texts[step, i]] for step in steps]] for i, prompt in enumerate(PROMPTS)]
        assert browser.value(rows) == expected, (browser.value(rows), expected)
        assert browser.value("document.querySelectorAll('#samples b').length") == 0
        browser.set_window(390, 844)  # a phone's screen, in whose lines a text is broken
        widest = browser.value("Math.max(...[...document.querySelectorAll('.samples')].map((one) => one.getBoundingClientRect().width))")
        assert 0 < widest <= 390, widest
        browser.set_window(1280, 900)
        assert browser.complaints() == [], browser.complaints()
        browser.open(page_of(place, run, "--compare", trained(place, "second", "optimizer.lr=1e-3")))
        both = browser.value(rows)
        assert len(both) == 2 and [row[:2] for row in both[0][1][:3]] == [
            ["first", str(STEPS)], ["second", str(STEPS)], ["first", str(STEPS - INTERVAL)]], both
        assert browser.complaints() == [], browser.complaints()


def interaction(place):
    """x as steps, tokens and time, each named at the axis; log axes, zoom and pointer of all charts; smoothing that does not lag,
    leaves the raw curve and what is no measurement alone; the legend says what is drawn"""
    page = page_of(place, trained(place, "first"))
    losses = [loss for _, loss in sorted(place.records("first", "loss/avg").items())]
    with Browser(find_browser()) as browser:
        browser.set_window(1280, 900)
        browser.open(page)

        def extremes():
            return browser.value("charts[0].graph.xAxisExtremes()")

        assert extremes()[0] < 1 and STEPS < extremes()[1] < STEPS + 3, extremes()
        choose(browser, ".controls", 0, "tokens")
        assert 768 * STEPS < extremes()[1] < 768 * (STEPS + 3), extremes()
        assert set(browser.value(X_LABELS)) == {"tokens"}, browser.value(X_LABELS)
        choose(browser, ".controls", 0, "time")
        seconds = browser.value("runs[0].report.wall_clock")
        unit, each = ("seconds", 1) if seconds < 120 else ("minutes", 60)
        assert 0.5 * seconds / each < extremes()[1] < 1.1 * seconds / each, (extremes(), seconds)
        assert set(browser.value(X_LABELS)) == {unit + " of wall clock"}, browser.value(X_LABELS)
        choose(browser, ".controls", 0, "step")
        choose(browser, ".controls", 1, "10")
        at = 30  # the mean of the five before it, itself and the five after it
        raw, mean = browser.value(f"['true', 'false'].map((raw) => charts[0].rows[{at}][1 + charts[0].columns.findIndex("
                                  "(one) => String(one.raw) === raw && one.line.label === 'training')])")
        assert abs(mean[1] - sum(losses[at - 5:at + 6]) / 11) < 1e-4 and abs(raw[1] - losses[at]) < 1e-4, (raw, mean)
        assert browser.value("charts.flatMap((chart) => chart.columns.filter((one) => one.raw).map((one) => one.line.label))"
                             ".filter((label) => /validation|learning rate|planned|clipped|writing/.test(label))") == []
        assert browser.value("(() => { const lr = charts.find((chart) => chart.spec.id === 'lr');"
                             " return lr.rows.every((row, i) => row[1][1] === lr.lines[0].mean[i]); })()")
        # The last mean is of one value alone; at the first record the legend says the mean, not the value.
        browser.value("pointAt(4, null)")
        said = float(browser.value("charts[0].values[0].textContent"))
        assert math.isclose(said, sum(losses[:7]) / 7, rel_tol=1e-3) and not math.isclose(said, losses[3], rel_tol=1e-3), said
        browser.value("pointAt(null, null)")
        assert math.isclose(float(browser.value("charts[0].values[0].textContent")), losses[-1], rel_tol=1e-3)
        choose(browser, ".controls", 1, "1")

        browser.value("document.querySelector('#chart-loss .chart-head input').click()")
        assert browser.value("charts[0].graph.getOption('logscale')") is True
        browser.value("charts[0].graph.updateOptions({dateWindow: [20, 40]})")
        assert browser.value("charts.every((chart) => chart.graph.xAxisRange().join() === '20,40')")
        browser.value("document.querySelector('.controls button').click()")
        assert not browser.value("charts.some((chart) => chart.graph.isZoomed())")
        browser.value("document.querySelector('.controls input').click()")  # log x
        assert browser.value("charts.every((chart) => chart.graph.getOptionForAxis('logscale', 'x'))")
        browser.value("document.querySelector('.controls input').click()")

        browser.value("charts[0].plot.scrollIntoView({block: 'center'})")
        x, y = browser.value("""(() => { const box = charts[0].plot.getBoundingClientRect(), at = charts[0].graph;
          return [box.x + at.toDomXCoord(25), box.y + box.height / 2]; })()""")
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        hovered = browser.value("charts.map((chart) => [chart.where.textContent, chart.values[0].textContent])")
        assert hovered[0][0] == "step 25" and math.isclose(float(hovered[0][1]), losses[24], rel_tol=1e-3), (hovered, losses[24])
        norms = place.records("first", "optim/grad_norm")  # of another chart, at the same step
        at, norm = hovered[browser.value("charts.findIndex((chart) => chart.spec.id === 'grad-norm')")]
        assert at == "step 25" and math.isclose(float(norm), norms[25], rel_tol=1e-3), (hovered, norms[25])
        assert browser.complaints() == [], browser.complaints()


X_LABELS = "[...document.querySelectorAll('.plot .dygraph-xlabel')].map((one) => one.textContent)"

# What the heat map says of the cell of this row of names and this column.
HOVERED = """((name, column) => {
  const heat = heats[0], i = heat.rows.findIndex((one) => heat.tensors.names[one.row] === name), box = heat.canvas.getBoundingClientRect();
  heat.canvas.dispatchEvent(new PointerEvent("pointermove", {bubbles: true,
    clientX: box.x + heat.area.left + (column + 0.5) * heat.area.columnWidth, clientY: box.y + (i + 0.5) * heat.area.rowHeight}));
  return heat.where.textContent;
})"""


def heat_map(place):
    """the heat map of tensors: each kind and order says, where one points, what tensors.jsonl has, and so does its table"""
    page = page_of(place, trained(place, "first"))
    with open(place.run("first") + "/tensors.jsonl") as lines:
        records = {record["step"]: record for record in map(json.loads, lines) if "tensors" in record}
    steps = sorted(records)
    assert steps == list(range(5, STEPS + 1, 5)), steps
    names = records[5]["tensors"]
    assert len(names) == 3 * 9 + 3, names
    with Browser(find_browser()) as browser:
        browser.set_window(1280, 900)
        browser.open(page)

        browser.value("document.querySelector('.heat-map details').open = true")
        for kind in ("ratio", "weights", "gradients"):
            for order in ("matrix", "layer"):
                choose(browser, ".heat-choices", 0, kind)
                choose(browser, ".heat-choices", 1, order)
                assert browser.value(PAINTED) == [[]] and browser.value(LABELS) == [], (kind, order, browser.value(LABELS))
                time.sleep(0.2)  # `toggle` is dispatched later
                rows = browser.value("[...document.querySelectorAll('.heat-map tbody tr')].map((row) => [...row.cells].map((c) => c.textContent))")
                shown = {row[0]: row[1:] for row in rows}
                assert len(shown) == len(names), shown.keys()
                for i, name in enumerate(names):
                    parts = name.removesuffix(".weight").split(".")
                    title = f"layer {parts[2]} {parts[-1]}" if ".layers." in name else parts[-1]
                    for column, step in enumerate(steps):
                        of = {column: records[step][column]["rms"][i] for column in ("weights", "gradients", "updates")}
                        expected = of["updates"] / of["weights"] if kind == "ratio" else of[kind]
                        assert math.isclose(float(shown[title][column]), expected, rel_tol=7e-3), (kind, name, step)
                        if column in (0, len(steps) - 1):
                            said, value = browser.value(f"{HOVERED}({json.dumps(name)}, {column})").split(": ")
                            assert said == f"{title}, step {step}", said
                            assert math.isclose(float(value), expected, rel_tol=7e-3), (kind, name, step, value)
        assert browser.complaints() == [], browser.complaints()
        browser.value("document.querySelector('.heat-map').scrollIntoView()")
        shoot(browser, "heat-1280")


# Touches a chart with fingers that move from and to these places (shares of its width); says whether the page may scroll
# meanwhile, and what the chart shows then.
TOUCH = """((from, to) => {
  const chart = charts[0], target = chart.graph.mouseEventElement_ || chart.plot.querySelectorAll("canvas")[1];
  const box = target.getBoundingClientRect(), area = chart.graph.getArea();
  const touches = (places) => places.map((share, identifier) => {
    const clientX = box.x + area.x + share * area.w, clientY = box.y + area.h / 2;
    return new Touch({identifier, target, clientX, clientY, pageX: clientX + scrollX, pageY: clientY + scrollY});
  });
  const may = [["touchstart", from], ["touchmove", to], ["touchend", []]].map(([type, places]) =>
    target.dispatchEvent(new TouchEvent(type, {touches: touches(places), bubbles: true, cancelable: true})));
  return {scrolls: may[0] && may[1], range: chart.graph.xAxisRange()};
})"""


# Of each operation that has a roofline, its share of it.
ROOFLINE = "[...document.querySelectorAll('#operations tbody tr')].map((row) => row.cells[6].textContent).filter((text) => text !== DASH)"
# Pixels of each line's colour, by its label, in the chart of this id.
COLORED = """((id) => {
  const chart = charts.find((one) => one.spec.id === id), canvas = chart.plot.querySelector("canvas");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return Object.fromEntries(chart.lines.map((line) => {
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = style(line.color);
    probe.fillRect(0, 0, 1, 1);
    const color = probe.getImageData(0, 0, 1, 1).data;
    let found = 0;
    for (let i = 0; i < pixels.length; i += 4) if ([0, 1, 2, 3].every((k) => Math.abs(pixels[i + k] - color[k]) < 24)) ++found;
    return [line.label, found];
  }));
})"""


def changed(place, run, name, change):
    """A copy of the run with its records as `change` has left each."""
    run = shutil.copytree(run, place.file(name))
    lines = [json.loads(line) for line in Path(run, "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        change(line)
    Path(run, "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def low_peak(place):
    """a peak that was measured a hundred times too low: MFU above 100 % is said to be of a busy machine; the operations of a
    trace show a higher one, and what is still above its roofline has a mark"""
    def lower(record):
        for key in record:
            if key.startswith("peak/"):
                record[key] *= 0.01
        if "time/interval" in record:
            record.update({"throughput/mfu_full": 20.5, "throughput/mfu_causal": 20, "throughput/mfu_done": 20})
    run = changed(place, trained(place, "first"), "low", lower)
    why = "the machine was busy when its peak was measured"
    tile = "[...document.querySelectorAll('.tiles div')].find((one) => one.firstChild.textContent === 'mfu_full').textContent"
    with Browser(find_browser()) as browser:
        browser.set_window(390, WIDTHS[390])
        browser.open(page_of(place, run))
        assert why not in browser.value(tile) and browser.value("document.querySelector('#chart-mfu .warn')") is None
        shares = [share_of(share) for share in browser.value(ROOFLINE) if share.endswith(" *")]
        assert shares and min(shares) >= 100, shares
        assert all(share_of(share) <= 100 for share in browser.value(ROOFLINE) if share.endswith(" %"))
        assert "* Above 100 %" in browser.value("document.querySelector('#operations').innerText")
        os.remove(run + "/trace-12-13.json")
        browser.open(page_of(place, run))
        assert browser.value(tile).endswith(" %: " + why), browser.value(tile)
        assert browser.value("document.querySelector('#chart-mfu .warn').textContent") == "above 100 %: " + why
        assert browser.value(WIDE)[0] <= 390 and browser.complaints() == []


def equal_levels(place):
    """of memory that was planned and committed to the byte, both lines are seen"""
    def level(record):
        if record.get("event") == "ready":
            record["memory/committed"] = record["memory/planned"]
    run = changed(place, trained(place, "first"), "equal", level)
    with Browser(find_browser()) as browser:
        for width in WIDTHS:
            browser.set_window(width, WIDTHS[width])
            browser.open(page_of(place, run))
            seen = browser.value(COLORED + "('memory')")
            assert list(seen) == ["used", "planned", "committed"] and min(seen.values()) > 20, (width, seen)


def touch(place):
    """one finger on a chart scrolls the page, two zoom the chart"""
    page = page_of(place, trained(place, "first"))
    with Browser(find_browser()) as browser:
        browser.set_window(390, WIDTHS[390])
        browser.open(page)
        before = browser.value("charts[0].graph.xAxisRange()")
        one = browser.value(TOUCH + "([0.3], [0.6])")
        assert one == {"scrolls": True, "range": before}, (one, before)
        two = browser.value(TOUCH + "([0.4, 0.6], [0.2, 0.8])")
        width = (two["range"][1] - two["range"][0]) / (before[1] - before[0])
        assert not two["scrolls"] and abs(width - 1 / 3) < 0.02, (two, before)
        assert browser.complaints() == [], browser.complaints()


# Of each key in the table of the config: those of its parts between dots that are broken over several lines.
BROKEN = """[...document.querySelectorAll('#config td.key span')].flatMap((key) => [...key.childNodes].filter((part) => {
  const range = document.createRange();
  range.selectNodeContents(part);
  return part.nodeType === Node.TEXT_NODE && new Set([...range.getClientRects()].map((box) => box.top)).size !== 1;
}).map((part) => part.textContent))"""
# Whether a phone shows all of each cell of the overview, without scrolling sideways.
SHOWN = """[...document.querySelectorAll('#overview td')].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return [...range.getClientRects()].some((box) => box.right > innerWidth || box.left < 0);
}).map((cell) => cell.textContent)"""
CELLS = "[...document.querySelectorAll('%s tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"


def compared(place):
    """two runs on one page: a line of each in every chart, their colours in the headings, the loss at the last step that both
    have, and the keys of the config that differ; three runs: a table to sort by a number and by a key"""
    runs = [trained(place, "first"), trained(place, "second", "optimizer.lr=1e-3")]
    with Browser(find_browser()) as browser:
        page = page_of(place, *runs)
        for width in WIDTHS:
            expect_sound(browser, page, width, width == 2560, f"compare-{width}")
            assert browser.value(BROKEN) == [] and browser.value(SHOWN) == [], (width, browser.value(BROKEN), browser.value(SHOWN))
        assert browser.value("charts[0].lines.map((line) => line.label)") == [
            "first: training", "first: validation", "second: training", "second: validation"]
        assert browser.value("[...document.querySelectorAll('h1 .swatch')].map((one) => getComputedStyle(one).color)") == browser.value(
            "charts.find((chart) => chart.spec.id === 'lr').lines.map((line) => { const probe = document.createElement('i'); probe.style.color = style(line.color);"
            " document.body.append(probe); return getComputedStyle(probe).color; })")
        differing = {key: values for key, *values in browser.value(CELLS % "#config")}
        assert differing["optimizer.lr"][:2] == ["0.003", "0.001"], differing
        assert "optimizer.weight_decay" not in differing and len(differing) <= 3, differing  # output_dir besides

        def shorten(record):  # of another course, which ended sooner
            if record["step"] > 40:
                record.clear()
                record["step"] = "none"
            elif "loss/avg" in record:
                record["loss/avg"] -= 0.25
        short = changed(place, runs[1], "short", shorten)
        page = page_of(place, runs[0], "--compare", runs[1], short)  # as it was said before several runs could be given
        losses = [place.records(name, "loss/avg")[40] for name in ("first", "second")]
        browser.open(page)
        assert browser.value(SHOWN) == []
        rows = browser.value(CELLS % "#overview")
        heads = browser.value("[...document.querySelectorAll('#overview th')].map((one) => one.textContent)")
        assert [row[0] for row in rows] == ["first", "second", "short"], rows
        at = [row[heads.index("loss at step 40")] for row in rows]
        assert math.isclose(float(at[0]), losses[0], rel_tol=1e-3), (at, losses)
        for cell, loss in zip(at[1:], (losses[1], losses[1] - 0.25)):
            value, difference = cell.rstrip(")").split(" (")
            difference = float(difference.replace("−", "-"))
            assert math.isclose(float(value), loss, rel_tol=1e-3) and abs(difference - (loss - losses[0])) < 1e-3, (cell, loss, losses)
        for head, order in (("loss at step 40", sorted(range(3), key=lambda i: (losses[0], losses[1], losses[1] - 0.25)[i])),
                            ("optimizer.lr", [1, 2, 0])):
            for times in (1, 2):
                browser.value(f"document.querySelectorAll('#overview th')[{heads.index(head)}].querySelector('button').click()")
                now = [row[0] for row in browser.value(CELLS % "#overview")]
                wanted = [["first", "second", "short"][i] for i in order]
                assert now == wanted if times == 1 else now[0] == wanted[-1], (head, times, now)
        browser.set_window(390, 844)
        # A finger on the heading: what is clipped away is not hit.
        hit = """((button) => { button.scrollIntoView({block: 'center'}); const box = button.getBoundingClientRect();
          return button.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)); })"""
        seen = browser.value(f"[...document.querySelectorAll('#overview th button')].filter({hit}).length")
        assert seen == len(heads) and browser.value(BROKEN) == [], (seen, heads, browser.value(BROKEN))
        assert browser.complaints() == [], browser.complaints()


def on_paper(place):
    """printed, every table fits the page with all its columns, and every chart; afterwards the page is as it was"""
    page = page_of(place, trained(place, "first"))
    with Browser(find_browser()) as browser:
        browser.set_window(1280, 900)
        browser.open(page)
        before = browser.value("charts.map((chart) => chart.plot.clientWidth)")
        browser.call("Emulation.setEmulatedMedia", media="print")
        browser.value("window.dispatchEvent(new Event('beforeprint'))")
        cut = """[...document.querySelectorAll('.scroll, .charts > *, .heat-plot canvas')].filter((one) =>
          one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > 961).map((one) => [one.className, one.scrollWidth])"""
        assert browser.value(cut) == [], browser.value(cut)
        assert browser.value("getComputedStyle(document.querySelector('.controls')).display") == "none"
        browser.value("window.dispatchEvent(new Event('afterprint'))")
        browser.call("Emulation.setEmulatedMedia", media="")
        assert browser.value("charts.map((chart) => chart.plot.clientWidth)") == before
        browser.print(place.file("page.pdf"))
        assert os.path.getsize(place.file("page.pdf")) > 100_000 and browser.complaints() == []


def restarts(place):
    """a start that changed keys: a mark with a star in each chart, said under the pointer, among the decisions, beside the
    config, and in the text and JSON; the clip threshold is a line"""
    def change(record):
        if record.get("event") == "resume":
            record["changed"] = "optimizer.lr: 0.004 -> 0.003"
    run = changed(place, trained(place, "first"), "changed", change)
    text = tokamak("report", run)
    assert "start 2 changed the config: optimizer.lr: 0.004 -> 0.003\n" in text, text
    assert json.loads(tokamak("report", run, "--json"))["starts"][1]["changed"] == "optimizer.lr: 0.004 -> 0.003"
    with Browser(find_browser()) as browser:
        browser.set_window(1280, 900)
        browser.open(page_of(place, run))
        for x, wanted in (("step", STOPPED), ("tokens", 768 * STOPPED), ("time", None)):
            choose(browser, ".controls", 0, x)
            (found,) = browser.value("restartsOf(runs[0], view.x)")
            assert found["mark"] == "start 2*" and (wanted is None or found["x"] == wanted), (x, found)
        choose(browser, ".controls", 0, "step")
        browser.value(f"pointAt({STOPPED}, null)")
        said = browser.value("charts.map((chart) => chart.where.textContent)")
        assert said[0] == f"step {STOPPED}; start 2 from step {STOPPED}, changed optimizer.lr: 0.004 -> 0.003", said
        assert ["2", str(STOPPED), "changed config", "optimizer.lr: 0.004 -> 0.003"] in [
            row[:2] + row[3:5] for row in browser.value(CELLS % "#events")]
        assert "start 2 changed optimizer.lr: 0.004 -> 0.003" in browser.value("document.getElementById('config').innerText")
        seen = browser.value(COLORED + "('grad-norm')")
        assert list(seen) == ["gradient norm", "clipped to"] and seen["clipped to"] > 20, seen
        assert ["model.hidden_size", "48", "required"] in browser.value(CELLS % "#config")
        assert browser.value("document.querySelectorAll('#config .differs').length") == 0  # all that is shown differs
        choose(browser, "#config", 0, "all keys")
        bold = browser.value("document.querySelectorAll('#config .differs').length")
        assert 0 < bold < browser.value("document.querySelectorAll('#config tbody tr').length"), bold
        assert browser.complaints() == [], browser.complaints()


def values(place):
    """25 values of the page's tables are those of metrics.jsonl: loss, learning rate, gradient norm, tokens/s, memory, and the
    tokens of saves, of a file without them, too; a run without MFU has none on the page"""
    factors = {"K": 1e3, "M": 1e6, " KiB": 2**10, " MiB": 2**20, " GiB": 2**30, "": 1}

    def amount(text):
        unit = text.lstrip("0123456789.e-")
        return float(text[:len(text) - len(unit)]) * factors[unit]

    def forget(record):
        if "checkpoint/seconds" in record:
            record.pop("tokens", None)
        for key in [key for key in record if "mfu" in key]:
            del record[key]
    run = trained(place, "first")
    old = changed(place, run, "older", forget)
    with Browser(find_browser()) as browser:
        browser.set_window(1280, 900)
        for directory in (run, old):
            browser.open(page_of(place, directory))
            browser.value(OPEN_TABLES)
            time.sleep(0.2)
            compared = 0
            for chart, key, number in (("loss", "loss/avg", 5), ("lr", "optim/lr", 4), ("grad-norm", "optim/grad_norm", 4),
                                       ("throughput", "throughput/tokens_per_sec", 4), ("memory", "memory/used", 4)):
                recorded = place.records("first", key)
                rows = {int(row[0]): row for row in browser.value(CELLS % f"#chart-{chart} details")}
                for step in list(recorded)[::STEPS // number][:number]:
                    assert math.isclose(amount(rows[step][3]), recorded[step], rel_tol=6e-4), (chart, step, rows[step], recorded[step])
                    compared += 1
            saves = [row for row in browser.value(CELLS % "#chart-save-stall details")]
            assert [int(row[0]) for row in saves] == list(range(INTERVAL, STEPS + 1, INTERVAL)), saves
            for row in saves[:4]:
                assert math.isclose(amount(row[1]), 768 * int(row[0]), rel_tol=6e-4), row
                compared += 1
            assert compared == 25 and browser.complaints() == [], compared
            has_mfu = browser.value("document.getElementById('chart-mfu') !== null")
            assert has_mfu == (directory == run) == ("mfu" in browser.value("document.getElementById('overview').innerText"))


def write_long_run(directory):
    """A metrics.jsonl of 100,000 steps, with what a trainer logs of each, and a start in its middle."""
    os.makedirs(directory)
    rng = random.Random(1)
    clock = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc).timestamp()

    def at(seconds):
        return datetime.datetime.fromtimestamp(clock + seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    layer = [f"{matrix}.weight" for matrix in (
        *(f"self_attn.{x}_proj" for x in "qkvo"), "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "input_layernorm",
        "post_attention_layernorm")]
    names = ["model.embed_tokens.weight", *(f"model.layers.{i}.{one}" for i in range(32) for one in layer), "lm_head.weight",
             "model.norm.weight"]

    def tensors(scale):
        def column():
            rms = [scale * math.exp(rng.gauss(-4, 1)) for _ in names]
            return {"rms": rms, "min": [-4 * x for x in rms], "max": [4 * x for x in rms], "non_finite": [0 for _ in names],
                    "zeros": [0 for _ in names], "log2_first": [-30 for _ in names],
                    "log2_counts": [[rng.randrange(10**6) for _ in range(24)] for _ in names]}
        return {"tensors": names, "elements": [4096 for _ in names], **{kind: column() for kind in ("weights", "gradients", "updates")}}

    with open(directory + "/metrics.jsonl", "w") as out:
        def write(**record):
            out.write(json.dumps(record) + "\n")
        for step in range(1, LONG + 1):
            now = 1.2 * step
            if step % (LONG // 2) == 1:
                write(event="start", step=0, time=at(now - 1), detail="1 rank(s)", exec=at(now - 1.1), hosts="n1", ranks=1)
                write(event="ready", step=step - 1, time=at(now - 0.9), detail="", total_steps=LONG)
            write(step=step, time=at(now), tokens=524288 * step, **{
                "loss/avg": 25.0 if step == 54_321 else 2 + 9 * math.exp(-step / 8000) + rng.gauss(0, 0.03),
                "loss/last": 2 + rng.gauss(0, 0.03), "loss/z": 0.0, "optim/lr": 3e-4 * (1 - step / (LONG + 1)),
                "optim/grad_norm": math.exp(rng.gauss(-1, 0.4)), "optim/skipped_steps": 0,
                "throughput/tokens_per_sec": 430000 + rng.gauss(0, 5000), "throughput/mfu_full": 0.45 + rng.gauss(0, 0.005),
                "throughput/mfu_causal": 0.41 + rng.gauss(0, 0.005), "throughput/mfu_done": 0.41 + rng.gauss(0, 0.005),
                "time/interval": 1.2 + rng.gauss(0, 0.01), "time/data": abs(rng.gauss(0, 0.001)),
                "memory/used": 60_000_000_000 + rng.randrange(10**9)})
            if step % 1000 == 0:  # metrics.tensor_statistics by default
                write(step=step, time=at(now), tokens=524288 * step, **{"time/tensor_statistics": 0.2},
                      **tensors(1e6 if step == 54_000 else 1))


def long_run(place):
    """the page of 100,000 steps is below 3 MB, and its loss still has the spike of one step"""
    directory, page = place.file("long"), place.file("report.html")
    write_long_run(directory)
    begin, before = time.monotonic(), os.times()
    tokamak("report", directory, "--output", page)
    after = os.times()
    size = os.path.getsize(page)
    print(f"  {LONG} steps: {size / 1e6:.2f} MB in {time.monotonic() - begin:.2f} s, "
          f"{after.children_user + after.children_system - before.children_user - before.children_system:.2f} s of a processor")
    assert size < MOST_BYTES, size
    with Browser(find_browser()) as browser:
        browser.set_window(1280, 900)
        browser.open(page)
        assert browser.value("Math.max(...charts[0].lines[0].high)") == 25
        assert browser.value("charts[0].graph.yAxisRange()[1]") > 25
        assert browser.value("[heats[0].tensors.names.length, heats[0].tensors.to.length]") == [32 * 9 + 3, 100]
        assert browser.value("heats[0].tensors.weights.rows[7].findIndex((cell) => cell > 1000)") == 53  # step 54,000
        assert browser.complaints() == [], browser.complaints()
        for width, height in WIDTHS.items():  # rows of two pixels
            browser.set_window(width, height)
            for order in ("matrix", "layer"):
                choose(browser, ".heat-choices", 1, order)
                assert browser.value(LABELS) == [], (width, order, browser.value(LABELS))
        browser.set_window(1280, 900)
        shoot(browser, "long-1280")


def in_words(place):
    """`report RUN` alone is the text; of several runs a line for each, then theirs; their JSON is a list. A cause of many lines
    and bytes stays in its row. Refused with exit 2: two ways at once, a run twice, one that is none, a page that cannot be
    written, and then the older page stays"""
    run, page = trained(place, "first"), place.file("older.html")
    assert tokamak("report", run) == tokamak("report", run, "--text")
    other = shutil.copytree(run, place.file("other"))
    text = tokamak("report", run, "--compare", other)
    assert text.split("\n")[1].endswith("  " + run) and text.split("\n")[2].endswith("  " + other), text
    assert text == tokamak("report", run, other) and text.count("where the time went") == 2, text
    assert [one["run"] for one in json.loads(tokamak("report", "--json", run, other))] == [run, other]

    def hurt(record):
        if record.get("event") == "end":
            record.update(detail="\x1b[2Jbad\n" + "x" * 600, exit_code=4)
    lines = tokamak("report", changed(place, run, "hurt", hurt)).split("\n")
    ends = [line for line in lines if "failed: exit 4: " in line]
    assert len(ends) == 2 and max(map(len, ends)) < 260 and "\x1b" not in "".join(lines), ends

    Path(page).write_text("older")
    for arguments, said in (([run, "--text", "--output", page], "--output exclude each other"),
                            ([run, "--text", "--json"], "exclude each other"), ([run, run + "/"], "is given twice"),
                            ([run, "--output", page, "--compare", place.file("none")], place.file("none")),
                            ([run, "--output", place.file("none/report.html")], place.file("none/report.html"))):
        done = call([TOKAMAK, "report", *arguments])
        assert done.returncode == 2 and said in done.stdout, (arguments, done.returncode, done.stdout)
    assert Path(page).read_text() == "older"


# The contrast of what is drawn on a canvas, where axe-core sees nothing: of WCAG 2.2, 1.4.11.
CONTRAST = """(() => {
  const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const luminance = (name) => {
    probe.fillStyle = style(name);
    probe.fillRect(0, 0, 1, 1);
    const linear = [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3).map((c) => c / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const back = luminance("--back");
  return ["--mark", ...[0, 1, 2, 3, 4, 5].map((i) => "--line-" + i)].map((name) => {
    const fore = luminance(name);
    return [name, (Math.max(fore, back) + 0.05) / (Math.min(fore, back) + 0.05)];
  });
})()"""


def accessible(place):
    """axe-core finds nothing against WCAG 2.2 AA or its best practices, light and dark, on a phone and a laptop; lines have a
    contrast of 3 to 1"""
    page = page_of(place, trained(place, "first"), "--compare", trained(place, "second", "optimizer.lr=1e-3"))
    source = Path(AXE).read_text()
    with Browser(find_browser()) as browser:
        for width, dark in ((390, False), (1280, True)):
            browser.set_window(width, WIDTHS[width], dark)
            browser.open(page)
            browser.value(OPEN_TABLES)
            time.sleep(0.2)
            browser.value(source + "; 0")
            found = browser.value(f"axe.run(document, {{runOnly: {{type: 'tag', values: {json.dumps(RULES)}}}}}).then((all) => ({{"
                                  "violations: all.violations.map((one) => [one.id, one.nodes.map((n) => [n.html, n.failureSummary])]),"
                                  "incomplete: all.incomplete.map((one) => [one.id, one.nodes.length]),"
                                  "contrasts: all.passes.filter((one) => one.id === 'color-contrast').flatMap((one) => one.nodes).length,"
                                  "rules: all.passes.length}))")
            assert found["violations"] == [], json.dumps(found["violations"], indent=1)
            assert found["contrasts"] > 50 and found["rules"] > 20, found
            print(f"  {width} px, {'dark' if dark else 'light'}: {found['rules']} rules passed, contrast of {found['contrasts']} "
                  f"texts; not decided by the tool: {found['incomplete']}")
            for name, contrast in browser.value(CONTRAST):
                assert contrast >= 3, (name, contrast)


def axe_script():
    path = os.environ.get("TOKAMAK_AXE", "")
    if not path:
        only_look = [] if os.environ.get("TOKAMAK_TEST_INSTALLS") == "yes" else ["--check"]
        done = subprocess.run([Path(__file__).resolve().parents[2] / "scripts/install_axe.sh", *only_look], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        path = done.stdout.strip() if done.returncode == 0 else ""
    return path


if not find_browser():
    print("SKIPPED: no Chromium to open the page with (Debian: chromium; scripts/install_deps.sh test)")
    sys.exit(77)
AXE = axe_script() if "accessible" in sys.argv else ""
if "accessible" in sys.argv and not AXE:
    print("SKIPPED: no axe-core (scripts/install_axe.sh)")
    sys.exit(77)
main([on_every_screen, samples, interaction, heat_map, low_peak, equal_levels, touch, compared, on_paper, restarts, values, long_run, in_words] + ([accessible] if AXE else []))
