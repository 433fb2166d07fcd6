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
