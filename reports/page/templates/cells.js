// Which measurements are selected, and how they gather into rows and cells of the charts.

function selected(m, filter, free = {}) {
  const { op, dtype, regime, outcome, search } = { ...filter, ...free };
  const wanted = search.toLowerCase();
  const matches = ["impl", "regime", "reason", "op", "dtype"];
  const found = Object.fromEntries(
    matches.map((name) => [name, m.values(name).map((v) => v.toLowerCase().includes(wanted))]),
  );
  return m.rows.filter(
    (row) =>
      (!op || m.word("op", row) === op) &&
      (!dtype || m.word("dtype", row) === dtype) &&
      (!regime || m.word("regime", row) === regime) &&
      (!outcome || m.word("outcome", row) === outcome) &&
      (!wanted || matches.some((name) => found[name][m.words[name].codes[row]])),
  );
}

// The row of a chart that a series belongs to: one operator shows implementation and dtype, all show operator and
// implementation, the dtypes together.
function lineOf(filter, several, { op, impl, dtype, output }) {
  const parts = filter.op ? [impl, filter.dtype ? "" : dtype] : [op, impl, filter.dtype];
  return [...parts.filter(Boolean), several.has(op) ? output : ""].filter(Boolean);
}

function severalOutputs(m) {
  const outputs = {};
  for (const row of m.rows) (outputs[m.word("op", row)] ??= new Set()).add(m.word("output", row));
  return new Set(Object.keys(outputs).filter((op) => outputs[op].size > 1));
}

// Lines in the order of the table, implementations known to be faulty behind the others of their operator.
function gather(m, filter, rows) {
  const lines = new Map();
  for (const row of rows) {
    const series = Object.fromEntries(["op", "impl", "dtype", "output"].map((name) => [name, m.word(name, row)]));
    const name = lineOf(filter, m.several, series);
    const key = JSON.stringify(name);
    if (!lines.has(key)) lines.set(key, { key, name, op: series.op, faulty: m.isFaulty(row), regimes: new Map() });
    const { regimes } = lines.get(key);
    const regime = m.word("regime", row);
    if (!regimes.has(regime)) regimes.set(regime, []);
    regimes.get(regime).push(row);
  }
  const ops = m.values("op");
  return [...lines.values()].sort((a, b) => ops.indexOf(a.op) - ops.indexOf(b.op) || a.faulty - b.faulty);
}

function cellOf(m, rows, measure) {
  const outcomes = rows.map((row) => m.word("outcome", row));
  const outcome = ["fail", "pass"].find((o) => outcomes.includes(o)) ?? "not judged";
  const judged = rows.filter((_, k) => outcomes[k] !== "not judged");
  const value = Math.max(...judged.map((row) => m.get(measure, row)).filter((v) => !Number.isNaN(v)), 0);
  const told = rows.filter((row) => row in m.stories && m.word("outcome", row) === outcome);
  const worst = (told.length ? told : rows).reduce((a, b) => m.worse(a, b));
  return { outcome, value, worst, fails: outcomes.filter((o) => o === "fail").length, count: rows.length };
}

function stepOf(scale, value) {
  const k = scale.edges.findIndex((edge) => value <= edge);
  return k < 0 ? scale.edges.length : k;
}
