"""`tokamak report --output` of real runs, opened in a headless Chromium. The console has no complaint, the page
requests only its file, and fits the screen. Charts and tables have the values of the records. Screenshots go to
$SCREENSHOTS. Without Chromium exits 77, which ctest shows as skipped. One file, because its cases open the same few
runs, each trained once."""
import datetime
import json
import math
import os
import random
import shutil
import sys
import time
from pathlib import Path

from browser import Browser, find_browser
from harness import TOKAMAK, call, main, tokamak

SCREENSHOTS = os.environ.get("SCREENSHOTS", "")
WIDTHS = {390: 844, 1280: 900}  # width: height of a phone and of a laptop
CHARTS = ["loss", "lr", "grad-norm", "throughput", "data-wait", "memory", "save-stall"]
STEPS, STOPPED, INTERVAL, TOKENS = 60, 30, 10, 768
PROMPTS = ["to", "<b>a</b> long"]  # a plain text, and a text that looks like markup
MOST_BYTES = 3_000_000
LONG = 100_000  # steps of the run whose page may have so many bytes
CELLS = "[...document.querySelectorAll('%s tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"


def trained(place, name, *overrides):
    """The directory of a run that was stopped and started again."""
    if not os.path.exists(place.run(name)):
        wanted = ["metrics.tensor_statistics=5", "metrics.activation_statistics.interval=5", f"training.max_steps={STEPS}",
                  f"training.validation_interval={INTERVAL}", f"checkpoint.interval={INTERVAL}",
                  f"training.samples={{prompts: {json.dumps(PROMPTS)}, interval: {INTERVAL}, tokens: 24}}", *overrides]
        place.train(name, 1, *wanted, "--stop-at-step", str(STOPPED), expect=75)
        place.train(name, 1, *wanted)
    return place.run(name)


