// Tables: of a chart's lines, and of what no chart shows.
const MOST_ROWS = 60;  // of a line in a table

// `columns`: [{title, class, name}]; a cell is a text, an element, or one of both with attributes: [text, {class, style}]. On a
// phone the rows of a table that `stacks` become blocks, each cell below the last with its column's `name` before it.
function table(caption, columns, rows, {stacks = false, sorts = false} = {}) {
  const cell = (column, value) => {
    const [text, {sort, ...attributes}] = Array.isArray(value) ? value : [value, {}];
    const classes = [column.class, attributes.class].filter(Boolean).join(" ");
    return element("td", {...attributes, class: classes || null, "data-name": stacks ? column.name || column.title : null}, text);
  };
  const body = element("tbody");
  const fill = () => body.replaceChildren(...rows.map((row) =>
    element("tr", {}, ...row.map((value, i) => cell(columns[i], value)))));
  const heads = columns.map((column, i) => {
    const title = sorts ? element("button", {type: "button", click: () => sortBy(i)}, column.title) : column.title;
    return element("th", {scope: "col", class: column.class === "number" ? "number" : null}, title);
  });
  // Numbers by their size, the least first; once more, the greatest first. What is not known comes last.
  const sortBy = (i) => {
    const up = heads[i].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head, at) => at === i ? head.setAttribute("aria-sort", up ? "ascending" : "descending")
      : head.removeAttribute("aria-sort"));
    const key = (row) => Array.isArray(row[i]) && row[i][1].sort !== undefined ? row[i][1].sort : row[i];
    const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
      : String(a).localeCompare(String(b), "en", {numeric: true});
    const isMissing = (value) => value === null || value === DASH;
    rows = [...rows].sort((a, b) => isMissing(key(a)) || isMissing(key(b)) ? isMissing(key(a)) - isMissing(key(b))
      : (up ? 1 : -1) * compare(key(a), key(b)));
    fill();
  };
  fill();
  const made = element("table", {class: [stacks && "stacks", sorts && "sorts"].filter(Boolean).join(" ") || null}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads)), body);
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption}, made);
}

const NUMBER = "number";
const TEXT = "text";

// Evenly chosen indices, the first and the last among them.
function chosen(size) {
  if (size <= MOST_ROWS) return [...Array(size).keys()];
  return [...Array(MOST_ROWS).keys()].map((i) => Math.round(i * (size - 1) / (MOST_ROWS - 1)));
}

function tableOfLines(spec, lines) {
  const details = element("details", {}, element("summary", {}, "Table: " + spec.title));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const rows = new Map();
    lines.forEach((line, column) => {
      for (const i of chosen(line.mean.length)) {
        const key = line.points.hours[i] + "/" + line.points.step[i];
        if (!rows.has(key)) {
          rows.set(key, [whole(line.points.step[i]), count(line.points.tokens[i]),
                         number(line.points.hours[i] * 3600 / TIME.seconds),
                         ...lines.map(() => "")]);
        }
        const spread = line.low[i] === line.high[i] ? ""
          : " (" + spec.format(line.low[i]) + " to " + spec.format(line.high[i]) + ")";
        rows.get(key)[3 + column] = spec.format(line.mean[i]) + spread;
      }
    });
    const sorted = [...rows.entries()].sort(([a], [b]) => parseFloat(a) - parseFloat(b)).map(([, row]) => row);
    const records = Math.max(...lines.map((line) => line.records));
    details.append(table(spec.title + ", of up to " + whole(records) + " records a line" +
      (lines.some((line) => line.low !== line.mean) ? "; a row is the mean of neighbouring records, with their range" : ""),
      [{title: "step", class: NUMBER}, {title: "tokens", class: NUMBER}, {title: TIME.name, class: NUMBER},
       ...lines.map((line) => ({title: line.label, class: NUMBER}))], sorted));
  });
  return details;
}
