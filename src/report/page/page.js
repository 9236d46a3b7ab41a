// The page: its charts, and its sections in their order. Sections without data are left out.

const TRAINING = [
  {id: "loss", title: "Loss", format: number, series: {"loss/avg": "training", "validation/loss": "validation"}},
  {id: "bits-per-byte", title: "Bits per byte", format: number, series: {"validation/bits_per_byte": "validation"},
   note: "Of the validation sets. It compares models with different tokenizers."},
  {id: "lr", title: "Learning rate", format: number, series: {"optim/lr": "learning rate"}},
  {id: "grad-norm", title: "Gradient norm", format: number, log: true, note: "Before clipping.",
   series: {"optim/grad_norm": "gradient norm"},
   level: ({config}) => [Number(config.find(([key]) => key === "training.max_grad_norm")?.[1]), "clipped to"]},
  {id: "z-loss", title: "z-loss", format: number, unlessZero: true, series: {"loss/z": "z-loss"}},
  {id: "skipped", title: "Skipped steps", format: number, zero: true, unlessZero: true,
   note: "Steps of an interval whose gradients were not finite. They changed no weights.",
   series: {"optim/skipped_steps": "skipped steps"}},
];
const SPEED = [
  {id: "throughput", title: "Throughput", format: count, zero: true,
   note: "Tokens per second of training, without validations and saves.",
   series: {"throughput/tokens_per_sec": "tokens/s"}},
  {id: "mfu", title: "MFU", format: percent, tick: percentTick, zero: true,
   note: "Share of the device's dense peak. full counts all of attention, causal half of it, done the unmasked part.",
   series: {"throughput/mfu_full": "mfu_full", "throughput/mfu_causal": "mfu_causal",
            "throughput/mfu_done": "mfu_done"}},
  {id: "data-wait", title: "Waiting for data", format: duration, tick: durationTick, zero: true,
   note: "The time between two records, and how much of it training waited for data.",
   series: {"time/interval": "interval", "time/data": "waiting for data"}},
  {id: "memory", title: "Memory", format: bytes, zero: true, series: {"memory/used": "used"},
   level: (run) => [run.memory_planned, "planned"]},
  {id: "save-stall", title: "Saves", format: duration, tick: durationTick, zero: true,
   note: "Training waits for the stall only; the rest is written while it goes on.",
   series: {"checkpoint/stall": "stall", "checkpoint/seconds": "writing"}},
];

// Shown in another form above, or not useful alone.
const NOT_DRAWN = ["loss/last", "validation/perplexity", "time/validation", "time/evals", "time/samples",
                   "checkpoint/bytes", "checkpoint/copy", "time/tensor_statistics"];

function linesOf(spec) {
  const lines = runs.flatMap((run) => {
    const own = Object.entries(spec.series).map(([name, label]) => lineOf(run, name, labelled(run, label)))
      .filter(Boolean);
    const [value, label] = spec.level && own.length > 0 ? spec.level(run) : [0, ""];
    return value > 0 ? [...own, levelOf(own[0], value, labelled(run, label))] : own;
  });
  const isZero = (line) => line.high.every((value) => value === 0) && line.low.every((value) => value === 0);
  return spec.unlessZero && lines.every(isZero) ? [] : lines;
}

function chartSection(id, title, specs) {
  const drawn = specs.map((spec) => [spec, linesOf(spec)]).filter(([, lines]) => lines.length > 0);
  if (drawn.length === 0) return;
  section(id, title, element("div", {class: "charts"}, ...drawn.map(([spec, lines]) => makeChart(spec, lines))));
}

// A chart for each folder of the other series: {"evals/arc": [...]}.
function otherSpecs(isWanted) {
  const specs = new Map(), drawn = [...TRAINING, ...SPEED].flatMap((spec) => Object.keys(spec.series));
  const known = new Set([...NOT_DRAWN, ...drawn]);
  for (const name of new Set(runs.flatMap((run) => Object.keys(run.series)))) {
    if (known.has(name) || !isWanted(name)) continue;
    const title = name.slice(0, Math.max(0, name.lastIndexOf("/"))) || "Others";
    if (!specs.has(title)) specs.set(title, {id: title.replace(/\W/g, "-"), title, format: number, series: {}});
    specs.get(title).series[name] = name.slice(name.lastIndexOf("/") + 1);
  }
  return [...specs.values()];
}

