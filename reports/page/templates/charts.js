// The charts: Python made them empty, here they are filled with what is selected.

const INK_ON_DARK = "#ffffff", INK_ON_LIGHT = "#7c2d12", DASHES = ["solid", "dashed", "dotted", "dotdash"];
const LEAST = 1e-4, MOST = 1e16; // what is smaller or larger is drawn at these ends of logarithmic axes
const documents = {};

async function embedCharts(charts) {
  for (const [id, item] of Object.entries(charts)) {
    await Bokeh.embed.embed_item(item, id);
    documents[id] = Bokeh.documents.at(-1);
  }
}

function model(chart, name) {
  return documents[chart].get_model_by_name(name);
}

function fill(chart, source, points) {
  const target = model(chart, `${chart}_${source}`);
  const names = Object.keys(target.data);
  target.selected.indices = [];
  target.data = Object.fromEntries(names.map((name) => [name, points.map((point) => point[name])]));
}

function label(axis, texts) {
  axis.ticker.ticks = texts.map(([at]) => at);
  axis.major_label_overrides = new Map(texts);
}

function span(range, start, end) {
  range.setv({ start, end, reset_start: start, reset_end: end });
}

function nameOf(line) {
  return plain(line.name.join(" · ")) + (line.faulty ? " †" : "");
}

function stack(chart, lines, pitch, around) {
  const plot = model(chart, chart);
  plot.height = Math.max(lines.length, 2) * pitch + around;
  span(plot.y_range, 0.5 - Math.max(lines.length, 1), 0.5);
  label(plot.left[0], lines.map((line, k) => [-k, nameOf(line)]));
  return plot;
}

function drawHeat(m, filter) {
  const lines = gather(m, filter, selected(m, filter));
  const regimes = m.regimes.filter((regime) => lines.some((line) => line.regimes.has(regime)));
  const plot = stack("heat", lines, 21, 132);
  span(plot.x_range, -0.5, Math.max(regimes.length, 1) - 0.5);
  label(plot.above[0], regimes.map((regime, k) => [k, regime.replaceAll("_", " ")]));
  const scale = m.scales[filter.measure];
  const parts = { cells: [], grey: [], fails: [], absent: [] };
  lines.forEach((line, k) =>
    regimes.forEach((regime, x) => {
      const point = { x, y: -k };
      if (!line.regimes.has(regime)) return parts.absent.push(point);
      const cell = cellOf(m, line.regimes.get(regime), filter.measure);
      const step = stepOf(scale, cell.value);
      Object.assign(point, { row: cell.worst, where: `${plain(line.name.join(" · "), 80)} in ${regime}` });
      point.what = told(m, cell, filter.measure);
      point.colour = scale.colours[step];
      (cell.outcome === "not judged" ? parts.grey : parts.cells).push(point);
      if (cell.outcome === "fail") parts.fails.push({ ...point, ink: step >= scale.dark_from ? INK_ON_DARK : INK_ON_LIGHT });
    }),
  );
  for (const [source, points] of Object.entries(parts)) fill("heat", source, points);
}

function told(m, cell, measure) {
  const many = cell.fails ? `${cell.fails} of ${cell.count} measurements fail` : `${cell.count} measurements, none fails`;
  if (cell.outcome === "not judged") return `not judged: ${m.word("reason", cell.worst)}`;
  const name = { bound_used: "share of the bound used", max_row_ulp: "row ULP", max_ulp: "ULP" }[measure];
  return `${many}; at most ${decimal(cell.value)} ${name}`;
}

const HISTOGRAM_ENDS = { zero: -13.5, low: -11, high: 35, infinite: 37.5 };

function drawHistogram(m, filter) {
  const lines = gather(m, filter, selected(m, filter, { outcome: "", regime: "" }));
  const plot = stack("histogram", lines, 26, 64);
  span(plot.x_range, HISTOGRAM_ENDS.zero - 1, HISTOGRAM_ENDS.infinite + 1);
  const ticks = [["exact", HISTOGRAM_ENDS.zero], ["0.001", -9.966], ["0.03", -5.06], ["½", -1], ["16", 4], ["1e3", 9.966]];
  const more = [["1e5", 16.61], ["1e7", 23.25], ["1e9", 29.9], ["∞", HISTOGRAM_ENDS.infinite]];
  label(plot.below[0], [...ticks, ...more].map(([text, at]) => [at, text]));
  const bars = lines.flatMap((line, k) => barsOf(m, filter, line, k));
  fill("histogram", "bars", bars);
}

