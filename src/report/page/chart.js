// Charts of dygraphs with a legend that is a list of check boxes, and a table of the same values.
const charts = [];  // {graph, lines, spec, ...}
const view = {x: "step", logX: false, smoothing: 1};

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// One finger scrolls the page; two zoom the chart. dygraphs' own model takes both for the chart.
function touches(model) {
  const twoFingers = (name) => (event, graph, context) => {
    if (name === "touchend" ? context.pinching : event.touches.length > 1) model[name](event, graph, context);
    context.pinching = event.touches.length > 1;
  };
  return {...model, touchstart: twoFingers("touchstart"), touchmove: twoFingers("touchmove"),
          touchend: twoFingers("touchend")};
}

function drawRestarts(canvas, area, graph) {
  canvas.save();
  canvas.setLineDash([3, 3]);
  canvas.lineWidth = 1;
  for (const run of runs) {
    canvas.strokeStyle = compares ? style("--line-" + runs.indexOf(run) % 6) : style("--mark");
    for (const at of restartsOf(run, view.x)) {
      const x = Math.round(graph.toDomXCoord(at)) + 0.5;
      if (!(x >= area.x && x <= area.x + area.w)) continue;
      canvas.beginPath();
      canvas.moveTo(x, area.y);
      canvas.lineTo(x, area.y + area.h);
      canvas.stroke();
    }
  }
  canvas.restore();
}

function themed(lines) {
  return {
    colors: lines.map((line) => style(line.color)),
    axisLineColor: style("--faint"),
    gridLineColor: style("--grid"),
  };
}

function legendItem(chart, line, index) {
  const value = element("output", {}, "");
  const box = element("input", {type: "checkbox", checked: true,
                                change: (event) => chart.graph.setVisibility(index, event.target.checked)});
  const swatch = element("span", {class: "swatch " + line.dash.name, style: "color: var(" + line.color + ")"});
  chart.values.push(value);
  return element("li", {}, element("label", {}, box, swatch, line.label, value));
}

// What the legend says: of the point under the pointer, or else of the last ones.
function say(chart, row) {
  const spread = (point) => point.low === point.high || point.low === undefined ? ""
    : " (" + chart.spec.format(point.low) + " to " + chart.spec.format(point.high) + ")";
  chart.lines.forEach((line, i) => {
    let text;
    if (row === null) {
      text = chart.spec.format(line.mean[line.mean.length - 1]);
    } else {
      const cell = chart.graph.getValue(row, i + 1);
      text = cell ? chart.spec.format(cell[1]) + spread({low: cell[0], high: cell[2]}) : "";
    }
    chart.values[i].textContent = text;
  });
  chart.where.textContent = row === null ? "" : X_AXES[view.x].say(chart.graph.getValue(row, 0));
}

function logPossible(lines) {
  return lines.every((line) => line.level || line.low.every((value) => value > 0));
}

// `spec`: {id, title, format, log (at first), note, warn (a function)}; `lines` of lines.js, at least one.
function makeChart(spec, lines) {
  dressed(lines);
  const chart = {spec, lines, values: [], where: element("div", {class: "where", "aria-hidden": "true"})};
  const plot = element("div", {class: "plot", role: "img", "aria-label":
    spec.title + ", line chart of " + lines.map((line) => line.label).join(", ") + "; the table below has its values"});
  const logBox = element("input", {type: "checkbox", checked: Boolean(spec.log), "aria-label": "log y of " + spec.title,
                                   change: (event) => chart.graph.updateOptions({logscale: event.target.checked})});
  const legend = element("ul", {class: "legend", "aria-label": "Lines of " + spec.title});
  legend.append(...lines.map((line, i) => legendItem(chart, line, i)));
  const figure = element("figure", {class: "chart", id: "chart-" + spec.id},
    element("div", {class: "chart-head"}, element("h3", {}, spec.title),
            logPossible(lines) ? element("label", {}, logBox, "log y") : null),
    legend, plot, chart.where, spec.warn && spec.warn() ? element("p", {class: "note warn"}, spec.warn()) : null, spec.note ? element("p", {class: "note"}, spec.note) : null, tableOfLines(spec, lines));
  chart.plot = plot;
  charts.push(chart);
  return figure;
}

function drawChart(chart) {
  const few = (line) => line.mean.length <= 60 && !line.level;
  chart.graph = new Dygraph(chart.plot, rowsOf(chart.lines, view.x, view.smoothing), {
    ...themed(chart.lines),
    labels: ["x", ...chart.lines.map((line, i) => i + " " + line.label)],
    series: Object.fromEntries(chart.lines.map((line, i) => [i + " " + line.label, {
      strokePattern: line.dash.pattern, strokeWidth: line.width, drawPoints: few(line), pointSize: 2.5}])),
    customBars: true,
    connectSeparatedPoints: true,
    fillAlpha: 0.25,
    highlightCircleSize: 4,
    legend: "never",
    logscale: Boolean(chart.spec.log) && logPossible(chart.lines),
    includeZero: Boolean(chart.spec.zero),
    xRangePad: 4,
    yRangePad: 8,
    rightGap: 12,
    axes: {
      x: {axisLabelFormatter: (value) => X_AXES[view.x].axis(value), pixelsPerLabel: 70},
      y: {axisLabelFormatter: (value) => chart.spec.format(value), axisLabelWidth: 64, pixelsPerLabel: 36,
          labelsKMG2: chart.spec.format === bytes},  // ticks at powers of two
    },
    interactionModel: touches(Dygraph.defaultInteractionModel),
    underlayCallback: drawRestarts,
    highlightCallback: (event, x, points, row) => say(chart, row),
    unhighlightCallback: () => say(chart, null),
  });
  say(chart, null);
}

function redrawAll(options) {
  for (const chart of charts) chart.graph.updateOptions(options(chart));
}

function drawAll() {
  charts.forEach(drawChart);
  if (charts.length > 1) Dygraph.synchronize(charts.map((chart) => chart.graph), {selection: false, range: false});
  // Colours are drawn, so a change of theme draws anew.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
    () => redrawAll((chart) => themed(chart.lines)));
}

function controls() {
  const redrawRows = () => {
    redrawAll((chart) => ({file: rowsOf(chart.lines, view.x, view.smoothing), dateWindow: null, valueRange: null,
                           axes: {x: {logscale: view.logX}}}));
    charts.forEach((chart) => say(chart, null));
  };
  const choice = (name, options, changed) => element("label", {}, name,
    element("select", {change: (event) => { changed(event.target.value); redrawRows(); }},
            ...options.map(([value, text]) => element("option", {value}, text))));
  return element("div", {class: "controls", role: "group", "aria-label": "All charts"},
    choice("against", Object.entries(X_AXES).map(([name, axis]) => [name, axis.title]), (x) => { view.x = x; }),
    choice("smoothing", [1, 3, 10, 30, 100, 300].map((n) => [n, n === 1 ? "none" : "mean of " + n + " points"]),
           (n) => { view.smoothing = Number(n); }),
    element("label", {}, element("input", {type: "checkbox", change: (event) => {
      view.logX = event.target.checked;
      redrawRows();
    }}), "log x"),
    element("button", {type: "button", click: () => charts.forEach((chart) => chart.graph.resetZoom())}, "reset zoom"));
}
