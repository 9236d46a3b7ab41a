// The page: which charts there are, and the sections in their order. A section whose data no run has is left out.
const share = (value) => percent(value);

// Why a run's MFU is above 100 %, or "".
const BUSY = "the machine was busy when its peak was measured";
function aboveWhy(run) {
  const isAbove = (name) => run.series[name] && (run.series[name].high || run.series[name].mean).some((value) => value > 1);
  return isAbove("throughput/mfu_done") ? BUSY
    : isAbove("throughput/mfu_full") ? "mfu_full counts attention that is not computed" : "";
}

// Series of a group are drawn together; a name of a series is in one group only.
const GROUPS = [
  {section: "training", charts: [
    {id: "loss", title: "Loss", format: number, series: {"loss/avg": "training", "validation/loss": "validation"}},
    {id: "lr", title: "Learning rate", format: number, series: {"optim/lr": "learning rate"}},
    {id: "grad-norm", title: "Gradient norm", format: number, log: true,
     series: {"optim/grad_norm": "gradient norm, before clipping"}},
    {id: "z-loss", title: "z-loss", format: number, unlessZero: true, series: {"loss/z": "z-loss"}},
    {id: "skipped", title: "Skipped steps", format: number, zero: true, unlessZero: true,
     note: "Steps of an interval whose gradients were not finite; they changed no weights.",
     series: {"optim/skipped_steps": "skipped steps"}},
  ]},
  {section: "speed", charts: [
    {id: "throughput", title: "Throughput", format: count, zero: true,
     note: "Tokens per second while training; validations and saves are left out.",
     series: {"throughput/tokens_per_sec": "tokens/s"}},
    {id: "mfu", title: "MFU", format: share, zero: true,
     warn: () => runs.filter(aboveWhy).map((run) => labelled(run, "above 100 %: " + aboveWhy(run))).join("; "),
     note: "Of the device's dense peak; of a CPU's fastest GEMM that a start of the run has measured or traced. full counts attention to every token, causal half of it, done what documents " +
           "left of it.",
     series: {"throughput/mfu_full": "mfu_full", "throughput/mfu_causal": "mfu_causal",
              "throughput/mfu_done": "mfu_done"}},
    {id: "data-wait", title: "Waiting for data", format: duration, zero: true,
     note: "Seconds of an interval between two records.", series: {"time/interval": "interval", "time/data": "of it waiting for data"}},
    {id: "memory", title: "Memory", format: bytes, zero: true, series: {"memory/used": "used"}, levels: (run) => [
      [run.memory.planned, "planned"], [run.memory.committed, "committed"]]},
    {id: "save-stall", title: "Saves", format: duration, zero: true,
     note: "Training waited for the stall only.",
     series: {"checkpoint/stall": "stall", "checkpoint/seconds": "writing"}},
  ]},
];

// In a chart of the group above in another form, or of no interest by itself.
const NOT_DRAWN = ["loss/last", "validation/perplexity", "time/validation", "time/evals", "time/samples",
                   "checkpoint/bytes", "checkpoint/copy", "time/tensor_statistics"];

const labelled = (run, label) => compares ? run.name + ": " + label : label;
const isZero = (line) => line.high.every((value) => value === 0) && line.low.every((value) => value === 0);

function linesOf(spec) {
  const lines = [];
  for (const run of runs) {
    const own = Object.entries(spec.series).map(([name, label]) => lineOf(run, name, labelled(run, label)))
      .filter(Boolean);
    lines.push(...own);
    if (own.length > 0 && spec.levels) {
      const levels = spec.levels(run).filter(([value]) => value > 0);
      lines.push(...levels.map(([value, label]) => levelOf(own[0], value, labelled(run, label))));
    }
  }
  return spec.unlessZero && lines.every(isZero) ? [] : lines;
}

function chartsOf(specs) {
  const drawn = specs.map((spec) => [spec, linesOf(spec)]).filter(([, lines]) => lines.length > 0);
  return drawn.length === 0 ? null
    : element("div", {class: "charts"}, ...drawn.map(([spec, lines]) => makeChart(spec, lines)));
}