def changed(place, run, name, change):
    """A copy of the run whose records `change` has edited."""
    run = shutil.copytree(run, place.file(name))
    lines = [json.loads(line) for line in Path(run, "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        change(line)
    Path(run, "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def page_of(place, *arguments):
    path = place.file("report.html")
    tokamak("report", *arguments, "--output", path)
    return path


def opened(browser, page, width=1280, dark=False):
    browser.set_window(width, WIDTHS[width], dark)
    browser.open(page)
    return browser


def choose(browser, among, index, value):
    """Selects an entry of the menu with this index in `among`."""
    browser.value(f"""(() => {{ const one = document.querySelectorAll('{among} select')[{index}];
      one.value = '{value}'; one.dispatchEvent(new Event('change')); }})()""")


# State of each chart: its name, its rows, its lines without a value, and the painted pixels in its lines' colours.
STATE = """charts.map((chart) => {
  const graph = chart.graph, area = graph.getArea(), canvas = chart.plot.querySelector("canvas"), scale = canvas.width / canvas.clientWidth;
  const pixels = canvas.getContext("2d").getImageData(area.x * scale, area.y * scale, area.w * scale, area.h * scale).data;
  const colors = chart.lines.map((line) => /^#(..)(..)(..)$/.exec(style(line.color)).slice(1).map((part) => parseInt(part, 16)));
  let painted = 0;
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] > 100 && colors.some((color) => color.every((c, k) => Math.abs(pixels[i + k] - c) < 24))) ++painted;
  }
  return {id: chart.spec.id, rows: chart.rows.length, painted,
          empty: chart.lines.filter((line, i) => !chart.rows.some((row) => row[i + 1] && isFinite(row[i + 1][1]))).length};
})"""


def on_every_screen(place):
    """A resumed run on a phone and a laptop, light and dark: no complaint, no overflow, every chart drawn. Prompts and
    texts of samples are shown as text, whatever they contain."""
    run = trained(place, "first")
    texts = [one["prompt"] + one["text"] for line in Path(run, "metrics.jsonl").read_text().splitlines()
             for one in json.loads(line).get("samples", [])]
    assert len(texts) == 2 * STEPS // INTERVAL
    page = page_of(place, run)
    with Browser(find_browser()) as browser:
        for width in WIDTHS:
            for dark in (False, True):
                opened(browser, page, width, dark)
                charts = browser.value(STATE)
                assert [chart["id"] for chart in charts if chart["id"] != "bits-per-byte"][:len(CHARTS)] == CHARTS, charts
                for chart in charts:
                    assert chart["rows"] >= 1 and chart["empty"] == 0 and chart["painted"] >= 3, (width, chart)
                scroll, client = browser.value("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
                assert scroll <= client == width, (width, scroll, client)
                assert browser.complaints() == [], browser.complaints()
                if SCREENSHOTS:
                    os.makedirs(SCREENSHOTS, exist_ok=True)
                    browser.screenshot(os.path.join(SCREENSHOTS, f"run-{width}-{'dark' if dark else 'light'}.png"))
        said = browser.value("document.body.innerText")
        for part in ("stopped: --stop-at-step 30", "startup, exec to first step", "optimizer.lr", "0.003", "Made by tokamak 0."):
            assert part in said, part
        started = browser.value(CELLS % "#environment")
        assert len(started) == 2 and all(row[4].startswith(os.environ["TOKAMAK"] + " train ") for row in started), started
        rows = browser.value(CELLS % "#samples")
        assert sorted(row[1] for row in rows) == sorted(texts) and rows[0][0] == str(STEPS), rows
        assert browser.value("document.querySelectorAll('#samples b').length") == 0
        assert ["model.hidden_size", "48", "required"] in browser.value(CELLS % "#config")


def values(place):
    """the points of each curve are those of metrics.jsonl, saves included, with their tokens"""
    run = trained(place, "first")
    with Browser(find_browser()) as browser:
        opened(browser, page_of(place, run))
        for key in ("loss/avg", "optim/lr", "optim/grad_norm", "throughput/tokens_per_sec", "memory/used", "time/data", "validation/loss"):
            recorded = place.records("first", key)
            steps, means = browser.value(f"[runs[0].axes[runs[0].series['{key}'].axis].step, runs[0].series['{key}'].mean]")
            assert steps == sorted(recorded), (key, steps)
            for step, mean in zip(steps, means):
                assert math.isclose(mean, recorded[step], rel_tol=1e-5, abs_tol=1e-12), (key, step, mean, recorded[step])
        lines = browser.value("charts.filter((one) => one.spec.id === 'loss')[0].rows.map((row) => [row[0], row[1] && row[1][1]])")
        assert [step for step, loss in lines if loss is not None] == sorted(place.records("first", "loss/avg"))
        saves = browser.value("runs[0].axes[runs[0].series['checkpoint/stall'].axis]")
        assert saves["step"] == list(range(INTERVAL, STEPS + 1, INTERVAL)), saves
        assert saves["tokens"] == [TOKENS * step for step in saves["step"]], saves
        assert browser.value("document.getElementById('chart-mfu')") is None  # a CPU has no peak to compare with
        rows = {row[0]: row[1] for row in browser.value(CELLS % "#time")}
        assert "productive training" in rows and "down, last sign of life to exec" in rows, rows

        def add_mfu(record):
            if "time/interval" in record:
                record.update({"throughput/mfu_full": 0.45, "throughput/mfu_causal": 0.41, "throughput/mfu_done": 0.4})
        opened(browser, page_of(place, changed(place, run, "mfu", add_mfu)))
        assert "mfu_full45.0 %" in browser.value("document.getElementById('overview').textContent")
        assert browser.value("document.getElementById('chart-mfu') !== null") and browser.complaints() == []


def interaction(place):
    """The x axis as steps, tokens and time. Smoothing does not lag and leaves schedules alone. Log axes, zoom and
    pointer work in all charts. The legend matches the lines."""
    page = page_of(place, trained(place, "first"))
    losses = [loss for _, loss in sorted(place.records("first", "loss/avg").items())]
    with Browser(find_browser()) as browser:
        opened(browser, page)
        extremes = lambda: browser.value("charts[0].graph.xAxisExtremes()")  # noqa: E731
        assert extremes()[0] < 1 and STEPS < extremes()[1] < STEPS + 3, extremes()
        choose(browser, ".controls", 0, "tokens")
        assert TOKENS * STEPS < extremes()[1] < TOKENS * (STEPS + 3), extremes()
        choose(browser, ".controls", 0, "time")
        seconds = browser.value("runs[0].report.wall_clock / TIME.seconds")
        assert 0.5 * seconds < extremes()[1] < 1.1 * seconds, (extremes(), seconds)
        titles = set(browser.value("[...document.querySelectorAll('.plot .dygraph-xlabel')].map((one) => one.textContent)"))
        assert titles == {browser.value("TIME.name") + " of wall clock"}, titles
        choose(browser, ".controls", 0, "step")
        choose(browser, ".controls", 1, "10")
        at = 30  # index of a smoothed point: the mean of it, five before and five after
        assert abs(browser.value(f"charts[0].rows[{at}][1][1]") - sum(losses[at - 5:at + 6]) / 11) < 1e-4
        assert browser.value("(() => { const lr = charts.find((chart) => chart.spec.id === 'lr');"
                             " return lr.rows.every((row, i) => row[1][1] === lr.lines[0].mean[i]); })()")
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
        hovered = browser.value("Object.fromEntries(charts.map((chart) => [chart.spec.id, [chart.where.textContent, chart.values[0].textContent]]))")
        norms = place.records("first", "optim/grad_norm")  # another chart, at the same step
        for chart, expected in (("loss", losses[24]), ("grad-norm", norms[25])):
            where, value = hovered[chart]
            assert where == "step 25" and math.isclose(float(value), expected, rel_tol=1e-3), (chart, hovered, expected)
        browser.value("pointAt(null, null)")
        assert math.isclose(float(browser.value("charts[0].values[0].textContent")), losses[-1], rel_tol=1e-3)
        assert browser.complaints() == [], browser.complaints()


def heat_map(place):
    """the heat map shows the values of tensors.jsonl for each weight, under the pointer and as the cell's colour"""
    page = page_of(place, trained(place, "first"))
    with open(place.run("first") + "/tensors.jsonl") as lines:
        records = [record for record in map(json.loads, lines) if "tensors" in record]
    assert [record["step"] for record in records] == list(range(5, STEPS + 1, 5)), records
    hovered = """(() => {
      const heat = heats[0], {area, canvas, tensors} = heat, [low, high] = heat.range, scale = canvas.width / canvas.clientWidth;
      const copy = document.createElement("canvas"), pixels = copy.getContext("2d", {willReadFrequently: true});
      [copy.width, copy.height] = [canvas.width, canvas.height];
      pixels.drawImage(canvas, 0, 0);
      return tensors.names.map((_, row) => !tensors.kinds[heat.kind].rows[row] ? null : [0, tensors.to.length - 1].map((column) => {
        const x = area.left + (column + 0.5) * area.columnWidth, y = (heat.rows.findIndex((one) => one.row === row) + 0.5) * area.rowHeight;
        const color = heatColor((tensors.kinds[heat.kind].rows[row][column] - low) / (high - low));
        return [sayHeat(heat, x, y), color === "rgb(" + [...pixels.getImageData(x * scale, y * scale, 1, 1).data].slice(0, 3).join(",") + ")"];
      }));
    })()"""
    with Browser(find_browser()) as browser:
        opened(browser, page)
        for kind in ("ratio", "weights", "gradients", "exp_avg_sq", "activations"):
            choose(browser, "#tensors", 0, kind)
            cells = browser.value(hovered)
            assert len(cells) == len(records[0]["tensors"]) == (3 * 9 + 3) + (3 * 4 + 3)
            assert sum(one is not None for one in cells) == (3 * 4 + 3 if kind == "activations" else 3 * 9 + 3), kind
            for i, (name, ends) in enumerate(zip(records[0]["tensors"], cells)):
                if ends is None:
                    continue
                parts = name.removesuffix(".weight").split(".")
                title = f"layer {parts[-2] if kind == 'activations' else parts[2]} {parts[-1]}" if "layers." in name else parts[-1]
                for record, (said, has_color) in zip((records[0], records[-1]), ends):
                    rms = {of: record[of]["rms"][i] for of in ("weights", "gradients", "updates", "exp_avg_sq")}
                    expected = rms["updates"] / rms["weights"] if kind == "ratio" else rms.get(kind)
                    if kind == "activations":
                        expected = max(abs(record[kind][of][i]) for of in ("min", "max"))
                    where, value = said.split(": ")
                    assert where == f"{title}, step {record['step']}" and has_color, (said, has_color)
                    assert math.isclose(float(value), expected, rel_tol=7e-3), (kind, name, said, expected)
        assert browser.complaints() == [], browser.complaints()


def compared(place):
    """Several runs on one page: each has a line in every chart, in the colour of its heading. The page has the loss at
    the last common step, and the config keys that differ."""
    runs = [trained(place, "first"), trained(place, "second", "optimizer.lr=1e-3")]

    def shorten(record):  # another run, which ended sooner
        if record["step"] > 40:
            record.clear()
            record["step"] = "none"
        elif "loss/avg" in record:
            record["loss/avg"] -= 0.25
    short = changed(place, runs[1], "short", shorten)
    with Browser(find_browser()) as browser:
        for width in WIDTHS:
            opened(browser, page_of(place, *runs, short), width)
            assert all(chart["painted"] >= 3 and chart["empty"] == 0 for chart in browser.value(STATE)), browser.value(STATE)
            assert browser.value("document.documentElement.scrollWidth") <= width and browser.complaints() == []
        assert browser.value("charts[0].lines.map((line) => line.label)") == [
            f"{name}: {one}" for name in ("first", "second", "short") for one in ("training", "validation")]
        assert browser.value("[...document.querySelectorAll('h1 .swatch')].map((one) => one.style.color)") == browser.value(
            "charts.find((chart) => chart.spec.id === 'lr').lines.map((line) => 'var(' + line.color + ')')")
        differing = {key: values for key, *values in browser.value(CELLS % "#config > .scroll")}
        assert differing["optimizer.lr"][:3] == ["0.003", "0.001", "0.001"], differing
        assert "optimizer.weight_decay" not in differing, differing
        rows = browser.value(CELLS % "#overview")
        heads = browser.value("[...document.querySelectorAll('#overview th')].map((one) => one.textContent)")
        at, lr = heads.index("loss at step 40"), heads.index("optimizer.lr")
        losses = [place.records(name, "loss/avg")[40] for name in ("first", "second")]
        for row, name, rate, loss in zip(rows, ("first", "second", "short"), ("0.003", "0.001", "0.001"), [*losses, losses[1] - 0.25]):
            assert row[0] == name and row[lr] == rate and math.isclose(float(row[at]), loss, rel_tol=1e-3), (row, loss)


def restarts(place):
    """a start with changed keys: drawn and named at its step in each chart, among the events, in text and JSON"""
    def change(record):
        if record.get("event") == "resume":
            record["changed"] = "optimizer.lr: 0.004 -> 0.003"
    run = changed(place, trained(place, "first"), "changed", change)
    assert "start 2 changed the config: optimizer.lr: 0.004 -> 0.003\n" in tokamak("report", run)
    assert json.loads(tokamak("report", run, "--json"))["starts"][1]["changed"] == "optimizer.lr: 0.004 -> 0.003"
    with Browser(find_browser()) as browser:
        opened(browser, page_of(place, run))
        for x, wanted in (("tokens", TOKENS * STOPPED), ("time", None), ("step", STOPPED)):
            choose(browser, ".controls", 0, x)
            (found,) = browser.value("restartsOf(runs[0], view.x)")
            assert wanted is None or found["x"] == wanted, (x, found)
        browser.value(f"pointAt({STOPPED}, null)")
        said = browser.value("charts[0].where.textContent")
        assert said == f"step {STOPPED}; start 2 from step {STOPPED}, changed optimizer.lr: 0.004 -> 0.003", said
        assert ["2", str(STOPPED), "changed config", "optimizer.lr: 0.004 -> 0.003"] in [
            row[:2] + row[3:5] for row in browser.value(CELLS % "#events")]
        assert browser.complaints() == [], browser.complaints()


def write_long_run(directory):
    """A metrics.jsonl of 100,000 steps with a trainer's values, a second start in its middle, and statistics of 291
    tensors."""
    os.makedirs(directory)
    rng = random.Random(1)
    clock = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc).timestamp()

    def at(seconds):
        return datetime.datetime.fromtimestamp(clock + seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    names = [f"model.layers.{i}.matrix{k}.weight" for i in range(32) for k in range(9)] + ["lm_head.weight", "a", "b"]

    def tensors(scale):
        def column():
            return {"rms": [scale * math.exp(rng.gauss(-4, 1)) for _ in names], **{key: [0 for _ in names] for key in (
                "min", "max", "non_finite", "zeros", "log2_first")}, "log2_counts": [[1] for _ in names]}
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
                "optim/lr": 3e-4 * (1 - step / (LONG + 1)), "time/interval": 1.2 + rng.gauss(0, 0.01), **{
                    key: math.exp(rng.gauss(-1, 0.4)) for key in (
                        "loss/last", "optim/grad_norm", "throughput/tokens_per_sec", "throughput/mfu_full", "throughput/mfu_causal",
                        "throughput/mfu_done", "time/data", "memory/used")}})
            if step % 1000 == 0:  # metrics.tensor_statistics by default
                write(step=step, time=at(now), tokens=524288 * step, **tensors(1e6 if step == 54_000 else 1))


def long_run(place):
    """the page of 100,000 steps is below 3 MB, and keeps the spike of one step and one record of tensors"""
    directory, page = place.file("long"), place.file("report.html")
    write_long_run(directory)
    begin = time.monotonic()
    tokamak("report", directory, "--output", page)
    print(f"  {LONG} steps: {os.path.getsize(page) / 1e6:.2f} MB in {time.monotonic() - begin:.2f} s")
    assert os.path.getsize(page) < MOST_BYTES, os.path.getsize(page)
    with Browser(find_browser()) as browser:
        opened(browser, page)
        assert browser.value("Math.max(...charts[0].lines[0].high)") == 25
        assert browser.value("charts[0].graph.yAxisRange()[1]") > 25
        assert browser.value("[heats[0].tensors.names.length, heats[0].tensors.to.length]") == [32 * 9 + 3, 100]
        spike = browser.value("heats[0].tensors.kinds.weights.rows[7].findIndex((cell) => cell > 1000)")
        assert spike == 53, spike  # step 54,000
        assert browser.complaints() == [], browser.complaints()


def in_words(place):
    """`report RUN` alone is the text. Several runs have a line each, then their texts; their JSON is a list. A long
    cause stays in its row. Exit 2: two formats, a run twice, a missing run, an unwritable page. An older page then
    stays."""
    run, page = trained(place, "first"), place.file("older.html")
    assert tokamak("report", run) == tokamak("report", run, "--text")
    other = shutil.copytree(run, place.file("other"))
    text = tokamak("report", run, other)
    assert text.split("\n")[1].endswith("  " + run) and text.split("\n")[2].endswith("  " + other), text
    assert text.count("where the time went") == 2, text
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
                            ([run, "--output", page, place.file("none")], place.file("none")),
                            ([run, "--output", place.file("none/report.html")], place.file("none/report.html"))):
        done = call([TOKAMAK, "report", *arguments])
        assert done.returncode == 2 and said in done.stdout, (arguments, done.returncode, done.stdout)
    assert Path(page).read_text() == "older"


if not find_browser():
    print("SKIPPED: no Chromium to open the page with (Debian: chromium; scripts/install_deps.sh test)")
    sys.exit(77)
main([on_every_screen, values, interaction, heat_map, compared, restarts, long_run, in_words])
