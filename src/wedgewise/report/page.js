"use strict";

const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/* Numbers come before text, and cells without a value behind both, whichever way a column is sorted. */
function compare(first, second, sign) {
  const keys = [first, second].map((cell) => cell.dataset.key);
  const ranks = keys.map((key) => (key === undefined ? 1 : key === "" ? 2 : 0));
  if (ranks[0] !== ranks[1]) return ranks[0] - ranks[1];
  if (ranks[0] === 2) return 0;
  if (ranks[0] === 0) return sign * (Number(keys[0]) - Number(keys[1]));
  return sign * order.compare(first.textContent, second.textContent);
}

function sortBy(table, headers, column) {
  const header = headers[column];
  const direction = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  const sign = direction === "ascending" ? 1 : -1;
  for (const other of headers) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", direction);
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((first, second) => compare(first.cells[column], second.cells[column], sign));
  body.append(...rows);
}

for (const table of document.querySelectorAll("table")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) =>
    header.querySelector("button").addEventListener("click", () => sortBy(table, headers, column)),
  );
}

/* The explorer of a graph: its data are beside it, and it is built when somebody types. */
function explore(data, search, list, panel) {
  const names = data.labels.map(String);
  const rows = names.map(() => []);
  data.from.forEach((u, edge) => {
    rows[u].push([data.to[edge], data.truss[edge]]);
    rows[data.to[edge]].push([u, data.truss[edge]]);
  });
  const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

  function step(vertex) {
    const button = element("button", names[vertex]);
    button.type = "button";
    button.addEventListener("click", () => show(vertex));
    return button;
  }

  function trianglesOf(vertex) {
    const near = new Set(rows[vertex].map(([other]) => other));
    const found = [];
    for (const [other] of rows[vertex])
      for (const [third] of rows[other]) {
        if (other < third && near.has(third)) found.push([other, third]);
        if (found.length === 40) return found;
      }
    return found;
  }

  function listed(title, items, total) {
    const heading = element("h3", items.length < total ? `${title}: ${items.length} of ${total}` : `${title}: ${total}`);
    const entries = element("p", "");
    entries.className = "steps";
    entries.append(...items);
    return [heading, entries];
  }

  function show(vertex) {
    const near = [...rows[vertex]].sort((first, second) => second[1] - first[1]);
    const degree = near.length;
    const triangles = data.triangles[vertex];
    const clustering = degree < 2 ? "not defined" : ((2 * triangles) / (degree * (degree - 1))).toFixed(6);
    const facts = document.createElement("dl");
    facts.className = "tiles";
    for (const [name, value] of [
      ["vertex", names[vertex]],
      ["neighbours", degree],
      ["triangles", triangles],
      ["clustering", clustering],
      ["truss level", degree ? near[0][1] : "none"],
    ]) {
      const tile = document.createElement("div");
      tile.append(element("dt", name), element("dd", value));
      facts.append(tile);
    }
    const pairs = trianglesOf(vertex).map(([other, third]) => {
      const pair = element("span", "");
      pair.append(step(other), " – ", step(third));
      return pair;
    });
    panel.replaceChildren(
      facts,
      ...listed("Neighbours, those of the densest trusses first", near.slice(0, 200).map(([other]) => step(other)), degree),
      ...listed("Triangles with", pairs, triangles),
    );
    search.value = names[vertex];
  }

  search.addEventListener("input", () => {
    const exact = names.indexOf(search.value);
    const found = names.filter((name) => name.includes(search.value)).slice(0, 20);
    list.replaceChildren(...found.map((name) => Object.assign(document.createElement("option"), { value: name })));
    if (exact >= 0) show(exact);
    else if (!found.length) panel.replaceChildren(element("p", "No vertex has such a label."));
  });
  show(rows.reduce((best, row, vertex) => (data.triangles[vertex] > data.triangles[best] ? vertex : best), 0));
}

const explorerData = document.getElementById("explorer-data");
if (explorerData)
  explore(
    JSON.parse(explorerData.textContent),
    document.getElementById("explorer-search"),
    document.getElementById("explorer-found"),
    document.getElementById("explorer"),
  );