// Specs for the series with this prefix, a chart for each name up to the last slash.
function specsOfPrefix(prefix, idPrefix) {
  const specs = new Map();
  const known = new Set([...NOT_DRAWN, ...GROUPS.flatMap((group) => group.charts.flatMap((c) => Object.keys(c.series)))]);
  for (const name of new Set(runs.flatMap((run) => Object.keys(run.series)))) {
    if (!name.startsWith(prefix) || known.has(name)) continue;
    const cut = name.lastIndexOf("/");
    const title = name.slice(prefix.length, Math.max(cut, prefix.length)) || "Others";
    if (!specs.has(title)) {
      specs.set(title, {id: idPrefix + specs.size, title, format: number, series: {}});
    }
    specs.get(title).series[name] = name.slice(cut + 1);
  }
  return [...specs.values()];
}

const lastOf = (run, name) => {
  const series = run.series[name];
  return series ? series.mean[series.mean.length - 1] : null;
};

// [name, value] of what one wants to know first; the same names for every run.
function factsOf(run) {
  const report = run.report;
  return [
    ["step", whole(report.step) + (report.total_steps > 0 ? " of " + whole(report.total_steps) : "")],
    ["tokens", count(report.tokens)],
    ["loss", number(lastOf(run, "loss/avg"))],
    ["validation loss", number(lastOf(run, "validation/loss"))],
    ["tokens/s", count(lastOf(run, "throughput/tokens_per_sec"))],
    ["mfu_full", percent(lastOf(run, "throughput/mfu_full")) +
      (lastOf(run, "throughput/mfu_full") > 1 ? ": " + aboveWhy(run) : "")],
    ["wall clock", duration(report.wall_clock)],
    ["ETTR", percent(report.ettr)],
    ["goodput, tokens/s", count(report.goodput_tokens_per_second)],
    ["starts", whole(report.starts.length)],
    ["steps lost", whole(report.lost_steps)],
    ["device", run.machine.device || DASH],
    ["saves", whole(report.saves.committed) + (report.saves.refused > 0 ? ", refused " + report.saves.refused : "")],
  ];
}

function overview() {
  const facts = runs.map(factsOf);
  const known = facts[0].map(([name], i) => [name, ...facts.map((one) => one[i][1])])
    .filter(([, ...values]) => values.some((value) => value !== DASH));
  section("overview", "Overview", compares
    ? table("The runs as they stand", [{title: "what", class: TEXT}, ...runs.map((run) => ({title: run.name, class: NUMBER}))],
            known)
    : element("dl", {class: "tiles"}, ...known.map(([name, value]) =>
        element("div", {}, element("dt", {}, name), element("dd", {class: value.length > 16 ? "words" : ""}, value)))));
}

