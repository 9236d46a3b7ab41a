// Lines of a chart: a series of one run, or a level that is constant over it.
//   {label, run, color, dash, points: {step: [], tokens: [], hours: []}, mean: [], low: [], high: [], measured, level}
// `measured`: noisy, so smoothing applies.

// The unit of time that suits the longest run.
const TIME = (() => {
  const longest = Math.max(...runs.map((run) => run.report.wall_clock));
  if (longest < 120) return {name: "seconds", seconds: 1};
  return longest < 3 * 3600 ? {name: "minutes", seconds: 60} : {name: "hours", seconds: 3600};
})();

const X_AXES = {
  step: {title: "step", axis: count, say: (value) => "step " + whole(Math.round(value)), of: (points) => points.step},
  tokens: {title: "tokens", axis: count, say: (value) => count(value) + " tokens", of: (points) => points.tokens},
  time: {title: TIME.name + " of wall clock", axis: (value) => number(value, 3),
         say: (value) => duration(TIME.seconds * value),
         of: (points) => points.hours.map((hours) => hours * 3600 / TIME.seconds)},
};

const DASHES = [{pattern: null, name: ""}, {pattern: [7, 4], name: "dashed"}, {pattern: [2, 3], name: "dotted"}];
const isMeasured = (name) => !/^(optim\/lr|validation\/|evals\/|checkpoint\/|memory\/)/.test(name);

function lineOf(run, name, label) {
  const series = run.series[name];
  if (!series) return null;
  return {label, run, points: run.axes[series.axis], mean: series.mean, low: series.low || series.mean,
          high: series.high || series.mean, measured: isMeasured(name)};
}

// A constant, from the first to the last point of another line.
function levelOf(line, value, label) {
  const ends = (values) => [values[0], values[values.length - 1]];
  const {step, tokens, hours} = line.points, both = [value, value];
  return {label, run: line.run, points: {step: ends(step), tokens: ends(tokens), hours: ends(hours)},
          mean: both, low: both, high: both, level: true};
}

// Colours tell several runs apart, or else the lines of a chart.
function dressed(lines) {
  lines.forEach((line, index) => {
    const nth = lines.slice(0, index).filter((one) => one.run === line.run).length;
    line.color = compares ? colorOf(line.run) : "--line-" + index % 6;
    line.dash = DASHES[compares || line.level ? Math.min(nth, 2) : 0];
  });
  return lines;
}

// The mean of the `window` points around each: as many before it as after it, so it never lags; fewer at the ends.
function smoothed(values, window) {
  const half = Math.floor(window / 2), sums = [0];
  for (const value of values) sums.push(sums[sums.length - 1] + value);
  return values.map((_, i) => {
    const reach = Math.min(half, i, values.length - 1 - i);
    return (sums[i + reach + 1] - sums[i - reach]) / (2 * reach + 1);
  });
}

// Rows for dygraphs: [x, [low, mean, high] or null of each line, ...], x ascending.
function rowsOf(lines, x, window) {
  const rows = new Map();
  lines.forEach((line, column) => {
    const smooths = window > 1 && line.measured, mean = smooths ? smoothed(line.mean, window) : line.mean;
    X_AXES[x].of(line.points).forEach((at, i) => {
      if (!rows.has(at)) rows.set(at, [at, ...lines.map(() => null)]);
      rows.get(at)[column + 1] = smooths ? [mean[i], mean[i], mean[i]] : [line.low[i], mean[i], line.high[i]];
    });
  });
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

// Where later starts of a run began to train, and its later stages: {x, said}. Time has no stages.
function restartsOf(run, x) {
  const starts = run.report.starts, begin = Date.parse(starts[0].exec);
  const axis = run.axes.reduce((best, one) => one.step.length > best.step.length ? one : best, {step: [], tokens: []});
  const tokensAt = (step) => axis.tokens[axis.step.findLastIndex((one) => one <= step)] || 0;
  const stages = x === "time" ? [] : run.report.stages.slice(1).map((stage) => ({
    x: x === "tokens" ? tokensAt(stage.first_step - 1) : stage.first_step - 1,
    said: "stage " + stage.name + " from step " + whole(stage.first_step)}));
  return stages.concat(starts.map((start, i) => start.first_step_began && i > 0 && {
    x: x === "time" ? (Date.parse(start.first_step_began) - begin) / (1e3 * TIME.seconds)
      : x === "tokens" ? tokensAt(start.first_step) : start.first_step,
    said: "start " + (i + 1) + " from step " + whole(start.first_step) +
      (start.changed ? ", changed " + start.changed : ""),
  }).filter(Boolean));
}
