// Statistics of tensors as a heat map: a row for each weight or activation, a column for each bucket of steps. Cells
// are thousandths of a decimal logarithm (page_data.cc).
const heats = [];  // {run, kind, rows, range, canvas, area, ...}
const ZERO = -1000000;
const HEAT_KINDS = {
  ratio: {title: "update over weights", note: "Root mean square of the update over that of the weight. Around 1e-3 " +
    "is usual. Far above it training becomes unstable; far below it the weight hardly learns."},
  gradients: {title: "gradients", note: "Root mean square of a weight's gradient, before max_grad_norm clips."},
  weights: {title: "weights", note: "Root mean square of a weight, after the step."},
  activations: {title: "activations", note: "Greatest magnitude of an activation, in the step's last micro-batch."},
};
const heatKind = (kind) => HEAT_KINDS[kind] ||
  {title: kind, note: "Root mean square of " + kind + " (the optimizer's state), after the step."};

// Viridis, by van der Walt and Smith: dark to bright, so it also works without colours and on either background.
const HEAT_COLORS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function heatColor(share) {
  const at = Math.min(Math.max(share, 0), 1) * (HEAT_COLORS.length - 1);
  const low = Math.min(Math.floor(at), HEAT_COLORS.length - 2);
  const mixed = HEAT_COLORS[low].map((c, i) => Math.round(c + (HEAT_COLORS[low + 1][i] - c) * (at - low)));
  return "rgb(" + mixed.join(",") + ")";
}

const heatNumber = (cell) => cell === null ? null : cell === ZERO ? 0 : 10 ** (cell / 1000);

// "model.layers.3.self_attn.q_proj.weight": {matrix: "q_proj", title: "layer 3 q_proj"}.
function heatRow(name, row) {
  const [, layer, rest] = /^(?:(?:model\.)?layers\.(\d+)\.)?(.+)$/.exec(name);
  const matrix = rest.replace(/^(model|self_attn|mlp)\./, "").replace(/\.weight$/, "");
  return {row, matrix, title: layer === undefined ? matrix : "layer " + layer + " " + matrix};
}

// Those with cells. The rows of all layers of a matrix are neighbours.
function heatRows(names, cells) {
  const rows = names.map(heatRow).filter(({row}) => cells.rows[row]);
  const order = [...new Set(rows.map((one) => one.matrix))];
  return rows.sort((a, b) => order.indexOf(a.matrix) - order.indexOf(b.matrix) || a.row - b.row);
}

function drawHeat(heat) {
  const {canvas, tensors, rows} = heat, cells = tensors.kinds[heat.kind], [low, high] = heat.range;
  const width = canvas.parentElement.clientWidth, left = Math.min(130, 0.4 * width), scale = devicePixelRatio || 1;
  const rowHeight = Math.max(4, Math.min(16, Math.floor(560 / rows.length))), height = rowHeight * rows.length;
  heat.area = {left, rowHeight, columnWidth: (width - left) / tensors.to.length};
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = height + "px";
  const to = canvas.getContext("2d");
  to.scale(scale, scale);
  const fill = (i, column, color) => {
    const [x, next] = [column, column + 1].map((at) => Math.round(left + at * heat.area.columnWidth));
    to.fillStyle = color;
    to.fillRect(x, i * rowHeight, Math.max(1, next - x), rowHeight);
  };
  rows.forEach(({row}, i) => cells.rows[row].forEach((cell, column) => {
    if (cell !== null) fill(i, column, heatColor(cell === ZERO ? 0 : high > low ? (cell - low) / (high - low) : 0.5));
  }));
  for (const [row, column] of cells.non_finite) fill(rows.findIndex((one) => one.row === row), column, style("--mark"));
  to.fillStyle = style("--text");
  to.font = "12px system-ui, 'Liberation Sans', sans-serif";
  to.textBaseline = "middle";
  let free = 0;  // a label stands at the first row of its matrix, if there is room
  rows.forEach(({matrix}, i) => {
    if ((i > 0 && rows[i - 1].matrix === matrix) || i * rowHeight < free) return;
    to.fillText(matrix, 0, i * rowHeight + 7, left - 6);
    free = i * rowHeight + 13;
  });
}

function sayHeat(heat, x, y) {
  const {area, tensors, rows} = heat, cells = tensors.kinds[heat.kind];
  const column = Math.floor((x - area.left) / area.columnWidth), one = rows[Math.floor(y / area.rowHeight)];
  if (!one || column < 0 || column >= tensors.to.length) return "";
  const bad = cells.non_finite.find(([row, at]) => row === one.row && at === column);
  const from = tensors.from[column], to = tensors.to[column];
  return one.title + ", step " + (from === to ? "" : whole(from) + " to ") + whole(to) + ": " +
    number(heatNumber(cells.rows[one.row][column]), 3) + (bad ? ", " + whole(bad[2]) + " elements not finite" : "");
}

function makeHeat(run) {
  const all = Object.keys(run.tensors.kinds);
  const heat = {run, tensors: run.tensors, kind: all.includes("ratio") ? "ratio" : all[0],
                canvas: element("canvas", {class: "heat", role: "img"}), where: element("div", {class: "where"})};
  const legend = element("p", {class: "note"});
  heat.show = () => {
    const cells = heat.tensors.kinds[heat.kind], kind = heatKind(heat.kind);
    heat.rows = heatRows(heat.tensors.names, cells);
    heat.range = cells.rows.flat().filter((cell) => cell !== null && cell !== ZERO)
      .reduce(([low, high], cell) => [Math.min(low, cell), Math.max(high, cell)], [Infinity, -Infinity]);
    const [low, high] = heat.range.map((cell) => number(heatNumber(cell), 3));
    legend.textContent = kind.note + " From " + low + " (dark) to " + high + " (bright), on a logarithmic scale" +
      (cells.non_finite.length > 0 ? "; orange: some elements are not finite." : ".");
    heat.canvas.setAttribute("aria-label", labelled(run, kind.title) + ", heat map over steps");
    drawHeat(heat);
  };
  const point = (event) => { heat.where.textContent = sayHeat(heat, event.offsetX, event.offsetY); };
  heat.canvas.addEventListener("pointermove", point);
  heat.canvas.addEventListener("pointerdown", point);
  heats.push(heat);
  const first = [heat.kind, ...all.filter((kind) => kind !== heat.kind)];
  const kinds = first.map((kind) => [kind, heatKind(kind).title]);
  const choose = (kind) => { heat.kind = kind; heat.show(); };
  return element("figure", {class: "chart"}, element("div", {class: "chart-head"},
    element("h3", {}, labelled(run, "Tensors by layer and step")), choice("of", kinds, choose)),
    element("div", {}, heat.canvas), heat.where, legend);
}

function heatSection() {
  const seen = runs.filter((run) => run.tensors.to.length > 0);
  if (seen.length > 0) section("tensors", "Tensors", ...seen.map(makeHeat));
}

function drawHeats() {
  for (const heat of heats) {
    heat.show();
    new ResizeObserver(() => drawHeat(heat)).observe(heat.canvas.parentElement);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => heats.forEach(drawHeat));
}