// Of each run's last trace: which operation took how long, and how fast it was.
function operationsSection() {
  const traced = runs.filter((run) => run.traces.length > 0);
  if (traced.length === 0) return;
  const rate = (amount, seconds, unit) => amount > 0 && seconds > 0 ? scaled(amount / seconds, 1000,
    ["", "K", "M", "G", "T", "P"].map((prefix) => " " + prefix + unit)) : DASH;
  // The least time that the device can take for what an operation computes and moves.
  const floor = (one, machine) => Math.max(machine.flops > 0 ? one.flops / machine.flops : 0,
                                           machine.memory_rate > 0 ? one.bytes / machine.memory_rate : 0);
  const tables = traced.map((run) => {
    const trace = run.traces[run.traces.length - 1];
    const rows = trace.operations.map((one) => {
      const part = one.seconds / trace.seconds, least = one.exchanged > 0 ? 0 : floor(one, run.machine), reached = least / one.seconds;
      return [one.name, one.stream, number(one.calls / trace.steps), duration(one.seconds / trace.steps),
              [percent(part), {style: "--share: " + (100 * part).toFixed(2) + "%"}],
              least > 0 ? duration(least / trace.steps) : DASH,
              least > 0 ? [percent(reached) + (reached > 1 ? " *" : ""), {style: "--share: " + (100 * Math.min(1, reached)).toFixed(2) + "%"}] : DASH,
              rate(one.flops, one.seconds, "FLOP/s"), rate(one.bytes, one.seconds, "B/s"),
              one.flops > 0 && one.bytes > 0 ? number(one.flops / one.bytes, 3) : DASH,
              rate(one.exchanged, one.seconds, "B/s")];
    });
    return table(labelled(run, trace.file + ": " + whole(trace.steps) + (trace.steps === 1 ? " step of " : " steps of ") +
                          duration(trace.seconds / trace.steps) + " on rank 0"),
      [{title: "operation", class: TEXT}, {title: "stream"}, {title: "calls a step", class: NUMBER},
       {title: "time a step", class: NUMBER}, {title: "share", class: "share"}, {title: "roofline", class: NUMBER},
       {title: "of roofline", class: "share"}, {title: "computes", class: NUMBER},
       {title: "moves", class: NUMBER}, {title: "FLOP per byte", class: NUMBER}, {title: "exchanges", class: NUMBER}], rows);
  });
  section("operations", "A step by operation", element("p", {class: "note"},
    "Of the steps of metrics.trace. Streams run at the same time, so shares may add up to more than 100 %. An operation " +
    "with few FLOP per byte is bound by memory; one with many, by arithmetic. The roofline is the least time that the " +
    "device can take for what an operation computes, or moves. * Above 100 % of it, a cache had what the operation read, or " +
    BUSY + "."),
    ...traced.filter((run) => run.machine.flops > 0).map((run) => element("p", {class: "note"}, labelled(run, run.machine.device) + ": " +
      rate(run.machine.flops, 1, "FLOP/s") + (run.machine.memory_rate > 0 ? ", " + rate(run.machine.memory_rate, 1, "B/s") : "") + " a rank.")),
    ...tables);
}

// What the model made of each prompt, the newest first: a table for each prompt.
function samplesSection() {
  const prompts = new Map();
  for (const run of runs) {
    for (const record of [...run.samples].reverse()) {
      const times = new Map();  // that a prompt came before in this record
      for (const [prompt, text] of record.texts) {
        times.set(prompt, (times.get(prompt) || 0) + 1);
        const key = times.get(prompt) + " " + prompt;
        if (!prompts.has(key)) prompts.set(key, {prompt, rows: []});
        prompts.get(key).rows.push({run, step: record.step, text});
      }
    }
  }
  if (prompts.size === 0) return;
  const tables = [...prompts.values()].map(({prompt, rows}, i) => {
    const ordered = rows.map((row, at) => [row, at]).sort(([a, i], [b, j]) => b.step - a.step || i - j).map(([row]) => row);
    return table("Prompt " + (i + 1) + ": " + (prompt.length > 80 ? prompt.slice(0, 80) + "…" : prompt),
      [...runColumn, {title: "step", class: NUMBER}, {title: "text", class: TEXT}],
      ordered.map(({run, step, text}) => [...runCell(run), whole(step),
        element("span", {class: "samples"}, element("span", {class: "faint"}, prompt), text)]));
  });
  const leftOut = runs.reduce((sum, run) => sum + run.samples_left_out, 0);
  section("samples", "Samples", element("p", {class: "note"}, "What the model made of the prompts of training.samples, " +
    "the newest first, with the same random numbers each time." +
    (leftOut > 0 ? " " + whole(leftOut) + " more, evenly between these, are in metrics.jsonl." : "")), ...tables);
}

const SPENT = {
  productive: "training of steps that count", lost: "training of steps that were trained again",
  startup: "startup, from exec to the first step", down: "down, from the last sign of life to the next exec",
  saves: "training waited for a save", validation: "validation", evals: "evaluations",
  samples: "samples of text",
  hang: "hangs, until the watchdog ended them", other: "what no record explains",
};