function samplesSection() {
  const rows = runs.flatMap((run) => run.samples.flatMap(({step, texts}) =>
    texts.map(([prompt, text], i) => ({run, step, i, prompt, text}))));
  if (rows.length === 0) return;
  rows.sort((a, b) => b.step - a.step || a.i - b.i);
  const leftOut = runs.reduce((sum, run) => sum + run.samples_left_out, 0);
  section("samples", "Samples", note("The model's continuations of the prompts of training.samples, the newest first." +
    (leftOut > 0 ? " metrics.jsonl has " + whole(leftOut) + " older ones." : "")),
    table("Samples", [...runColumn, {title: "step", class: NUMBER}, {title: "text", class: TEXT}], rows.map((one) => [
      ...runCell(one.run), whole(one.step),
      element("span", {}, element("span", {class: "faint"}, one.prompt), one.text)])));
}

function timeSection() {
  const numbers = (...titles) => titles.map((title) => ({title, class: NUMBER}));
  const timeCells = (report, kind) => [duration(report.seconds[kind]),
                                       shareCell(report.seconds[kind] / Math.max(report.wall_clock, 1e-3))];
  const spent = Object.keys(data.spent).filter((kind) => runs.some((run) => run.report.seconds[kind] > 0))
    .map((kind) => [data.spent[kind], ...runs.flatMap((run) => timeCells(run.report, kind))]);
  const starts = runs.flatMap((run) => run.report.starts.map((start, i) =>
    ({start, first: [...runCell(run), String(i + 1)]})));
  const phases = [...new Set(starts.flatMap(({start}) => Object.keys(start.startup)))];
  const suspects = runs.flatMap((run) => run.report.suspects);
  section("time", "Time and restarts", note("Each millisecond from the first process to the last record is in one " +
    "row. ETTR is the share of productive time; goodput is tokens per second of wall clock. A dashed line in a chart " +
    "is a restart or the beginning of a stage."),
    table("Where the wall clock went", [{title: "what", class: TEXT}, ...runs.flatMap((run) => [
      {title: labelled(run, "time"), class: NUMBER}, {title: labelled(run, "share"), class: SHARE}])], spent),
    table("Starts, and why each ended", [...runColumn, ...numbers("start"), {title: "began (UTC)"},
      {title: "end", class: TEXT}, ...numbers("from step", "to step", "lost steps", "wall clock", "productive",
                                              "startup", "restart took")],
      starts.map(({start, first}) => [...first, clock(start.exec), [start.end + (start.cause ? ": " + start.cause : ""),
        {class: ["failed", "hung", "killed"].includes(start.end) ? "warn" : ""}],
        start.first_step_began ? whole(start.first_step) : DASH, start.first_step_began ? whole(start.last_step) : DASH,
        whole(start.lost_steps), duration(start.wall_clock), duration(start.seconds.productive),
        duration(start.seconds.startup), duration(start.restart)])),
    phases.length === 0 ? null : table("Startup by phase", [...runColumn, ...numbers("start", ...phases)],
      starts.map(({start, first}) => [...first, ...phases.map((phase) => duration(start.startup[phase]))])),
    suspects.length === 0 ? null : note("Suspected hosts: " + suspects.join(", "), "warn"));
}

function stagesSection() {
  const rows = runs.flatMap((run) => run.report.stages.map((stage) => [...runCell(run), stage.name,
    ...[stage.first_step, stage.last_step, stage.sequence_length, stage.tokens_per_step].map(whole)]));
  if (rows.length === 0) return;
  section("stages", "Stages", note("Those that the run has begun, in their order."),
    table("Stages", [...runColumn, {title: "stage", class: TEXT},
      ...["from step", "to step", "sequence length", "tokens a step"].map((title) => ({title, class: NUMBER}))], rows));
}

