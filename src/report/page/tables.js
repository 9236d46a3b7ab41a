// Tables: of a chart's lines, and of what no chart shows.
const MOST_ROWS = 60;  // of a line in a table

// `columns`: [{title, class}]; a cell is a text or an element with attributes, [text, {class, style}].
function table(caption, columns, rows) {
  const cell = (tag, column, value) => {
    const [text, attributes] = Array.isArray(value) ? value : [value, {}];
    const classes = [column.class, attributes.class].filter(Boolean).join(" ");
    return element(tag, {...attributes, class: classes || null}, text);
  };
  const made = element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...columns.map((column) =>
      element("th", {scope: "col", class: column.class === "number" ? "number" : null}, column.title)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((value, i) => cell("td", columns[i], value))))));
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
          rows.set(key, [whole(line.points.step[i]), count(line.points.tokens[i]), number(line.points.hours[i]),
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
      [{title: "step", class: NUMBER}, {title: "tokens", class: NUMBER}, {title: "hours", class: NUMBER},
       ...lines.map((line) => ({title: line.label, class: NUMBER}))], sorted));
  });
  return details;
}
