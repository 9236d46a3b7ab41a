// Statistics of tensors as a heat map: a row for each weight, a column for each bucket of steps. Cells come as thousandths
// of a decimal logarithm (page_data.cc).
const heats = [];  // {run, kind, order, canvas, ...}
const ZERO = -1000000;
const HEAT_KINDS = {
  ratio: {title: "update over weights", said: "Root mean square of the update over that of the weights", note: "How far a step moves a weight, relative to it: root mean square of the update " +
          "over that of the weight. Around 1e-3 is usual. Far above it training becomes unstable; far below it the weight hardly learns."},
  gradients: {title: "gradients", said: "Root mean square of the gradients", note: "Root mean square of a weight's gradient: the mean over the step's tokens, before clipping."},
  weights: {title: "weights", said: "Root mean square of the weights", note: "Root mean square of a weight, after the step."},
};
const HEAT_ORDERS = {matrix: "by matrix, then layer", layer: "by layer, then matrix"};

// Dark to bright (viridis, by van der Walt and Smith), which holds without colours, too, and on either background.
const HEAT_COLORS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function heatColor(share) {
  const at = Math.min(Math.max(share, 0), 1) * (HEAT_COLORS.length - 1);
  const low = Math.min(Math.floor(at), HEAT_COLORS.length - 2);
  const mixed = HEAT_COLORS[low].map((c, i) => Math.round(c + (HEAT_COLORS[low + 1][i] - c) * (at - low)));
  return "rgb(" + mixed.join(",") + ")";
}

const heatNumber = (cell) => cell === null ? null : cell === ZERO ? 0 : 10 ** (cell / 1000);

// "model.layers.3.self_attn.q_proj.weight": {layer: 3, matrix: "q_proj"}; what is in no layer is a matrix of its own.
function partsOfName(name) {
  const short = (text) => text.replace(/^(model|self_attn|mlp)\./, "").replace(/\.weight$/, "");
  const found = /^model\.layers\.(\d+)\.(.+)$/.exec(name);
  return found ? {layer: Number(found[1]), matrix: short(found[2])} : {layer: null, matrix: short(name)};
}

const rowTitle = ({layer, matrix}) => layer === null ? matrix : "layer " + layer + " " + matrix;

// The rows in the order in which they are drawn: {row, layer, matrix, group}.
function orderedRows(names, order) {
  const all = names.map((name, row) => ({row, ...partsOfName(name)}));
  const group = (one) => order === "matrix" || one.layer === null ? one.matrix : "layer " + one.layer;
  const groups = new Map();
  for (const one of all) {
    const name = group(one);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push({...one, group: name});
  }
  return [...groups.values()].flat();
}

// The least and the greatest of what has a logarithm.
function heatRange(rows) {
  let low = Infinity, high = -Infinity;
  for (const cell of rows.flat()) {
    if (cell === null || cell === ZERO) continue;
    low = Math.min(low, cell);
    high = Math.max(high, cell);
  }
  return [low, high];
}

const stepsOf = (tensors, column) => tensors.from[column] === tensors.to[column] ? whole(tensors.to[column])
  : whole(tensors.from[column]) + " to " + whole(tensors.to[column]);

const LABEL_HEIGHT = 13;

// What stands at the axis, in the order of the rows: {text, from, to}, each for the rows from .. to - 1.
function labelsOf(rows, text) {
  const labels = [];
  rows.forEach((one, i) => {
    const last = labels[labels.length - 1];
    if (last && last.text === text(one)) last.to = i + 1;
    else labels.push({text: text(one), from: i, to: i + 1});
  });
  return labels;
}

// Each at the middle of its rows, or as near to it as the others let it: a group may be lower than its label.
function placeLabels(labels, rowHeight, height) {
  let free = LABEL_HEIGHT / 2;
  for (const one of labels) {
    one.y = Math.max(0.5 * (one.from + one.to) * rowHeight, free);
    free = one.y + LABEL_HEIGHT;
  }
  free = height - LABEL_HEIGHT / 2;
  for (const one of [...labels].reverse()) {
    one.y = Math.min(one.y, free);
    free = one.y - LABEL_HEIGHT;
  }
}