function eventsSection() {
  const isShown = ({name, values}) => !["start", "end", "stage"].includes(name) && (name !== "resume" || values.changed);
  const valuesOf = (event) => Object.entries(event.values).filter(([name, value]) => name !== "changed" && value !== "")
    .map(([name, value]) => name + " " + (typeof value === "number" ? number(value) : value)).join(", ");
  const rows = runs.flatMap((run) => run.events.filter(isShown).map((event) => [
    ...runCell(run), String(event.start + 1), whole(event.step), clock(event.time),
    event.values.changed ? "changed config" : event.name, event.values.changed || event.detail, valuesOf(event)]));
  const leftOut = runs.reduce((sum, run) => sum + run.events_left_out, 0);
  section("events", "Anomalies and decisions",
    rows.length === 0 ? element("p", {}, "No spike, bad value, refused save, straggler, corruption, stop or changed key was recorded.")
      : table("Events", [...runColumn, {title: "start", class: NUMBER}, {title: "step", class: NUMBER},
          {title: "time (UTC)"}, {title: "event"}, {title: "detail", class: TEXT},
          {title: "values", class: TEXT}], rows),
    leftOut > 0 ? note("metrics.jsonl has " + whole(leftOut) + " older events.") : null);
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
const differingKeys = () => configEntries().filter(([, {values}]) => values.some((value) => value !== values[0]));

function configSection() {
  const entries = configEntries();
  const isCustom = ([, {values, standard}]) => values.some((value) => value !== null && value !== standard);
  const tableOf = (title, chosen) => table(title, [{title: "key", class: "key"}, ...runs.map((run) => ({
    title: compares ? runTitle(run) : "value", class: TEXT})), {title: "default", class: TEXT}],
    chosen.map(([key, {values, standard}]) => [key, ...values.map((value) => value ?? DASH), standard || DASH]));
  if (entries.length === 0) return;
  section("config", "Config", note("The config of the last start."),
    compares ? tableOf("Keys that differ between the runs", differingKeys())
      : tableOf("Keys that differ from the default", entries.filter(isCustom)),
    element("details", {}, element("summary", {}, "All keys"), tableOf("All keys", entries)));
}

function environmentSection() {
  const rows = runs.flatMap((run) => run.events.filter((event) => event.name === "start").map((event) => {
    const {exec, ranks, hosts, program, command, system, changed, ...others} = event.values;
    const texts = [hosts, program, command, system].map((text) => text || DASH);
    return [...runCell(run), String(event.start + 1), whole(ranks), ...texts,
            Object.entries(others).map(([name, value]) => name + " " + value).join(", ")];
  }));
  const texts = ["hosts", "program", "command", "system", "job and incarnation"].map((title) => ({title, class: TEXT}));
  const directories = runs.map((run) => run.report.run).join(", ");
  section("environment", "Environment", note("The page was made from " + directories + "."),
    table("Where each start ran", [...runColumn, {title: "start", class: NUMBER}, {title: "ranks", class: NUMBER},
      ...texts], rows));
}

function build() {
  const {starts} = runs[0].report, last = starts.at(-1);
  document.getElementById("title").replaceChildren(...(compares ? runs.map(runTitle) : [runs[0].name]));
  document.getElementById("subtitle").textContent = compares ? whole(runs.length) + " runs compared"
    : clock(starts[0].exec) + " to " + clock(last.last_sign_of_life) + " UTC; " + last.end +
      (last.cause ? ": " + last.cause : "");
  document.getElementById("made-by").textContent = "Made by " + data.program + ".";
  overview();
  document.getElementById("main").append(controls());
  stagesSection();
  chartSection("training", "Training", TRAINING);
  chartSection("speed", "Speed and memory", SPEED);
  heatSection();
  chartSection("evals", "Evaluations", otherSpecs((name) => name.startsWith("evals/")));
  samplesSection();
  chartSection("others", "Other values", otherSpecs((name) => !name.startsWith("evals/")));
  timeSection();
  eventsSection();
  configSection();
  environmentSection();
  drawAll();
  drawHeats();
}

build();