function timeTable() {
  const columns = [{title: "what", class: TEXT}, ...runs.flatMap((run) => [
    {title: labelled(run, "time"), class: NUMBER}, {title: labelled(run, "share"), class: "share"}])];
  const rows = Object.keys(SPENT).filter((kind) => runs.some((run) => run.report.seconds[kind] > 0)).map((kind) => [
    SPENT[kind], ...runs.flatMap((run) => {
      const part = run.report.seconds[kind] / Math.max(run.report.wall_clock, 1e-3);
      return [duration(run.report.seconds[kind]), [percent(part), {style: "--share: " + (100 * part).toFixed(2) + "%"}]];
    })]);
  return table("Where the wall clock went", columns, rows);
}

// In front of the rows of several runs stands whose they are.
const runColumn = compares ? [{title: "run"}] : [];
const runCell = (run) => compares ? [run.name] : [];

function startsTable() {
  const rows = runs.flatMap((run) => run.report.starts.map((start, i) => [
    ...runCell(run), String(i + 1), clock(start.exec),
    [start.end + (start.cause ? ": " + start.cause : ""),
     {class: ["failed", "hung", "killed"].includes(start.end) ? "warn" : ""}],
    start.first_step_began ? whole(start.first_step) : DASH, start.first_step_began ? whole(start.last_step) : DASH,
    whole(start.lost_steps), duration(start.wall_clock), duration(start.seconds.productive),
    duration(start.seconds.startup), duration(start.restart)]));
  return table("Starts, and why each ended", [...runColumn, {title: "start", class: NUMBER}, {title: "began (UTC)"},
    {title: "end", class: TEXT}, {title: "from step", class: NUMBER}, {title: "to step", class: NUMBER},
    {title: "lost steps", class: NUMBER}, {title: "wall clock", class: NUMBER}, {title: "productive", class: NUMBER},
    {title: "startup", class: NUMBER}, {title: "restart took", class: NUMBER}], rows);
}

function startupTable() {
  const phases = [...new Set(runs.flatMap((run) => run.report.starts.flatMap((start) => Object.keys(start.startup))))];
  if (phases.length === 0) return null;
  const rows = runs.flatMap((run) => run.report.starts.map((start, i) => [start, i])
    .filter(([start]) => Object.keys(start.startup).length > 0)
    .map(([start, i]) => [...runCell(run), String(i + 1), ...phases.map((phase) => duration(start.startup[phase]))]));
  return table("Startup by phase", [...runColumn, {title: "start", class: NUMBER},
    ...phases.map((phase) => ({title: phase, class: NUMBER}))], rows);
}

function timeSection() {
  const suspects = runs.flatMap((run) => run.report.suspects);
  section("time", "Time and restarts",
    element("p", {class: "note"}, "Every millisecond from the first process to the last sign of life is in one row. " +
      "ETTR is the productive share; goodput is tokens per second of all of it. In the charts, a dashed upright line " +
      "is a restart."),
    timeTable(), startsTable(), startupTable(),
    suspects.length === 0 ? null : element("p", {class: "warn"}, "Suspected hosts: " + suspects.join(", ")));
}

function eventsSection() {
  const silent = ["start", "resume", "end"];
  const rows = runs.flatMap((run) => run.events.filter((event) => !silent.includes(event.name)).map((event) => [
    ...runCell(run), String(event.start + 1), whole(event.step), clock(event.time), event.name,
    event.detail, Object.entries(event.values).map(([name, value]) =>
      name + " " + (typeof value === "number" ? number(value) : value)).join(", ")]));
  const leftOut = runs.reduce((sum, run) => sum + run.events_left_out, 0);
  section("events", "Anomalies and decisions",
    rows.length === 0 ? element("p", {}, "None was recorded: no refused save, straggler, corruption or stop.")
      : table("Events", [...runColumn, {title: "start", class: NUMBER}, {title: "step", class: NUMBER},
          {title: "time (UTC)"}, {title: "event"}, {title: "detail", class: TEXT}, {title: "values", class: TEXT}], rows),
    leftOut > 0 ? element("p", {class: "note"}, whole(leftOut) + " older events are in metrics.jsonl.") : null);
}

