// The overview: the most wanted numbers of a run, and several runs against each other.
const lastOf = (run, name) => run.series[name] ? run.series[name].mean.at(-1) : null;

function leastOf(run, name) {
  const series = run.series[name];
  if (!series) return null;
  const low = series.low || series.mean, value = Math.min(...low);
  return {value, step: run.axes[series.axis].step[low.indexOf(value)]};
}

// The value of a series at a step, or at the last one before it.
function valueAt(run, name, step) {
  const series = run.series[name];
  const at = series ? run.axes[series.axis].step.findLastIndex((one) => one <= step) : -1;
  return at < 0 ? null : series.mean[at];
}

// The last step that all runs have recorded, or else the end of the shortest one.
function lastCommonStep(name) {
  const steps = runs.filter((run) => run.series[name]).map((run) => run.axes[run.series[name].axis].step);
  if (steps.length < 2) return null;
  const others = steps.slice(1).map((list) => new Set(list));
  const common = steps[0].findLast((step) => others.every((set) => set.has(step)));
  return common === undefined ? Math.min(...steps.map((list) => list.at(-1))) : common;
}

// [group, name, text]; the same names for every run.
const GROUP_TITLES = {run: "Whole run", last: "Last interval", what: "Model and data"};
function factsOf(run) {
  const report = run.report, starts = report.starts, best = leastOf(run, "validation/loss");
  const known = (format, value) => isKnown(value) ? format(value) : DASH;
  const common = (compares ? ["loss/avg", "validation/loss"] : []).map((name) => [name, lastCommonStep(name)])
    .filter(([, step]) => step !== null);
  const bits = leastOf(run, "validation/bits_per_byte");
  const sets = run.config.filter(([key]) => /^data\.sources\[\d+\]\.path$/.test(key));
  return [
    ...common.map(([name, step]) => ["run", (name === "loss/avg" ? "" : "validation ") + "loss at step " + whole(step),
                                     known(number, valueAt(run, name, step))]),
    ["run", "step", whole(report.step) + (report.total_steps <= 0 ? ""
      : (report.step <= report.total_steps ? " of " : ", beyond its ") + whole(report.total_steps))],
    ["run", "tokens", count(report.tokens)],
    ["run", "best validation loss", best ? number(best.value) + " at step " + whole(best.step) : DASH],
    ["run", "best perplexity", best ? number(Math.exp(best.value)) : DASH],
    ["run", "best bits per byte", bits ? number(bits.value) : DASH],
    ["run", "training tokens/s", count(report.productive_tokens_per_second)],
    ["run", "goodput, tokens/s", count(report.goodput_tokens_per_second)],
    ["run", "wall clock", duration(report.wall_clock)],
    ["run", "ETTR", percent(report.ettr)],
    ["run", "starts", whole(starts.length)],
    ["run", "steps lost", whole(report.lost_steps)],
    ["run", "saves", report.saves.committed + (report.saves.refused > 0 ? ", refused " + report.saves.refused : "")],
    ["last", "loss", known(number, lastOf(run, "loss/avg"))],
    ["last", "validation loss", known(number, lastOf(run, "validation/loss"))],
    ["last", "tokens/s", known(count, lastOf(run, "throughput/tokens_per_sec"))],
    ["last", "mfu_full", known(percent, lastOf(run, "throughput/mfu_full"))],
    ["what", "parameters", run.parameters > 0 ? count(run.parameters) : DASH],
    ["what", "data set", sets.map(([, value]) => value.replace(/^.*\/(?=.)/, "")).join(", ") || DASH],
    ["what", "ranks", starts.at(-1).ranks > 0 ? whole(starts.at(-1).ranks) : DASH],
    ["what", "device", run.device || DASH],
  ];
}

// Of several runs a row each: the keys of the config and the numbers that differ.
function runsTable(facts) {
  const keys = differingKeys().filter(([key]) => !["run.name", "run.output_dir"].includes(key)).slice(0, 8);
  const shown = facts[0].map(([group, name], i) => [group, name, facts.map((one) => one[i][2])])
    .filter(([group, , cells]) => group !== "last" && cells.some((cell) => cell !== cells[0]));
  const titles = [...keys.map(([key]) => key), ...shown.map(([, name]) => name)];
  return table("Values that differ between the runs",
    [...runColumn, ...titles.map((title) => ({title, class: NUMBER}))],
    runs.map((run, i) => [...runCell(run), ...keys.map(([, entry]) => entry.values[i] || DASH),
                          ...shown.map(([, , cells]) => cells[i])]));
}

function overview() {
  const facts = runs.map(factsOf);
  if (compares) return section("overview", "Overview", runsTable(facts));
  const tile = ([, name, text]) => element("div", {}, element("dt", {}, name),
    element("dd", {class: text.length > 16 ? "words" : ""}, text));
  const tiles = Object.entries(GROUP_TITLES).flatMap(([group, title]) => [element("h3", {}, title),
    element("dl", {class: "tiles"}, ...facts[0].filter(([of, , text]) => of === group && text !== DASH).map(tile))]);
  section("overview", "Overview", ...tiles);
}