// A bracket along the rows of a label, and a line to it.
function drawBracket(to, one, x, rowHeight) {
  const top = one.from * rowHeight + 0.5, bottom = one.to * rowHeight - 0.5;
  to.beginPath();
  to.moveTo(x - 6, one.y);
  to.lineTo(x - 1, (top + bottom) / 2);
  to.moveTo(x - 1, top);
  to.lineTo(x - 1, bottom);
  to.stroke();
}

function drawHeat(heat) {
  const {canvas, tensors, rows} = heat, cells = tensors[heat.kind];
  const width = canvas.parentElement.clientWidth, scale = window.devicePixelRatio || 1;
  const groups = labelsOf(rows, (one) => one.group);
  const rowHeight = Math.max(2, Math.min(16, Math.floor(560 / rows.length)), Math.ceil(LABEL_HEIGHT * groups.length / rows.length));
  const height = rowHeight * rows.length, axis = 20;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round((height + axis) * scale);
  canvas.style.height = height + axis + "px";
  const to = canvas.getContext("2d");
  to.scale(scale, scale);
  to.font = "12px system-ui, 'Liberation Sans', sans-serif";
  const labels = rowHeight >= LABEL_HEIGHT ? labelsOf(rows, rowTitle) : groups, bracket = 9;
  const left = Math.min(Math.ceil(Math.max(...labels.map((one) => to.measureText(one.text).width))) + bracket + 3, Math.floor(0.4 * width));
  heat.area = {left, width: width - left, height, rowHeight, columnWidth: (width - left) / tensors.to.length, labels};

  to.fillStyle = style("--text");
  to.strokeStyle = style("--faint");
  to.textBaseline = "middle";
  placeLabels(labels, rowHeight, height);
  for (const one of labels) {
    to.fillText(one.text, 0, one.y, left - bracket - 1);
    drawBracket(to, one, left - 2, rowHeight);
  }
  const [low, high] = heat.range;
  rows.forEach(({row}, i) => cells.rows[row].forEach((cell, column) => {
    if (cell === null) return;
    to.fillStyle = heatColor(cell === ZERO ? 0 : high > low ? (cell - low) / (high - low) : 0.5);
    const x = left + column * heat.area.columnWidth, next = left + (column + 1) * heat.area.columnWidth;
    to.fillRect(Math.round(x), i * rowHeight, Math.max(1, Math.round(next) - Math.round(x)), rowHeight);
  }));
  const place = new Map(rows.map(({row}, i) => [row, i]));
  to.fillStyle = style("--mark");
  for (const [row, column] of cells.non_finite) {
    to.fillRect(Math.round(left + column * heat.area.columnWidth), place.get(row) * rowHeight,
                Math.max(2, Math.round(heat.area.columnWidth)), rowHeight);
  }
  to.fillStyle = style("--text");
  const ends = [[0, "left", left], [tensors.to.length - 1, "right", width]];
  for (const [column, align, x] of ends.slice(tensors.to.length > 1 ? 0 : 1)) {
    to.textAlign = align;
    to.fillText("step " + whole(tensors.to[column]), x, height + axis / 2);
  }
}

// Of the cell at this place of the canvas, or "".
function sayHeat(heat, x, y) {
  const {area, tensors, rows} = heat, cells = tensors[heat.kind];
  const column = Math.floor((x - area.left) / area.columnWidth), one = rows[Math.floor(y / area.rowHeight)];
  if (!one || column < 0 || column >= tensors.to.length) return "";
  const bad = cells.non_finite.find(([row, at]) => row === one.row && at === column);
  return rowTitle(one) + ", step " + stepsOf(tensors, column) + ": " + number(heatNumber(cells.rows[one.row][column]), 3) +
    (bad ? ", " + whole(bad[2]) + " elements not finite" : "");
}

function heatTable(heat) {
  const {tensors, rows} = heat, cells = tensors[heat.kind], most = 12, count = tensors.to.length;
  const columns = count <= most ? [...Array(count).keys()]
    : [...Array(most).keys()].map((i) => Math.round(i * (count - 1) / (most - 1)));
  const bad = new Set(cells.non_finite.map(([row, column]) => row + "/" + column));
  return table(heat.title() + (columns.length < count ? ", " + columns.length + " of " + count + " columns" : ""),
    [{title: "weight", class: TEXT}, ...columns.map((column) => ({title: "step " + stepsOf(tensors, column), class: NUMBER}))],
    rows.map((one) => [rowTitle(one), ...columns.map((column) => number(heatNumber(cells.rows[one.row][column]), 3) +
      (bad.has(one.row + "/" + column) ? " (not all finite)" : ""))]));
}

