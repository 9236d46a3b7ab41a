// The page: which charts there are, and the sections in their order. A section is left out where no run has data for it.

// The value of a key of the resolved config, or "".
function configOf(run, key) {
  const entry = run.config.find(([name]) => name === key);
  return entry ? entry[1] : "";
}

// Series of a group are drawn together; a name of a series is in one group only.
const GROUPS = [
  {section: "training", charts: [
    {id: "loss", title: "Loss", format: number, series: {"loss/avg": "training", "validation/loss": "validation"}},
    {id: "bits-per-byte", title: "Bits per byte", format: number, note: "Of the validation sets; it compares models whose " +
      "tokenizers differ.", series: {"validation/bits_per_byte": "validation"}},
    {id: "lr", title: "Learning rate", format: number, series: {"optim/lr": "learning rate"}},
    {id: "grad-norm", title: "Gradient norm", format: number, log: true,
     note: "Before clipping.", shared: true, series: {"optim/grad_norm": "gradient norm"},
     levels: (run) => [[Number(configOf(run, "training.max_grad_norm")), "clipped to"]]},
    {id: "z-loss", title: "z-loss", format: number, unlessZero: true, series: {"loss/z": "z-loss"}},
    {id: "skipped", title: "Skipped steps", format: number, zero: true, unlessZero: true,
     note: "Steps of an interval whose gradients were not finite. They changed no weights.",
     series: {"optim/skipped_steps": "skipped steps"}},
  ]},
  {section: "speed", charts: [
    {id: "throughput", title: "Throughput", format: count, zero: true,
     note: "Tokens per second of training, without validations and saves.",
     series: {"throughput/tokens_per_sec": "tokens/s"}},
    {id: "mfu", title: "MFU", format: percent, tick: percentTick, zero: true,
     note: "Share of the device's dense peak. full counts all of attention, causal half of it, done only what document masking leaves.",
     series: {"throughput/mfu_full": "mfu_full", "throughput/mfu_causal": "mfu_causal",
              "throughput/mfu_done": "mfu_done"}},
    {id: "data-wait", title: "Waiting for data", format: duration, tick: durationTick, zero: true,
     note: "The time between two records, and how much of it training waited for data.",
     series: {"time/interval": "interval", "time/data": "waiting for data"}},
    {id: "memory", title: "Memory", format: bytes, zero: true, series: {"memory/used": "used"}, levels: (run) => [
      [run.memory.planned, "planned"], [run.memory.committed, "committed"]]},
    {id: "save-stall", title: "Saves", format: duration, tick: durationTick, zero: true,
     note: "Training waits for the stall only; the rest is written while it goes on.",
     series: {"checkpoint/stall": "stall", "checkpoint/seconds": "writing"}},
  ]},
];

// Shown in another form above, or of no interest by itself.
const NOT_DRAWN = ["loss/last", "validation/perplexity", "time/validation", "time/evals", "time/samples",
                   "checkpoint/bytes", "checkpoint/copy", "time/tensor_statistics"];

const isZero = (line) => line.high.every((value) => value === 0) && line.low.every((value) => value === 0);

function linesOf(spec) {
  const lines = [];
  for (const run of runs) {
    const own = Object.entries(spec.series).map(([name, label]) => lineOf(run, name, labelled(run, label)))
      .filter(Boolean);
    lines.push(...own);
    if (own.length > 0 && spec.levels) {
      const isShared = spec.shared && runs.every((other) => String(spec.levels(other)) === String(spec.levels(run)));
      const levels = isShared && run !== runs[0] ? [] : spec.levels(run).filter(([value]) => value > 0);
      lines.push(...levels.map(([value, label]) => levelOf(own[0], value, isShared ? label : labelled(run, label))));
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
      [{title: "operation", class: "name"}, {title: "stream"}, {title: "calls a step", class: NUMBER},
       {title: "time a step", class: NUMBER}, {title: "share", class: "share"}, {title: "roofline", class: NUMBER},
       {title: "of roofline", class: "share"}, {title: "computes", class: NUMBER},
       {title: "moves", class: NUMBER}, {title: "FLOP per byte", class: NUMBER}, {title: "exchanges", class: NUMBER}], rows);
  });
  section("operations", "A step by operation", element("p", {class: "note"},
    "These are the steps of metrics.trace. Streams run at the same time, so shares may add up to more than 100 %. An " +
    "operation with few FLOP per byte is bound by memory, one with many by arithmetic. The roofline is the least time in " +
    "which the device could compute, or move, as much. * Above 100 %, the operation's input was in a cache."),
    ...traced.filter((run) => run.machine.flops > 0).map((run) => element("p", {class: "note"}, labelled(run, run.machine.device) + ": " +
      rate(run.machine.flops, 1, "FLOP/s") + (run.machine.memory_rate > 0 ? ", " + rate(run.machine.memory_rate, 1, "B/s") : "") + " a rank.")),
    ...tables);
}

