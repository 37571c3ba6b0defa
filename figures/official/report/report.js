// Sorting, filtering and folding of tables, search, larger figures, and all code at once. Without this script the pages only
// lack these.
"use strict";

const FOLDED = 30; // rows from which on a table is folded
const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const text = (row, column) => (row.cells[column]?.textContent ?? "").trim();
const value = (shown) => {
  const number = /^[^\p{L}\d]*?[+\u2212-]?\d[\d,]*(\.\d+)?/u.exec(shown);
  return number ? parseFloat(number[0].replace("\u2212", "-").replace(/[^\d.+-]/g, "")) : NaN;
};

// --- the choice of rows and their order, kept in the address: #table=coverage&paper=cao&sort=-published ---
const address = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
function keep(table, entries) {
  const name = table.closest(".table").getAttribute("aria-label").toLowerCase();
  if (address.get("table") !== name) for (const key of [...address.keys()]) address.delete(key);
  address.set("table", name);
  for (const [key, chosen] of Object.entries(entries)) chosen ? address.set(key, chosen) : address.delete(key);
  history.replaceState(null, "", `#${address}`);
}
const isKept = (table) => address.get("table") === table.closest(".table")?.getAttribute("aria-label").toLowerCase();

function sort(table, column, descending) {
  const rows = [...table.tBodies[0].rows].map((row) => [row, text(row, column)]);
  const filled = rows.filter(([, shown]) => !/^[–-]?$/.test(shown));
  const numbers = filled.every(([, shown]) => !Number.isNaN(value(shown)));
  const compare = numbers ? (a, b) => value(a) - value(b) : (a, b) => a.localeCompare(b, "en", { numeric: true });
  filled.sort(([, a], [, b]) => (descending ? compare(b, a) : compare(a, b)));
  const empty = rows.filter(([, shown]) => /^[–-]?$/.test(shown)); // last, whichever way
  table.tBodies[0].append(...[...filled, ...empty].map(([row]) => row));
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  headers(table)[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
}

const headers = (table) => [...table.tHead.rows[table.tHead.rows.length - 1].cells];
function makeSortable(table) {
  headers(table).forEach((header, column) => {
    if (!header.textContent.trim() || header.querySelector("button")) return;
    const button = element("button", { type: "button", title: "Sort" }, ...header.childNodes);
    button.addEventListener("click", () => {
      const descending = header.getAttribute("aria-sort") === "ascending";
      sort(table, column, descending);
      keep(table, { sort: `${descending ? "-" : ""}${header.textContent.trim()}` });
    });
    header.append(button);
  });
}

function makeFilters(table) {
  const names = headers(table).map((cell) => cell.textContent.trim());
  const rows = [...table.tBodies[0].rows];
  const choices = table.dataset.filter.split(" ").map((name) => {
    const column = names.indexOf(name);
    const values = [...new Set(rows.map((row) => text(row, column)))];
    const select = element("select", {}, new Option(`every ${name}`, ""), ...values.map((shown) => new Option(shown, shown)));
    if (isKept(table)) select.value = address.get(name) ?? "";
    return { column, select, name };
  });
  const search = element("input", { type: "search", placeholder: "any word", value: (isKept(table) && address.get("with")) || "" });
  const count = element("output", {});
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const all = row.textContent.toLowerCase();
      row.hidden = choices.some(({ column, select }) => select.value && text(row, column) !== select.value)
        || words.some((word) => !all.includes(word));
    }
    count.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  const bar = element("div", { className: "filters" },
    ...choices.map(({ name, select }) => element("label", {}, `${name} `, select)), element("label", {}, "with ", search), count);
  bar.addEventListener("input", () => {
    apply();
    keep(table, { with: search.value, ...Object.fromEntries(choices.map(({ name, select }) => [name, select.value])) });
  });
  table.closest(".table").before(bar);
  apply();
}

const sortable = [...document.querySelectorAll("table")].filter((table) => table.tHead && table.tBodies[0]?.rows.length > 1);
sortable.forEach(makeSortable);
document.querySelectorAll("table[data-filter]").forEach(makeFilters);
for (const table of sortable.filter((one) => isKept(one))) {
  const sorted = address.get("sort") ?? "";
  const column = headers(table).findIndex((cell) => cell.textContent.trim() === sorted.replace(/^-/, ""));
  if (column >= 0) sort(table, column, sorted.startsWith("-"));
  table.closest(".table").scrollIntoView();
}

// --- long tables begin folded ---
for (const table of document.querySelectorAll(".output table")) {
  const count = table.tBodies[0]?.rows.length ?? 0;
  if (count <= FOLDED) continue;
  table.classList.add("folded");
  const button = element("button", { type: "button" }, `Show all ${count} rows`);
  button.addEventListener("click", () => {
    table.classList.remove("folded");
    button.remove();
  });
  table.closest(".table").after(element("p", { className: "tools" }, button));
}

// Chromium repeats a table's head on every printed page only where nothing in it can be pressed.
addEventListener("beforeprint", () => {
  for (const button of document.querySelectorAll("th button")) button.replaceWith(...button.childNodes);
});
addEventListener("afterprint", () => sortable.forEach(makeSortable));

// --- a figure at its full size, over the page ---
const large = element("dialog", { className: "large", ariaLabel: "Figure" });
large.addEventListener("click", () => large.close());
document.body.append(large);
for (const link of document.querySelectorAll("a.enlarge")) {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { src, alt, width, height } = link.firstElementChild;
    const [w, h] = ["width", "height"].map((side) => link.firstElementChild.getAttribute(side));
    large.replaceChildren(element("button", { type: "button" }, "Close"), element("img", { src, alt, width: w || width, height: h || height }));
    large.showModal();
  });
}

// --- search over pages, sections, figures and exhibits; its index is loaded when it is first asked for ---
let found = [];
window.searchIn = (...entries) => {
  found = entries;
};
const header = document.querySelector("header nav");
if (header) {
  const field = element("input", { type: "search", placeholder: "Search the report", ariaLabel: "Search the report" });
  const list = element("ul", { className: "found", hidden: true });
  const look = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length ? found.filter(([title]) => words.every((word) => title.toLowerCase().includes(word))) : [];
    list.replaceChildren(...hits.slice(0, 15).map(([title, href]) => element("li", {}, element("a", { href }, title))));
    if (words.length && !hits.length) list.append(element("li", {}, "Nothing found."));
    list.hidden = !words.length;
  };
  field.addEventListener("focus", () => {
    document.head.append(element("script", { src: "search.js", onload: look }));
  }, { once: true });
  field.addEventListener("input", look);
  header.append(element("div", { className: "search", role: "search" }, field, list));
}

const tools = document.querySelector("main > .tools");
if (tools) {
  const codes = [...document.querySelectorAll("details.code")];
  const button = element("button", { type: "button" }, "Show all code");
  button.addEventListener("click", () => {
    const open = codes.some((code) => !code.open);
    for (const code of codes) code.open = open;
    button.textContent = open ? "Hide all code" : "Show all code";
  });
  tools.append(button);
}
