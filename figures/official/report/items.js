// Two systems item by item. The tables are scripts below items/, loaded when they are asked for (nblib/results/report/items.py).
"use strict";

const PAGE = 100; // rows shown at once
const AGREEMENT = { "": "every item", "1 0": "A right, B wrong", "0 1": "A wrong, B right", "1 1": "both right", "0 0": "both wrong" };
const NEARER = { "": "every item", A: "A nearer to people", B: "B nearer to people" };
const state = new URLSearchParams(location.hash.slice(1));
const tasks = new Map(), items = new Map(), answers = new Map(), loading = new Map();
const place = (id) => document.getElementById(id);
let limit = PAGE;

// --- called by the scripts below items/ ---
window.listTasks = (...listed) => {
  for (const task of listed) tasks.set(task.task, task);
  show();
};
window.addItems = (task, about) => items.set(task, about);
window.addAnswers = (task, number, given) => answers.set(`${task}/${number}`, given);

const load = (address) => {
  if (!loading.has(address)) {
    loading.set(address, new Promise((resolve) => {
      document.head.append(element("script", { src: address, onload: resolve, onerror: resolve }));
    }));
  }
  return loading.get(address);
};

// By how many percent of all places similarity ranks each pair higher than people do; ties share their mean place.
const ranks = (values) => {
  const order = values.map((_, k) => k).filter((k) => values[k] !== null).sort((a, b) => values[a] - values[b]);
  const found = values.map(() => null);
  for (let start = 0, end; start < order.length; start = end) {
    for (end = start; end < order.length && values[order[end]] === values[order[start]]; end++);
    for (let k = start; k < end; k++) found[order[k]] = (100 * (start + end - 1)) / 2 / order.length;
  }
  return found;
};
const numbers = (about, given) => {
  if (given.number !== "similarity" || !about.gold) return given.values;
  const people = ranks(about.gold.map((score, k) => (given.values[k] === null ? null : score)));
  return ranks(given.values).map((rank, k) => (rank === null ? null : rank - people[k]));
};

function choose(name, options, label) {
  const select = element("select", { name }, ...Object.entries(options).map(([value, shown]) => new Option(shown, value)));
  select.value = state.get(name) ?? "";
  if (select.selectedIndex < 0) select.selectedIndex = 0;
  state.set(name, select.value);
  return element("label", {}, `${label} `, select);
}

async function show() {
  const named = tasks.get(state.get("task")) ?? tasks.get("nevir") ?? tasks.values().next().value;
  if (!named) return;
  state.set("task", named.task);
  if (!named.systems.includes(state.get("a"))) state.set("a", named.systems[0]);
  if (!named.systems.includes(state.get("b"))) state.set("b", named.systems[Math.min(1, named.systems.length - 1)]);
  const [first, second] = ["a", "b"].map((side) => named.systems.indexOf(state.get(side)));
  await Promise.all(["items", first, second].map((file) => load(`items/${named.task}/${file}.js`)));
  const about = items.get(named.task), sides = [first, second].map((number) => answers.get(`${named.task}/${number}`));
  if (!about || sides.includes(undefined)) {
    place("counts").textContent = "The answers could not be loaded: is the folder items/ beside this page?";
    return;
  }
  const systems = Object.fromEntries(named.systems.map((name) => [name, name]));
  const judged = sides.every((side) => side.right !== null);
  const choices = { "": "the benchmark's order", gap: "largest difference", a: "lowest of A", b: "lowest of B" };
  const bar = [
    choose("task", Object.fromEntries([...tasks.values()].map((task) => [task.task, task.label])), "benchmark"),
    choose("a", systems, "A"), choose("b", systems, "B"),
    choose("show", judged ? AGREEMENT : NEARER, "show"),
    ...Object.entries(about.filters).map(([name, column]) =>
      choose(name, { "": `every ${name}`, ...Object.fromEntries([...new Set(column)].map((value) => [value, value])) }, name)),
    choose("order", choices, "in order of"),
  ];
  const focused = document.activeElement?.name;
  place("choice").replaceChildren(...bar);
  if (focused) place("choice").elements[focused]?.focus();
  draw(named, about, sides, judged);
}