function makeHeat(run) {
  const tensors = run.tensors;
  const heat = {run, tensors, kind: "ratio", order: "matrix"};
  heat.title = () => labelled(run, HEAT_KINDS[heat.kind].said);
  heat.canvas = element("canvas", {class: "heat", role: "img"});
  const where = element("div", {class: "where", "aria-hidden": "true"});
  const legend = element("p", {class: "heat-legend"});
  const note = element("p", {class: "note"});
  const holder = element("details", {}, element("summary", {}, labelled(run, "Table: tensor statistics")));
  const fillTable = () => {
    if (holder.children.length > 1) holder.lastChild.remove();
    if (holder.open) holder.append(heatTable(heat));
  };
  holder.addEventListener("toggle", fillTable);
  heat.show = () => {
    const cells = tensors[heat.kind];
    heat.rows = orderedRows(tensors.names, heat.order);
    heat.range = heatRange(cells.rows);
    const known = heat.range[0] <= heat.range[1];
    heat.canvas.setAttribute("aria-label", heat.title() + ", heat map of " + heat.rows.length + " weights over " +
      tensors.to.length + " columns of steps; the table below has its values");
    const [low, high] = heat.range.map((cell) => known ? number(heatNumber(cell), 3) : DASH);
    const swatch = element("span", {class: "heat-scale", style: "background: linear-gradient(to right, " +
      HEAT_COLORS.map((_, i) => heatColor(i / (HEAT_COLORS.length - 1))).join(", ") + ")"});
    legend.replaceChildren(low + " ", swatch, " " + high + ", on a logarithmic scale");
    if (cells.non_finite.length > 0) {
      legend.append(element("span", {class: "heat-bad"}), " some elements are not finite");
    }
    note.textContent = HEAT_KINDS[heat.kind].note + (tensors.records > tensors.to.length
      ? " A column stands for up to " + Math.ceil(tensors.records / tensors.to.length) + " records and shows the greatest value." : "") +
      " Where several rows share a label, they are in the order of the table.";
    drawHeat(heat);
    fillTable();
  };
  const choice = (name, options, changed) => element("label", {}, name,
    element("select", {"aria-label": labelled(run, name), change: (event) => { changed(event.target.value); heat.show(); }},
            ...options.map(([value, text]) => element("option", {value}, text))));
  heat.canvas.addEventListener("pointermove", (event) => { where.textContent = sayHeat(heat, event.offsetX, event.offsetY); });
  heat.canvas.addEventListener("pointerdown", (event) => { where.textContent = sayHeat(heat, event.offsetX, event.offsetY); });
  heat.canvas.addEventListener("pointerleave", () => { where.textContent = ""; });
  heat.where = where;
  heats.push(heat);
  return element("figure", {class: "heat-map"},
    element("div", {class: "chart-head"}, element("h3", {}, labelled(run, "Tensors by layer and step")),
            element("span", {class: "heat-choices"},
              choice("of", Object.entries(HEAT_KINDS).map(([value, kind]) => [value, kind.title]), (kind) => { heat.kind = kind; }),
              choice("rows", Object.entries(HEAT_ORDERS), (order) => { heat.order = order; }))),
    legend, element("div", {class: "heat-plot"}, heat.canvas), where, note, holder);
}

function heatSection() {
  const seen = runs.filter((run) => run.tensors.to.length > 0);
  if (seen.length > 0) section("tensors", "Tensors", ...seen.map(makeHeat));
}

function drawHeats() {
  for (const heat of heats) {
    heat.show();
    let width = heat.canvas.parentElement.clientWidth;
    new ResizeObserver(() => {
      const now = heat.canvas.parentElement.clientWidth;
      if (now !== width) drawHeat(heat);
      width = now;
    }).observe(heat.canvas.parentElement);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => heats.forEach(drawHeat));
}
