// Sorting and filtering of tables, and all code at once. Without this script the pages only lack the three.
"use strict";

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

function sort(table, header, column) {
  const descending = header.getAttribute("aria-sort") === "ascending";
  const rows = [...table.tBodies[0].rows].map((row) => [row, text(row, column)]);
  const filled = rows.filter(([, shown]) => !/^[–-]?$/.test(shown));
  const numbers = filled.every(([, shown]) => !Number.isNaN(value(shown)));
  const compare = numbers ? (a, b) => value(a) - value(b) : (a, b) => a.localeCompare(b, "en", { numeric: true });
  filled.sort(([, a], [, b]) => (descending ? compare(b, a) : compare(a, b)));
  const empty = rows.filter(([, shown]) => /^[–-]?$/.test(shown)); // last, whichever way
  table.tBodies[0].append(...[...filled, ...empty].map(([row]) => row));
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

function makeSortable(table) {
  [...table.tHead.rows[table.tHead.rows.length - 1].cells].forEach((header, column) => {
    if (!header.textContent.trim() || header.querySelector("button")) return;
    const button = element("button", { type: "button", title: "Sort" }, ...header.childNodes);
    button.addEventListener("click", () => sort(table, header, column));
    header.append(button);
  });
}

function makeFilters(table) {
  const headers = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const rows = [...table.tBodies[0].rows];
  const choices = table.dataset.filter.split(" ").map((name) => {
    const column = headers.indexOf(name);
    const values = [...new Set(rows.map((row) => text(row, column)))];
    const select = element("select", {}, new Option(`every ${name}`, ""), ...values.map((shown) => new Option(shown, shown)));
    return { column, select, name };
  });
  const search = element("input", { type: "search", placeholder: "any word" });
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
  bar.addEventListener("input", apply);
  table.closest(".table").before(bar);
  apply();
}

const sortable = [...document.querySelectorAll("table")].filter((table) => table.tHead && table.tBodies[0]?.rows.length > 1);
sortable.forEach(makeSortable);
document.querySelectorAll("table[data-filter]").forEach(makeFilters);

// Chromium repeats a table's head on every printed page only where nothing in it can be pressed.
addEventListener("beforeprint", () => {
  for (const button of document.querySelectorAll("th button")) button.replaceWith(...button.childNodes);
});
addEventListener("afterprint", () => sortable.forEach(makeSortable));

const tools = document.querySelector(".tools");
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
