// Charts of dygraphs with a legend that is a list of check boxes, and a table of the same values.
const charts = [];  // {graph, lines, columns, rows, spec, ...}
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

// An upright line where a later start began, with its number where one run has the page, and a star where it changed keys.
function drawRestarts(canvas, area, graph) {
  canvas.save();
  canvas.setLineDash([3, 3]);
  canvas.lineWidth = 1;
  canvas.font = "11px system-ui, 'Liberation Sans', sans-serif";
  canvas.textBaseline = "top";
  for (const run of runs) {
    canvas.strokeStyle = canvas.fillStyle = style(compares ? colorOf(run) : "--mark");
    let free = area.x;
    for (const restart of restartsOf(run, view.x)) {
      const x = Math.round(graph.toDomXCoord(restart.x)) + 0.5;
      if (!(x >= area.x && x <= area.x + area.w)) continue;
      canvas.beginPath();
      canvas.moveTo(x, area.y);
      canvas.lineTo(x, area.y + area.h);
      canvas.stroke();
      const width = canvas.measureText(restart.mark).width;
      if (compares || x + 3 < free || x + 3 + width > area.x + area.w) continue;
      canvas.fillText(restart.mark, x + 3, area.y + 1);
      free = x + 3 + width;
    }
  }
  canvas.restore();
}

// What is said of the restarts near this x of a chart.
function restartsAt(graph, x) {
  const near = (at) => Math.abs(graph.toDomXCoord(at) - graph.toDomXCoord(x)) < 6;
  return runs.flatMap((run) => restartsOf(run, view.x).filter((restart) => near(restart.x))
    .map((restart) => "; " + labelled(run, restart.said))).join("");
}

// The raw values are faint behind a smoothed line.
function colorOfColumn({line, raw}) {
  const [, r, g, b] = /^#(..)(..)(..)$/.exec(style(line.color)).map((part) => parseInt(part, 16));
  return raw ? "rgba(" + [r, g, b, 0.3].join(",") + ")" : style(line.color);
}

function themed(chart) {
  return {
    colors: chart.columns.map(colorOfColumn),
    axisLineColor: style("--faint"),
    gridLineColor: style("--grid"),
  };
}

function legendItem(chart, line) {
  const value = element("output", {}, "");
  const shown = chart.columns.map((column, i) => column.line === line ? i : -1).filter((i) => i >= 0);
  const box = element("input", {type: "checkbox", checked: true, change: (event) =>
    chart.graph.setVisibility(Object.fromEntries(shown.map((i) => [i, event.target.checked])))});
  const swatch = element("span", {class: "swatch " + line.dash.name, style: "color: var(" + line.color + ")"});
  chart.values.push(value);
  return element("li", {}, element("label", {}, box, swatch, line.label, value));
}

// What the legend says is what is drawn: at the point under the pointer, or else at the end of each line.
function say(chart, row) {
  const spread = (cell) => cell[0] === cell[2] ? ""
    : " (" + chart.spec.format(cell[0]) + " to " + chart.spec.format(cell[2]) + ")";
  const cellAt = (row, column) => chart.rows[row][column + 1];
  chart.columns.forEach((column, i) => {
    if (column.raw) return;
    let text = "";
    if (column.line.level) {
      text = chart.spec.format(column.line.mean[0]);
    } else if (row === null) {
      const last = chart.rows.findLastIndex((_, at) => cellAt(at, i));
      text = last < 0 ? "" : chart.spec.format(cellAt(last, i)[1]);
    } else if (cellAt(row, i)) {
      text = chart.spec.format(cellAt(row, i)[1]) + spread(cellAt(row, i));
    }
    chart.values[chart.lines.indexOf(column.line)].textContent = text;
  });
  chart.where.textContent = row === null ? ""
    : X_AXES[view.x].say(chart.rows[row][0]) + restartsAt(chart.graph, chart.rows[row][0]);
}

