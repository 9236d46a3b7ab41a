// Charts by dygraphs; the legend is a list of check boxes.
const charts = [];  // {graph, plot, lines, rows, spec, values, where}
const view = {x: "step", logX: false, smoothing: 1};

// A dashed upright line where a later start began.
function drawRestarts(canvas, area, graph) {
  canvas.save();
  canvas.setLineDash([3, 3]);
  for (const run of runs) {
    canvas.strokeStyle = style(compares ? colorOf(run) : "--mark");
    for (const restart of restartsOf(run, view.x)) {
      const x = Math.round(graph.toDomXCoord(restart.x)) + 0.5;
      if (!(x >= area.x && x <= area.x + area.w)) continue;
      canvas.beginPath();
      canvas.moveTo(x, area.y);
      canvas.lineTo(x, area.y + area.h);
      canvas.stroke();
    }
  }
  canvas.restore();
}

function restartsAt(graph, x) {
  const isNear = (at) => Math.abs(graph.toDomXCoord(at) - graph.toDomXCoord(x)) < 6;
  return runs.flatMap((run) => restartsOf(run, view.x).filter((restart) => isNear(restart.x))
    .map((restart) => "; " + labelled(run, restart.said))).join("");
}

const themed = (chart) => ({colors: chart.lines.map((line) => style(line.color)), axisLineColor: style("--faint"),
                            gridLineColor: style("--grid")});

function legendItem(chart, line, i) {
  const box = element("input", {type: "checkbox", checked: true,
                                change: (event) => chart.graph.setVisibility(i, event.target.checked)});
  const swatch = element("span", {class: "swatch " + line.dash.name, style: "color: var(" + line.color + ")"});
  chart.values.push(element("output", {}, ""));
  return element("li", {}, element("label", {}, box, swatch, line.label, chart.values[i]));
}

// The legend shows what is drawn: at the point under the pointer, or else at the end of each line.
function say(chart, row) {
  const {format} = chart.spec;
  chart.lines.forEach((line, i) => {
    const at = row === null || line.level ? chart.rows.findLastIndex((one) => one[i + 1]) : row;
    const cell = at < 0 ? null : chart.rows[at][i + 1];
    const hasRange = cell && row !== null && cell[0] !== cell[2];
    const range = hasRange ? " (" + format(cell[0]) + " to " + format(cell[2]) + ")" : "";
    chart.values[i].textContent = cell ? format(cell[1]) + range : "";
  });
  chart.where.textContent = row === null ? ""
    : X_AXES[view.x].say(chart.rows[row][0]) + restartsAt(chart.graph, chart.rows[row][0]);
}

function nearestRow(chart, x) {
  const next = chart.rows.findIndex((row) => row[0] >= x), last = chart.rows.length - 1;
  if (next <= 0) return next < 0 ? last : 0;
  return x - chart.rows[next - 1][0] < chart.rows[next][0] - x ? next - 1 : next;
}

// One pointer for all charts: each shows its values at the same x, or at its end where x is null.
function pointAt(x, pointed) {
  for (const chart of charts) {
    const row = x === null || chart.rows.length === 0 ? null : nearestRow(chart, x);
    if (chart !== pointed && row === null) chart.graph.clearSelection();
    else if (chart !== pointed) chart.graph.setSelection(row);
    say(chart, row);
  }
}

const logPossible = (lines) => lines.every((line) => line.level || line.low.every((value) => value > 0));

// `spec`: {id, title, format, tick, log, zero, note}; `lines`: at least one.
function makeChart(spec, lines) {
  const chart = {spec, lines: dressed(lines), rows: [], values: [], where: element("div", {class: "where"})};
  chart.plot = element("div", {class: "plot", role: "img",
    "aria-label": spec.title + ", line chart of " + lines.map((line) => line.label).join(", ")});
  const logBox = element("input", {type: "checkbox", checked: Boolean(spec.log), "aria-label": "log y of " + spec.title,
                                   change: (event) => chart.graph.updateOptions({logscale: event.target.checked})});
  charts.push(chart);
  return element("figure", {class: "chart", id: "chart-" + spec.id},
    element("div", {class: "chart-head"}, element("h3", {}, spec.title),
            logPossible(lines) ? element("label", {}, logBox, "log y") : null),
    element("ul", {class: "legend"}, ...lines.map((line, i) => legendItem(chart, line, i))),
    chart.plot, chart.where, spec.note ? note(spec.note) : null);
}

function drawChart(chart) {
  const {spec, lines} = chart, names = lines.map((line, i) => i + " " + line.label);
  // Without dygraphs' touch handlers a finger on a chart scrolls the page.
  const {touchstart, touchmove, touchend, ...mouse} = Dygraph.defaultInteractionModel;
  chart.rows = rowsOf(lines, view.x, view.smoothing);
  chart.graph = new Dygraph(chart.plot, chart.rows, {
    ...themed(chart),
    labels: ["x", ...names],
    series: Object.fromEntries(lines.map((line, i) => [names[i], {strokePattern: line.dash.pattern, strokeWidth: 1.5,
      drawPoints: line.mean.length <= 60 && !line.level, pointSize: 2.5, highlightCircleSize: 4}])),
    customBars: true,
    connectSeparatedPoints: true,
    fillAlpha: 0.25,
    legend: "never",
    logscale: Boolean(spec.log) && logPossible(lines),
    includeZero: Boolean(spec.zero),
    xlabel: X_AXES[view.x].title,
    xRangePad: 4,
    yRangePad: 8,
    rightGap: 12,
    axes: {
      x: {axisLabelFormatter: (value) => X_AXES[view.x].axis(value), pixelsPerLabel: 55},
      y: {axisLabelFormatter: (value) => (spec.tick || spec.format)(value), axisLabelWidth: 64, pixelsPerLabel: 36,
          labelsKMG2: spec.format === bytes},  // ticks at powers of two
    },
    interactionModel: mouse,
    underlayCallback: drawRestarts,
    highlightCallback: (event, x) => pointAt(x, chart),
    unhighlightCallback: () => pointAt(null, chart),
  });
  say(chart, null);
}

const redrawAll = (options) => charts.forEach((chart) => chart.graph.updateOptions(options(chart)));

function drawAll() {
  charts.forEach(drawChart);
  if (charts.length > 1) Dygraph.synchronize(charts.map((chart) => chart.graph), {selection: false, range: false});
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redrawAll(themed));
}

function controls() {
  const change = (name, read) => (value) => {
    view[name] = read(value);
    redrawAll((chart) => {
      chart.rows = rowsOf(chart.lines, view.x, view.smoothing);
      return {file: chart.rows, dateWindow: null, valueRange: null, xlabel: X_AXES[view.x].title,
              axes: {x: {logscale: view.logX}}};
    });
    pointAt(null, null);
  };
  const logX = element("input", {type: "checkbox", change: (event) => change("logX", Boolean)(event.target.checked)});
  return element("div", {class: "controls", role: "group", "aria-label": "All charts"},
    choice("against", Object.entries(X_AXES).map(([name, axis]) => [name, axis.title]), change("x", String)),
    choice("smoothing", [1, 3, 10, 30, 100, 300].map((n) => [n, n === 1 ? "none" : "mean of " + n + " points"]),
           change("smoothing", Number)),
    element("label", {}, logX, "log x"),
    element("button", {type: "button", click: () => charts.forEach((chart) => chart.graph.resetZoom())}, "reset zoom"));
}