// How the model continued each prompt, the newest text first: a table for each prompt.
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
  section("samples", "Samples", element("p", {class: "note"}, "How the model continued the prompts of training.samples, " +
    "the newest text first. Each time it had the same random numbers." +
    (leftOut > 0 ? " metrics.jsonl has " + whole(leftOut) + " more, evenly between these." : "")), ...tables);
}

const SPENT = {
  productive: "training, steps that were kept", lost: "training, steps that were trained again",
  startup: "startup, from exec to the first step", down: "down, from the last sign of life to the next exec",
  saves: "waiting for a save", validation: "validation", evals: "evaluations",
  samples: "samples of text",
  hang: "hangs, until the watchdog ended them", other: "other, not explained by any record",
};

function timeTable() {
  const columns = [{title: "what", class: TEXT, name: " "}, ...runs.flatMap((run) => [
    {title: labelled(run, "time"), class: NUMBER}, {title: labelled(run, "share"), class: "share"}])];
  const rows = Object.keys(SPENT).filter((kind) => runs.some((run) => run.report.seconds[kind] > 0)).map((kind) => [
    SPENT[kind], ...runs.flatMap((run) => {
      const part = run.report.seconds[kind] / Math.max(run.report.wall_clock, 1e-3);
      return [duration(run.report.seconds[kind]), [percent(part), {style: "--share: " + (100 * part).toFixed(2) + "%"}]];
    })]);
  return table("Where the wall clock went", columns, rows, {stacks: compares});
}

// Of several runs, each row begins with its run.
const runColumn = compares ? [{title: "run", name: " "}] : [];
const runCell = (run) => compares ? [runTitle(run)] : [];

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
    {title: "startup", class: NUMBER}, {title: "restart took", class: NUMBER}], rows, {stacks: true});
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
    element("p", {class: "note"}, "Each millisecond from the first process to the last sign of life is in one row. " +
      "ETTR is the share of productive time. Goodput is tokens per second of wall clock. In the charts, a dashed upright " +
      "line is a restart" + (compares ? "." : ", with the number of the start; a star means that it changed the config.")),
    timeTable(), startsTable(), startupTable(),
    suspects.length === 0 ? null : element("p", {class: "warn"}, "Suspected hosts: " + suspects.join(", ")));
}

function eventsSection() {
  const isShown = (event) => !["start", "end"].includes(event.name) && (event.name !== "resume" || event.values.changed);
  const valuesOf = (event) => Object.entries(event.values).filter(([name]) => name !== "changed").map(([name, value]) =>
    name + " " + (typeof value === "number" ? number(value) : value)).join(", ");
  const rows = runs.flatMap((run) => run.events.filter(isShown).map((event) => [
    ...runCell(run), String(event.start + 1), whole(event.step), clock(event.time),
    event.values.changed ? "changed config" : event.name, event.values.changed || event.detail, valuesOf(event)]));
  const leftOut = runs.reduce((sum, run) => sum + run.events_left_out, 0);
  section("events", "Anomalies and decisions",
    rows.length === 0 ? element("p", {}, "None was recorded: no refused save, straggler, corruption, stop or changed key.")
      : table("Events", [...runColumn, {title: "start", class: NUMBER}, {title: "step", class: NUMBER},
          {title: "time (UTC)"}, {title: "event"}, {title: "detail", class: TEXT}, {title: "values", class: TEXT}], rows, {stacks: true}),
    leftOut > 0 ? element("p", {class: "note"}, "metrics.jsonl has " + whole(leftOut) + " older events.") : null);
}

