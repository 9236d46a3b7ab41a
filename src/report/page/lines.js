// Lines of a chart: a series of one run, or a level that holds for all of it.
//   {label, run, color, dash, width, points: {step: [], tokens: [], hours: []}, mean: [], low: [], high: []}

// What all charts may be drawn against.
const X_AXES = {
  step: {title: "step", axis: (value) => count(value), say: (value) => "step " + whole(Math.round(value))},
  tokens: {title: "tokens", axis: (value) => count(value), say: (value) => count(value) + " tokens"},
  hours: {title: "hours of wall clock", axis: (value) => number(value, 3), say: (value) => duration(3600 * value)},
};

const DASHES = [{pattern: null, name: ""}, {pattern: [7, 4], name: "dashed"}, {pattern: [2, 3], name: "dotted"}];

function lineOf(run, name, label) {
  const series = run.series[name];
  if (!series || series.mean.length === 0) return null;
  return {label, run, points: run.axes[series.axis], mean: series.mean, low: series.low || series.mean,
          high: series.high || series.mean, records: series.records};
}

// From the first to the last point of another line.
function levelOf(line, value, label) {
  const ends = (values) => [values[0], values[values.length - 1]];
  const points = {step: ends(line.points.step), tokens: ends(line.points.tokens), hours: ends(line.points.hours)};
  const mean = points.step[0] === points.step[1] ? [value] : [value, value];
  return {label, run: line.run, points, mean, low: mean, high: mean, records: 1, level: true};
}

// Colours tell runs apart where there are several, else the lines of the chart. Levels may be equal, so each has a dash of
// its own, and the first, which the others are drawn over, is wide.
function dressed(lines) {
  const dashesOfRun = new Map();
  lines.forEach((line, index) => {
    const nth = dashesOfRun.get(line.run) || 0;
    dashesOfRun.set(line.run, nth + 1);
    line.color = "--line-" + (compares ? runs.indexOf(line.run) : index) % 6;
    line.dash = DASHES[compares || line.level ? Math.min(nth, 2) : 0];
    line.width = line.level && nth === 1 ? 5 : 1.5;
  });
  return lines;
}

// The mean of up to `window` points, the last of which is this one.
function smoothed(values, window) {
  if (window <= 1) return values;
  const result = [];
  for (let i = 0; i < values.length; ++i) {
    const from = Math.max(0, i - window + 1);
    let sum = 0;
    for (let k = from; k <= i; ++k) sum += values[k];
    result.push(sum / (i + 1 - from));
  }
  return result;
}

// Rows for dygraphs: [x, [low, mean, high] or null of each line, ...], x ascending.
function rowsOf(lines, x, window) {
  const rows = new Map();
  lines.forEach((line, column) => {
    const mean = smoothed(line.mean, window);
    line.points[x].slice(0, mean.length).forEach((at, i) => {
      if (!rows.has(at)) rows.set(at, [at, ...lines.map(() => null)]);
      rows.get(at)[column + 1] = [line.low[i], mean[i], line.high[i]];
    });
  });
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

// Where later starts of a run began to train: {x, run}.
function restartsOf(run, x) {
  const starts = run.report.starts;
  const begin = Date.parse(starts[0].exec);
  const perStep = run.report.tokens / Math.max(1, run.report.step - starts[0].first_step);
  return starts.slice(1).filter((start) => start.first_step_began).map((start) => {
    if (x === "hours") return (Date.parse(start.first_step_began) - begin) / 3.6e6;
    return x === "tokens" ? start.first_step * perStep : start.first_step;
  });
}
