"use strict";
// What the page is made from, and how an element is made. Texts of a run become text nodes, never markup.
const data = JSON.parse(document.getElementById("run-data").textContent);
const runs = data.runs;
const compares = runs.length > 1;
const labelled = (run, label) => compares ? run.name + ": " + label : label;
const colorOf = (run) => "--line-" + runs.indexOf(run) % 6;

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
  const contents = document.getElementById("contents");
  contents.append(element("a", {href: "#" + id}, title));
  const made = element("section", {id, "aria-labelledby": id + "-title"},
                       element("h2", {id: id + "-title"}, title), ...children);
  document.getElementById("main").append(made);
  return made;
}

// A run's name where several are compared, with the colour of its lines.
const runTitle = (run) => element("span", {class: "run"},
  element("span", {class: "swatch", style: "color: var(" + colorOf(run) + ")"}), run.name);

// A key may break after its dots, and nowhere else.
const keyText = (key) => element("span", {}, ...key.split(".").flatMap((part, i, all) =>
  i + 1 < all.length ? [part + ".", element("wbr")] : [part]));