// [key, {standard, values of the runs}] of all keys.
function configEntries() {
  const entries = new Map();
  runs.forEach((run, i) => run.config.forEach(([key, value, standard]) => {
    if (!entries.has(key)) entries.set(key, {standard, values: runs.map(() => null)});
    entries.get(key).values[i] = value;
  }));
  return [...entries];
}
const differs = (entry) => entry.values.some((value) => value !== entry.values[0]);
const isCustom = (entry) => entry.values.some((value) => value !== null && value !== entry.standard);
const differingKeys = () => configEntries().filter(([, entry]) => differs(entry));

// A row for each key. Bold are those that stand out among the chosen ones: keys that differ between the runs, or else from
// the default; never all of them.
function configSection() {
  if (runs.every((run) => run.config.length === 0)) return;
  const entries = configEntries(), holder = element("div");
  const draw = (choose, isBold, bold) => {
    const chosen = entries.filter(([, entry]) => choose(entry));
    const rows = chosen.map(([key, entry]) => [keyText(key), ...entry.values.map((value) => value === null ? DASH
      : isBold(entry) ? [value, {class: "differs"}] : value), entry.standard || DASH]);
    const isAny = chosen.some(([, entry]) => isBold(entry));
    holder.replaceChildren(table("Config, " + whole(rows.length) + " of " + whole(entries.length) + " keys" +
      (isAny ? "; bold " + bold : ""), [{title: "key", class: "key", name: " "},
      ...runs.map((run) => ({title: compares ? runTitle(run) : "value", name: compares ? run.name : "value", class: TEXT})),
      {title: "default", class: TEXT}], rows, {stacks: true}));
  };
  const never = () => false;
  const choices = {...(compares ? {"keys that differ between the runs": [differs, never, ""]} : {}),
                   "keys that differ from the default": compares ? [isCustom, differs, "differs between the runs"] : [isCustom, never, ""],
                   "all keys": compares ? [() => true, differs, "differs between the runs"] : [() => true, isCustom, "is not the default"]};
  const choice = element("select", {change: (event) => draw(...choices[event.target.value])},
    ...Object.keys(choices).map((name) => element("option", {value: name}, name)));
  draw(...Object.values(choices)[0]);
  const changes = runs.flatMap((run) => run.report.starts.map((start, i) => start.changed &&
    labelled(run, "start " + (i + 1) + " changed " + start.changed)).filter(Boolean));
  section("config", "Config", changes.length === 0 ? null : element("p", {class: "note"},
    "This is the config of the last start; " + changes.join("; ") + "."),
    element("p", {class: "choice"}, element("label", {}, "Show ", choice)), holder);
}

// What the records of a start say of where it ran.
function environmentSection() {
  const rows = runs.flatMap((run) => run.events.filter((event) => event.name === "start").map((event) => {
    const {exec, ranks, hosts, program, command, system, ...others} = event.values;
    return [...runCell(run), String(event.start + 1), whole(ranks), hosts || DASH, program || DASH, command || DASH, system || DASH,
            Object.entries(others).map(([name, value]) => name + " " + value).join(", ")];
  }));
  const directories = runs.map((run) => run.report.run).join(", ");
  section("environment", "Environment", element("p", {class: "note"}, "The page was made from " + directories + "."),
    rows.length === 0 ? null : table("Where each start ran", [...runColumn, {title: "start", class: NUMBER},
      {title: "ranks", class: NUMBER}, {title: "hosts", class: TEXT}, {title: "program", class: TEXT}, {title: "command", class: TEXT}, {title: "system", class: TEXT}, {title: "job and incarnation", class: TEXT}], rows, {stacks: true}));
}

function chartSection(id, title, specs) {
  const drawn = chartsOf(specs);
  if (drawn) section(id, title, drawn);
}

function build() {
  const first = runs[0].report;
  const last = first.starts[first.starts.length - 1];
  const directory = first.run.replace(/\/+$/, "").replace(/^.*\//, "");
  document.getElementById("title").replaceChildren(...(compares ? runs.map(runTitle) : [runs[0].name,
    ...(directory === runs[0].name ? [] : [element("span", {class: "directory"}, " in " + directory)])]));
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
