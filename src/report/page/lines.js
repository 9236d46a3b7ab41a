// Lines of a chart: a series of one run, or a level that holds for all of it.
//   {label, run, color, dash, width, points: {step: [], tokens: [], hours: []}, mean: [], low: [], high: [], measured}
// `measured`: it has noise, which smoothing may take out. A schedule, a validation or a level has none.

// The unit of time for the longest run.
const TIME = (() => {
  const longest = Math.max(...runs.map((run) => run.report.wall_clock));
  if (longest < 120) return {name: "seconds", seconds: 1};
  return longest < 3 * 3600 ? {name: "minutes", seconds: 60} : {name: "hours", seconds: 3600};
})();

// What all charts may be drawn against.
const X_AXES = {
  step: {title: "step", axis: (value) => count(value), say: (value) => "step " + whole(Math.round(value)),
         of: (points) => points.step},
  tokens: {title: "tokens", axis: (value) => count(value), say: (value) => count(value) + " tokens",
           of: (points) => points.tokens},
  time: {title: TIME.name + " of wall clock", axis: (value) => number(value, 3), say: (value) => duration(TIME.seconds * value),
         of: (points) => points.hours.map((hours) => hours * 3600 / TIME.seconds)},
};

const DASHES = [{pattern: null, name: ""}, {pattern: [7, 4], name: "dashed"}, {pattern: [2, 3], name: "dotted"}];
const isMeasured = (name) => !/^(optim\/lr|validation\/|evals\/|checkpoint\/|memory\/)/.test(name);

function lineOf(run, name, label) {
  const series = run.series[name];
  if (!series || series.mean.length === 0) return null;
  return {label, run, points: run.axes[series.axis], mean: series.mean, low: series.low || series.mean,
          high: series.high || series.mean, records: series.records, measured: isMeasured(name)};
}

// From the first to the last point of another line.
function levelOf(line, value, label) {
  const ends = (values) => [values[0], values[values.length - 1]];
  const points = {step: ends(line.points.step), tokens: ends(line.points.tokens), hours: ends(line.points.hours)};
  const mean = points.step[0] === points.step[1] ? [value] : [value, value];
  return {label, run: line.run, points, mean, low: mean, high: mean, records: 1, level: true, measured: false};
}

// Colours tell runs apart where there are several, else the lines of the chart. Levels may be equal, so each has a dash of
// its own, and the first, which the others are drawn over, is wide.
function dressed(lines) {
  const dashesOfRun = new Map();
  lines.forEach((line, index) => {
    const nth = dashesOfRun.get(line.run) || 0;
    dashesOfRun.set(line.run, nth + 1);
    line.color = compares ? colorOf(line.run) : "--line-" + index % 6;
    line.dash = DASHES[compares || line.level ? Math.min(nth, 2) : 0];
    line.width = !line.level ? 1.5 : nth === 1 && lines.filter((one) => one.level && one.run === line.run).length > 1 ? 5 : 2;
  });
  return lines;
}

// The mean of the `window` points around each, of fewer at the ends: as many before it as after it, so that it never lags.
function smoothed(values, window) {
  const half = Math.floor(window / 2);
  if (half === 0) return values;
  const sums = [0];
  for (const value of values) sums.push(sums[sums.length - 1] + value);
  return values.map((_, i) => {
    const reach = Math.min(half, i, values.length - 1 - i);
    return (sums[i + reach + 1] - sums[i - reach]) / (2 * reach + 1);
  });
}

// The columns of a chart's rows: the raw values of each measured line, which are there while it is smoothed, then all lines.
function columnsOf(lines) {
  return [...lines.filter((line) => line.measured).map((line) => ({line, raw: true})),
          ...lines.map((line) => ({line, raw: false}))];
}

// Rows for dygraphs: [x, [low, mean, high] or null of each column, ...], x ascending.
function rowsOf(columns, x, window) {
  const rows = new Map();
  const put = (at, column, cell) => {
    if (!rows.has(at)) rows.set(at, [at, ...columns.map(() => null)]);
    rows.get(at)[column + 1] = cell;
  };
  columns.forEach(({line, raw}, column) => {
    const smooths = window > 1 && line.measured;
    if (raw && !smooths) return;
    const mean = smooths && !raw ? smoothed(line.mean, window) : line.mean;
    X_AXES[x].of(line.points).slice(0, mean.length).forEach((at, i) =>
      put(at, column, smooths && !raw ? [mean[i], mean[i], mean[i]] : [line.low[i], mean[i], line.high[i]]));
  });
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

// The tokens before a step of a run, between the points that it has.
function tokensAt(run, step) {
  const axis = run.axes.reduce((best, one) => one.step.length > best.step.length ? one : best, {step: [0], tokens: [0]});
  const next = axis.step.findIndex((one) => one >= step), last = axis.step.length - 1;
  const to = next < 0 ? last : next, from = next < 0 ? Math.max(0, last - 1) : next - 1;
  const [fromStep, fromTokens] = from < 0 ? [0, 0] : [axis.step[from], axis.tokens[from]];
  const share = axis.step[to] > fromStep ? (step - fromStep) / (axis.step[to] - fromStep) : 0;
  return fromTokens + share * (axis.tokens[to] - fromTokens);
}

// Where later starts of a run began to train: {x, mark, said}.
function restartsOf(run, x) {
  const starts = run.report.starts, begin = Date.parse(starts[0].exec);
  return starts.map((start, i) => start.first_step_began && i > 0 && {
    x: x === "time" ? (Date.parse(start.first_step_began) - begin) / (1e3 * TIME.seconds)
      : x === "tokens" ? tokensAt(run, start.first_step) : start.first_step,
    mark: "start " + (i + 1) + (start.changed ? "*" : ""),
    said: "start " + (i + 1) + " from step " + whole(start.first_step) +
      (starts[i - 1].lost_steps > 0 ? ", " + whole(starts[i - 1].lost_steps) + " steps lost" : "") +
      (start.changed ? ", changed " + start.changed : ""),
  }).filter(Boolean);
}