// A row for each key; what differs from the default, or between runs, is bold and says so.
function configSection() {
  if (runs.every((run) => run.config.length === 0)) return;
  const entries = new Map();
  runs.forEach((run, i) => run.config.forEach(([key, value, standard]) => {
    if (!entries.has(key)) entries.set(key, {standard, values: runs.map(() => null)});
    entries.get(key).values[i] = value;
  }));
  const holder = element("div");
  const draw = (choose) => {
    const rows = [...entries].filter(([, entry]) => choose(entry)).map(([key, entry]) => [
      key, ...entry.values.map((value) => value === null ? DASH
        : value === entry.standard ? value : [value, {class: "differs"}]), entry.standard || DASH]);
    holder.replaceChildren(table("Config, " + whole(rows.length) + " of " + whole(entries.size) +
      " keys; bold is not the default", [{title: "key", class: "key"},
      ...runs.map((run) => ({title: compares ? run.name : "value", class: TEXT})), {title: "default", class: TEXT}], rows));
  };
  const custom = (entry) => entry.values.some((value) => value !== null && value !== entry.standard);
  const differs = (entry) => entry.values.some((value) => value !== entry.values[0]);
  const choices = {...(compares ? {"keys that differ between the runs": differs} : {}),
                   "keys that differ from the default": custom, "all keys": () => true};
  const choice = element("select", {change: (event) => draw(choices[event.target.value])},
    ...Object.keys(choices).map((name) => element("option", {value: name}, name)));
  draw(Object.values(choices)[0]);
  section("config", "Config", element("p", {}, element("label", {}, "Show ", choice)), holder);
}

// What the records of a start say of where it ran.
function environmentSection() {
  const rows = runs.flatMap((run) => run.events.filter((event) => event.name === "start").map((event) => {
    const {exec, ranks, hosts, program, system, ...others} = event.values;
    return [...runCell(run), String(event.start + 1), whole(ranks), hosts || DASH, program || DASH, system || DASH,
            Object.entries(others).map(([name, value]) => name + " " + value).join(", ")];
  }));
  const directories = runs.map((run) => run.report.run).join(", ");
  section("environment", "Environment", element("p", {class: "note"}, "Read from " + directories + "."),
    rows.length === 0 ? null : table("Where each start ran", [...runColumn, {title: "start", class: NUMBER},
      {title: "ranks", class: NUMBER}, {title: "hosts", class: TEXT}, {title: "program", class: TEXT}, {title: "system", class: TEXT}, {title: "job and incarnation", class: TEXT}], rows));
}

function chartSection(id, title, specs) {
  const drawn = chartsOf(specs);
  if (drawn) section(id, title, drawn);
}

function build() {
  const first = runs[0].report;
  const last = first.starts[first.starts.length - 1];
  document.getElementById("title").textContent = runs.map((run) => run.name).join(", ");
  document.getElementById("subtitle").textContent = compares ? whole(runs.length) + " runs compared"
    : clock(first.starts[0].exec) + " to " + clock(last.last_sign_of_life) + " UTC; " +
      last.end + (last.cause ? ": " + last.cause : "");
  document.getElementById("made-by").textContent = "Made by " + data.program + ".";
  overview();
  document.getElementById("main").append(controls());
  chartSection("training", "Training", GROUPS[0].charts);
  chartSection("speed", "Speed and memory", GROUPS[1].charts);
  operationsSection();
  heatSection();
  chartSection("evals", "Evaluations", specsOfPrefix("evals/", "evals-"));
  samplesSection();
  chartSection("others", "Other values", specsOfPrefix("", "others-").filter((spec) => !spec.title.startsWith("evals")));
  timeSection();
  eventsSection();
  configSection();
  environmentSection();
  drawAll();
  drawHeats();
}

build();