// The row whose x is nearest to this one.
function nearestRow(chart, x) {
  let low = 0, high = chart.rows.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (chart.rows[middle][0] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - chart.rows[low - 1][0] < chart.rows[low][0] - x ? low - 1 : low;
}

// One pointer for all charts: each shows its values at the same x, or nothing once x is null.
function pointAt(x, pointed) {
  for (const chart of charts) {
    const row = x === null || chart.rows.length === 0 ? null : nearestRow(chart, x);
    if (chart !== pointed && row === null) chart.graph.clearSelection();
    else if (chart !== pointed) chart.graph.setSelection(row);
    say(chart, row);
  }
}

function logPossible(lines) {
  return lines.every((line) => line.level || line.low.every((value) => value > 0));
}

// `spec`: {id, title, format, log (at first), note}; `lines` of lines.js, at least one.
function makeChart(spec, lines) {
  dressed(lines);
  const chart = {spec, lines, columns: columnsOf(lines), rows: [], values: [], where: element("div", {class: "where", "aria-hidden": "true"})};
  const plot = element("div", {class: "plot", role: "img", "aria-label":
    spec.title + ", line chart of " + lines.map((line) => line.label).join(", ") + "; the table below has its values"});
  const logBox = element("input", {type: "checkbox", checked: Boolean(spec.log), "aria-label": "log y of " + spec.title,
                                   change: (event) => chart.graph.updateOptions({logscale: event.target.checked})});
  const legend = element("ul", {class: "legend", "aria-label": "Lines of " + spec.title});
  legend.append(...lines.map((line) => legendItem(chart, line)));
  const figure = element("figure", {class: "chart", id: "chart-" + spec.id},
    element("div", {class: "chart-head"}, element("h3", {}, spec.title),
            logPossible(lines) ? element("label", {}, logBox, "log y") : null),
    legend, plot, chart.where, spec.note ? element("p", {class: "note"}, spec.note) : null, tableOfLines(spec, lines));
  chart.plot = plot;
  charts.push(chart);
  return figure;
}

function drawChart(chart) {
  const few = (line) => line.mean.length <= 60 && !line.level;
  const names = chart.columns.map(({line}, i) => i + " " + line.label);
  chart.rows = rowsOf(chart.columns, view.x, view.smoothing);
  chart.graph = new Dygraph(chart.plot, chart.rows, {
    ...themed(chart),
    labels: ["x", ...names],
    series: Object.fromEntries(chart.columns.map(({line, raw}, i) => [names[i], {
      strokePattern: line.dash.pattern, strokeWidth: raw ? 1 : line.width, drawPoints: few(line) && !raw, pointSize: 2.5,
      highlightCircleSize: raw ? 0 : 4}])),
    customBars: true,
    connectSeparatedPoints: true,
    fillAlpha: 0.25,
    legend: "never",
    logscale: Boolean(chart.spec.log) && logPossible(chart.lines),
    includeZero: Boolean(chart.spec.zero),
    xlabel: X_AXES[view.x].title,
    xRangePad: 4,
    yRangePad: 8,
    rightGap: 12,
    axes: {
      x: {axisLabelFormatter: (value) => X_AXES[view.x].axis(value), pixelsPerLabel: 55},
      y: {axisLabelFormatter: (value) => (chart.spec.tick || chart.spec.format)(value), axisLabelWidth: 64, pixelsPerLabel: 36,
          labelsKMG2: chart.spec.format === bytes},  // ticks at powers of two
    },
    interactionModel: touches(Dygraph.defaultInteractionModel),
    underlayCallback: drawRestarts,
    highlightCallback: (event, x) => pointAt(x, chart),
    unhighlightCallback: () => pointAt(null, chart),
  });
  say(chart, null);
}

function redrawAll(options) {
  for (const chart of charts) chart.graph.updateOptions(options(chart));
}

function drawAll() {
  charts.forEach(drawChart);
  if (charts.length > 1) Dygraph.synchronize(charts.map((chart) => chart.graph), {selection: false, range: false});
  // Colours are part of the drawing, so a change of theme redraws it.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
    () => redrawAll(themed));
  // Paper shows what the screen has drawn, made to fit: a canvas that is drawn while the browser prints stays empty.
  const drawings = [...charts.map((chart) => chart.plot), ...heats.map((heat) => heat.canvas.parentElement)];
  window.addEventListener("beforeprint", () => {
    const widths = drawings.map((one) => one.clientWidth);
    document.body.classList.add("printed");
    drawings.forEach((one, i) => {
      one.parentElement.classList.toggle("wide", widths[i] > document.body.clientWidth);
      one.style.width = widths[i] + "px";
      one.style.zoom = Math.min(1, one.parentElement.clientWidth / widths[i]);
    });
  });
  window.addEventListener("afterprint", () => {
    document.body.classList.remove("printed");
    for (const one of drawings) one.style.width = one.style.zoom = "";
  });
}

function controls() {
  const redrawRows = () => {
    redrawAll((chart) => {
      chart.rows = rowsOf(chart.columns, view.x, view.smoothing);
      return {file: chart.rows, dateWindow: null, valueRange: null, xlabel: X_AXES[view.x].title,
              axes: {x: {logscale: view.logX}}};
    });
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
