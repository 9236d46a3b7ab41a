"use strict";
// The page's data, and functions that make elements. Texts of a run become text nodes, never markup.
const data = JSON.parse(document.getElementById("run-data").textContent);
const runs = data.runs;
const compares = runs.length > 1;
const labelled = (run, label) => compares ? run.name + ": " + label : label;
const colorOf = (run) => "--line-" + runs.indexOf(run) % 6;
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// element("td", {class: "number"}, "1.5", ...): attributes by name; a function becomes a listener.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function section(id, title, ...children) {
  document.getElementById("contents").append(element("a", {href: "#" + id}, title));
  document.getElementById("main").append(element("section", {id, "aria-labelledby": id + "-title"},
    element("h2", {id: id + "-title"}, title), ...children));
}

function choice(name, options, changed) {
  return element("label", {}, name, element("select", {change: (event) => changed(event.target.value)},
    ...options.map(([value, text]) => element("option", {value}, text))));
}

const note = (text, kind = "note") => element("p", {class: kind}, text);

// A run's name in the colour of its lines.
const runTitle = (run) => element("span", {class: "run"},
  element("span", {class: "swatch", style: "color: var(" + colorOf(run) + ")"}), run.name);
// Of several runs, each row begins with its run.
const runColumn = compares ? [{title: "run"}] : [];
const runCell = (run) => compares ? [runTitle(run)] : [];

// `columns`: [{title, class}]; a cell is a text, an element, or either with attributes: [text, {class, style}].
const NUMBER = "number", TEXT = "text", SHARE = "share";
function table(caption, columns, rows) {
  const cell = (column, value) => {
    const [text, attributes] = Array.isArray(value) ? value : [value, {}];
    const classes = [column.class, attributes.class].filter(Boolean).join(" ");
    return element("td", {...attributes, class: classes || null}, text);
  };
  const head = columns.map((column) => element("th", {scope: "col", class: column.class}, column.title));
  return element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
    element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head)),
      element("tbody", {}, ...rows.map((row) =>
        element("tr", {}, ...row.map((value, i) => cell(columns[i], value)))))));
}