// Heights are logarithmic: one result in ten million is still seen.
function barsOf(m, filter, line, k) {
  const counts = new Map();
  for (const { of: [op, impl, dtype, output], bins } of m.histograms) {
    if (filter.dtype && dtype !== filter.dtype) continue;
    if (op !== line.op || JSON.stringify(lineOf(filter, m.several, { op, impl, dtype, output })) !== line.key) continue;
    for (const [low, high, count] of bins) {
      const [key, before] = [String(low), counts.get(String(low))?.count ?? 0];
      counts.set(key, { low: finite(low), high: finite(high), count: before + count });
    }
  }
  const total = [...counts.values()].reduce((sum, bin) => sum + bin.count, 0);
  return [...counts.values()].map(({ low, high, count }) => ({
    ...sides(low, high),
    bottom: -k - 0.44,
    top: -k - 0.44 + 0.88 * Math.max(1 + Math.log10(count / total) / 7.5, 0.04),
    colour: m.colours.bar,
    where: plain(line.name.join(" · "), 80),
    what: `${whole(count)} results, ${decimal((100 * count) / total)} %: ${interval(low, high)}`,
  }));
}

function sides(low, high) {
  if (low === 0) return { left: HISTOGRAM_ENDS.zero - 0.5, right: HISTOGRAM_ENDS.zero + 0.5 };
  if (low === Infinity) return { left: HISTOGRAM_ENDS.infinite - 0.5, right: HISTOGRAM_ENDS.infinite + 0.5 };
  return { left: Math.log2(low) + 0.04, right: Math.log2(high) - 0.04 };
}

function interval(low, high) {
  if (low === 0) return "exact";
  if (low === Infinity) return "infinitely wrong";
  if (Math.log2(low) <= HISTOGRAM_ENDS.low) return `below ${decimal(high)} ULP`;
  return Math.log2(low) >= HISTOGRAM_ENDS.high - 1 ? `${decimal(low)} ULP and more` : `${decimal(low)} to ${decimal(high)} ULP`;
}

function drawCondition(m, filter) {
  const rows = selected(m, filter).filter((row) => m.counts.compared[row] > 0);
  const plot = model("condition", "condition");
  const [across, up] = [limits(rows.map((row) => m.get("condition", row))), limits(rows.map((row) => m.get("max_ulp", row)))];
  span(plot.x_range, across.low, across.high);
  span(plot.y_range, up.low, up.high);
  for (const outcome of ["pass", "fail", "not judged"]) {
    const points = rows
      .filter((row) => m.word("outcome", row) === outcome)
      .map((row) => ({ x: across.put(m.get("condition", row)), y: up.put(m.get("max_ulp", row)), row, ...pointer(m, row) }));
    fill("condition", outcome.replace(" ", "_"), points);
  }
}

function pointer(m, row) {
  const where = ["op", "impl", "dtype"].map((name) => plain(m.word(name, row), 60)).join(" · ");
  const error = `${decimal(m.get("max_ulp", row))} ULP, condition ${decimal(m.get("condition", row))}`;
  return { where: `${where} in ${m.word("regime", row)}, n = ${m.get("n", row)}`, what: `${error}: ${m.word("reason", row)}` };
}

// The ends of a logarithmic axis, and where values go on it: 0 to the lower end, infinity to the upper one.
function limits(values) {
  const shown = values.filter((v) => v > 0 && v < Infinity);
  const low = Math.max(Math.min(...shown, 1) / 3, LEAST);
  const high = Math.min(Math.max(...shown, 1) * 10, MOST);
  return { low: low / 2, high: high * 2, put: (v) => Math.min(Math.max(v || 0, low), high) };
}

function drawLength(m, filter) {
  const rows = selected(m, filter, { regime: "lengths", outcome: "" }).filter((row) => m.get("n", row) && m.get("compared", row));
  const lines = gather(m, filter, rows);
  const plot = model("length", "length");
  const up = limits(rows.map((row) => m.get(filter.measure, row)));
  span(plot.x_range, 0.8, 1.3 * Math.max(...rows.map((row) => m.get("n", row)), 10));
  span(plot.y_range, up.low, up.high);
  plot.left[0].axis_label = m.scales[filter.measure].label;
  const groups = filter.op ? lines.map((line) => line.key) : m.values("op");
  const styled = lines.map((line) => ({ line, ...style(m, groups.indexOf(filter.op ? line.key : line.op)) }));
  const points = styled.map(({ line, colour }) => pointsOf(m, filter, line, colour, up));
  fill("length", "points", points.flat());
  fill("length", "lines", styled.map(({ colour, dash }, k) => ({
    xs: points[k].map((p) => p.x), ys: points[k].map((p) => (p.drawn ? p.y : NaN)), colour, dash,
  })));
  return filter.op ? styled.map((s) => ({ ...s, name: nameOf(s.line) })) : groups.map((name, k) => ({ name, ...style(m, k) }));
}

function style(m, k) {
  const { series } = m.colours;
  return { colour: series[k % series.length], dash: DASHES[Math.floor(k / series.length) % DASHES.length] };
}

function pointsOf(m, filter, line, colour, up) {
  const lengths = new Map();
  for (const row of [...line.regimes.values()].flat()) {
    const n = m.get("n", row);
    lengths.set(n, lengths.has(n) ? m.worse(lengths.get(n), row) : row);
  }
  return [...lengths]
    .sort(([a], [b]) => a - b)
    .map(([n, row]) => {
      const value = m.get(filter.measure, row);
      return { x: n, y: up.put(value), drawn: value > 0, colour, row, ...pointer(m, row) };
    });
}
