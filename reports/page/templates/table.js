// The table: every measurement that is selected, sorted by a click on a heading, a hundred at a time.

const COLUMNS = [
  ["op", "operator"], ["impl", "implementation"], ["dtype", "dtype"], ["regime", "regime"], ["n", "n"],
  ["max_ulp", "max ULP"], ["p99_ulp", "p99 ULP"], ["max_row_ulp", "max row ULP"], ["misrounded_share", "misrounded"],
  ["condition", "condition"], ["bound_used", "bound used"], ["outcome", "outcome"], ["reason", "reason"],
];
const WORDY = new Set(["op", "impl", "dtype", "regime", "outcome", "reason"]);
const PAGE_ROWS = 100;
const sorting = { column: "bound_used", down: true };
let shownRows = PAGE_ROWS;

function headTable(redraw) {
  const row = element("tr");
  for (const [name, text] of COLUMNS) {
    const button = element("button", { type: "button", textContent: text });
    button.addEventListener("click", () => {
      sorting.down = sorting.column === name ? !sorting.down : !WORDY.has(name);
      sorting.column = name;
      redraw();
    });
    const cell = element("th", { scope: "col", className: WORDY.has(name) ? "" : "number" }, button);
    cell.dataset.column = name;
    row.append(cell);
  }
  document.querySelector("#table thead").append(row);
  document.getElementById("more").addEventListener("click", () => {
    shownRows += PAGE_ROWS;
    redraw(true);
  });
}

function drawTable(m, filter, more = false) {
  if (!more) shownRows = PAGE_ROWS;
  const rows = sorted(m, selected(m, filter));
  for (const cell of document.querySelectorAll("#table th")) {
    const here = cell.dataset.column === sorting.column;
    cell.ariaSort = here ? (sorting.down ? "descending" : "ascending") : "none";
  }
  document.querySelector("#table tbody").replaceChildren(...rows.slice(0, shownRows).map((row) => lineFor(m, row)));
  document.getElementById("count").textContent =
    `${whole(rows.length)} of ${whole(m.size)} measurements` + (rows.length > shownRows ? `, the first ${shownRows} shown` : "");
  document.getElementById("more").hidden = rows.length <= shownRows;
}

function sorted(m, rows) {
  const { column, down } = sorting;
  const sign = down ? -1 : 1;
  const keys = new Map(rows.map((row) => [row, m.get(column, row)]));
  const compare = WORDY.has(column)
    ? (a, b) => (a < b ? -1 : a > b ? 1 : 0)
    : (a, b) => (a === b ? 0 : Number.isNaN(a) ? -1 : Number.isNaN(b) ? 1 : a - b);
  return rows.sort((a, b) => sign * compare(keys.get(a), keys.get(b)) || a - b);
}

function lineFor(m, row) {
  const cells = COLUMNS.map(([name]) => {
    const cell = element("td", { className: WORDY.has(name) ? name : "number" });
    if (name === "impl") {
      const text = m.word("impl", row) + (m.isFaulty(row) ? " †" : "");
      cell.append(element("button", { type: "button", className: "open", textContent: text }));
    } else cell.textContent = written(m, name, row);
    return cell;
  });
  const line = element("tr", { className: m.word("outcome", row).replace(" ", "-") }, ...cells);
  line.dataset.row = row;
  line.addEventListener("click", () => showCase(m, row));
  return line;
}

function written(m, name, row) {
  const value = m.get(name, row);
  if (name === "outcome") return `${{ pass: "✓", fail: "✕", "not judged": "○" }[value]} ${value}`;
  if (WORDY.has(name)) return value;
  if (name === "misrounded_share") return `${(100 * value).toFixed(1)} %`;
  return name === "n" ? String(value) : decimal(value);
}
