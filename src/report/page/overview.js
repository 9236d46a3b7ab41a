// The overview: what one wants to know first of a run, each number with what it is over; several runs against each other.
const lastOf = (run, name) => {
  const series = run.series[name];
  return series ? series.mean[series.mean.length - 1] : null;
};

// The least of a series, and its step: {value, step}, or nothing.
function leastOf(run, name) {
  const series = run.series[name];
  if (!series) return null;
  const low = series.low || series.mean;
  const at = low.reduce((best, value, i) => value < low[best] ? i : best, 0);
  return {value: low[at], step: run.axes[series.axis].step[at]};
}

// The value of a series at a step, or at the last one before it.
function valueAt(run, name, step) {
  const series = run.series[name];
  if (!series) return null;
  const at = run.axes[series.axis].step.findLastIndex((one) => one <= step);
  return at < 0 ? null : series.mean[at];
}

// The last step that all runs have of a series: of those that all recorded, or else where the shortest run ended.
function lastCommonStep(name) {
  const steps = runs.filter((run) => run.series[name]).map((run) => run.axes[run.series[name].axis].step);
  if (steps.length < 2) return null;
  const others = steps.slice(1).map((list) => new Set(list));
  const common = steps[0].filter((step) => others.every((set) => set.has(step)));
  return common.length > 0 ? common[common.length - 1] : Math.min(...steps.map((list) => list[list.length - 1]));
}

const signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + number(Math.abs(value));

// A cell of a loss, and how far it is from that of the first run.
function againstFirst(run, name, step) {
  const own = valueAt(run, name, step), first = valueAt(runs[0], name, step);
  return own === null ? DASH : [number(own) + (run === runs[0] || first === null ? "" : " (" + signed(own - first) + ")"), {sort: own}];
}

function dataSetsOf(run) {
  return run.config.filter(([key]) => /^data\.sources\[\d+\]\.path$/.test(key)).map(([, value]) => value.replace(/^.*\/(?=.)/, "")).join(", ");
}

// What one wants to know first: [over what, name, cell]; the same names for every run.
const SPANS = {run: "Whole run", last: "Last interval", what: "Model and data"};
function factsOf(run) {
  const report = run.report, starts = report.starts, best = leastOf(run, "validation/loss");
  const last = (name) => lastOf(run, name);
  const cell = (format, value) => isKnown(value) ? [format(value), {sort: value}] : DASH;
  const common = ["loss/avg", "validation/loss"].map((name) => [name, compares ? lastCommonStep(name) : null]);
  const bits = Object.keys(run.series).find((name) => /^validation\/.*bits_per_byte$/.test(name));
  return [
    ...common.filter(([, step]) => step !== null).map(([name, step]) => ["run",
      (name === "loss/avg" ? "loss at step " : "validation loss at step ") + whole(step), againstFirst(run, name, step)]),
    ["run", "step", [whole(report.step) + (report.total_steps <= 0 ? "" : (report.step <= report.total_steps ? " of " : ", beyond its ") +
      whole(report.total_steps)), {sort: report.step}]],
    ["run", "tokens", cell(count, report.tokens)],
    ["run", "best validation loss", best ? [number(best.value) + " at step " + whole(best.step), {sort: best.value}] : DASH],
    ["run", "best perplexity", cell(number, best ? Math.exp(best.value) : null)],
    ["run", "best bits per byte", cell(number, bits ? leastOf(run, bits).value : null)],
    ["run", "training tokens/s", cell(count, report.productive_tokens_per_second)],
    ["run", "goodput, tokens/s", cell(count, report.goodput_tokens_per_second)],
    ["run", "wall clock", cell(duration, report.wall_clock)],
    ["run", "ETTR", cell(percent, report.ettr)],
    ["run", "starts", cell(whole, starts.length)],
    ["run", "steps lost", cell(whole, report.lost_steps)],
    ["run", "saves", [whole(report.saves.committed) + (report.saves.refused > 0 ? ", refused " + report.saves.refused : ""),
                      {sort: report.saves.committed}]],
    ["last", "loss", cell(number, last("loss/avg"))],
    ["last", "validation loss", cell(number, last("validation/loss"))],
    ["last", "tokens/s", cell(count, last("throughput/tokens_per_sec"))],
    ["last", "mfu_full", cell(percent, last("throughput/mfu_full"))],
    ["what", "parameters", run.parameters > 0 ? cell(count, run.parameters) : DASH],
    ["what", "tokens per parameter", run.parameters > 0 ? cell((value) => number(value, 3), report.tokens / run.parameters) : DASH],
    ["what", "data set", dataSetsOf(run) || DASH],
    ["what", "ranks", starts[starts.length - 1].ranks > 0 ? cell(whole, starts[starts.length - 1].ranks) : DASH],
    ["what", "device", run.machine.device || DASH],
  ];
}

const textOf = (cell) => Array.isArray(cell) ? cell[0] : cell;
const nameOf = ([span, name]) => span === "last" ? name + ", last interval" : name;

// More runs than two are rows to sort, with the keys that differ and what one ranks runs by, as far as they differ.
const RANKED_BY = /^(loss at|validation loss at|best|step$|tokens$|training tokens|wall clock|ETTR|steps lost|parameters|data set|ranks|device)/;
function runsTable(known) {
  const keys = differingKeys().filter(([key]) => !["run.name", "run.output_dir"].includes(key)).slice(0, 8);
  const telling = known.filter(([span, name, ...cells]) => span !== "last" && RANKED_BY.test(name) && cells.some((cell) => textOf(cell) !== textOf(cells[0])));
  const columns = [{title: "run", name: " "}, ...keys.map(([key]) => ({title: keyText(key), name: key, class: NUMBER})),
                   ...telling.map((fact) => ({title: nameOf(fact), class: NUMBER}))];
  return table("The runs; a click on a heading sorts them", columns, runs.map((run, i) => [
    [runTitle(run), {sort: run.name}], ...keys.map(([, entry]) => entry.values[i] === null ? DASH : entry.values[i]),
    ...telling.map(([, , ...cells]) => cells[i])]), {stacks: true, sorts: true});
}

function overview() {
  const facts = runs.map(factsOf);
  const known = facts[0].map(([span, name], i) => [span, name, ...facts.map((one) => one[i][2])])
    .filter(([, , ...cells]) => cells.some((cell) => textOf(cell) !== DASH));
  const tiles = Object.entries(SPANS).flatMap(([span, title]) => {
    const own = known.filter(([of]) => of === span);
    return own.length === 0 ? [] : [element("h3", {}, title), element("dl", {class: "tiles"}, ...own.map(([, name, cell]) =>
      element("div", {}, element("dt", {}, name), element("dd", {class: textOf(cell).length > 16 ? "words" : ""}, textOf(cell)))))];
  });
  section("overview", "Overview", ...(!compares ? tiles : runs.length > 2 ? [runsTable(known)]
    : [table("The runs; in parentheses the difference from the first", [{title: "what", class: TEXT, name: " "},
        ...runs.map((run) => ({title: runTitle(run), name: run.name, class: NUMBER}))],
        known.map(([span, name, ...cells]) => [nameOf([span, name]), ...cells]), {stacks: true})]));
}