function draw(named, about, sides, judged) {
  const [a, b] = sides.map((side) => numbers(about, side));
  const gap = (k) => (a && b && a[k] !== null && b[k] !== null ? a[k] - b[k] : null);
  const asked = (k) => sides.every((side) => (side.right ? side.right[k] !== " " : side.values[k] !== null));
  const pair = (k) => (judged ? `${sides[0].right[k]} ${sides[1].right[k]}`
    : Math.abs(a[k]) < Math.abs(b[k]) ? "A" : Math.abs(a[k]) > Math.abs(b[k]) ? "B" : "");
  const fits = (k) => asked(k) && Object.entries(about.filters).every(([name, column]) => !state.get(name) || column[k] === state.get(name));
  const all = about.ids.map((_, k) => k).filter(fits);
  const count = (kind) => all.filter((k) => pair(k) === kind).length;
  const shown = all.filter((k) => !state.get("show") || pair(k) === state.get("show"));
  const order = state.get("order");
  const key = { gap: (k) => -Math.abs(gap(k) ?? 0), a: (k) => a?.[k] ?? 0, b: (k) => b?.[k] ?? 0 }[order];
  if (key) shown.sort((x, y) => key(x) - key(y));

  const kinds = Object.entries(judged ? AGREEMENT : NEARER).slice(1);
  place("counts").textContent = `${named.label}: ${shown.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} items that both answered. `
    + kinds.map(([kind, words]) => `${words}: ${count(kind)}`).join(" · ");
  const digits = judged ? 3 : 1;
  const written = (values, k) => (values && values[k] !== null ? values[k].toFixed(digits).replace("-", "−") : "–");
  const verdict = (side, k) => (side.right ? element("td", { className: side.right[k] === "1" ? "right" : "wrong" }, side.right[k] === "1" ? "right" : "wrong") : "");
  const cells = (k) => [
    element("th", { scope: "row" }, element("a", { href: permalink(about.ids[k]) }, about.ids[k])),
    ...Object.values(about.filters).map((column) => element("td", {}, column[k])),
    ...(about.gold ? [element("td", { className: "n" }, about.gold[k])] : []),
    ...[0, 1].flatMap((side) => [verdict(sides[side], k), element("td", { className: "n" }, written([a, b][side], k))]),
    element("td", { className: "n" }, gap(k) === null ? "–" : gap(k).toFixed(digits).replace("-", "−")),
  ].filter(Boolean);
  const head = [
    "item", ...Object.keys(about.filters), ...(about.gold ? ["people's score"] : []),
    ...["A", "B"].flatMap((name, side) => [...(sides[side].right ? [name] : []), judged ? `${name}, ${sides[side].number ?? "number"}` : `${name}, places too high (%)`]),
    "A − B",
  ];
  place("items").replaceChildren(
    element("caption", {}, `A: ${state.get("a")}; B: ${state.get("b")}`),
    element("thead", {}, element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...shown.slice(0, limit).map((k) => element("tr", { className: about.ids[k] === state.get("item") ? "chosen" : "" }, ...cells(k)))));
  place("more").hidden = shown.length <= limit;
  detail(named, about);
  history.replaceState(null, "", `#${kept()}`);
}

function detail(named, about) {
  const k = about.ids.indexOf(state.get("item"));
  if (k < 0) return place("item").replaceChildren();
  const parts = [element("h2", {}, `${named.label}, item ${about.ids[k]}`)];
  const row = about.texts?.[about.rows[k]];
  if (row) {
    const list = element("dl", {});
    about.columns.forEach((name, column) => list.append(element("dt", {}, name), element("dd", {}, [row[column]].flat().join(" / "))));
    parts.push(list);
  } else {
    parts.push(element("p", {}, "This benchmark's texts are not ours to show. With its files at hand, this prints them:"),
      element("pre", {}, `nblib items ${named.task} ${about.ids[k]}`));
  }
  place("item").replaceChildren(...parts);
}

const kept = (item) => {
  const there = new URLSearchParams([...state].filter(([, value]) => value));
  if (item !== undefined) there.set("item", item);
  return there.toString();
};
const permalink = (item) => `#${kept(item)}`;

place("choice").addEventListener("change", (event) => {
  if (event.target.name === "task") for (const name of [...state.keys()].filter((one) => !["a", "b"].includes(one))) state.delete(name);
  state.set(event.target.name, event.target.value);
  state.delete("item");
  limit = PAGE;
  show();
});
place("choice").addEventListener("submit", (event) => event.preventDefault());
place("more").addEventListener("click", () => {
  limit += 10 * PAGE;
  show();
});
addEventListener("hashchange", () => {
  for (const name of [...state.keys()]) state.delete(name);
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) state.set(name, value);
  show().then(() => place("item").scrollIntoView({ block: "nearest" }));
});
