// Wiring: the controls, and what is drawn again when one of them changes.

const CONTROLS = ["dtype", "regime", "outcome", "measure", "search"];
const filter = { op: "", dtype: "", regime: "", outcome: "", search: "", measure: "bound_used" };

function fillControls(m) {
  const tabs = document.getElementById("operators");
  const ops = m.values("op");
  if (ops.length === 1) filter.op = ops[0];
  const news = m.rows.filter((row) => m.word("outcome", row) === "fail" && !m.isFaulty(row));
  const fails = (op) => news.filter((row) => !op || m.word("op", row) === op).length;
  for (const op of ops.length === 1 ? ops : ["", ...ops]) {
    const count = fails(op);
    const badge = element("span", { className: "badge", textContent: count ? `${whole(count)} ✕` : "✓" });
    const tab = element("button", { type: "button" }, op || "all", " ", badge);
    tab.dataset.op = op;
    tab.addEventListener("click", () => choose(m, { op }));
    tabs.append(tab);
  }
  for (const name of ["dtype", "regime", "outcome"]) {
    const values = name === "regime" ? m.regimes : m.values(name);
    for (const value of values) document.getElementById(name).append(new Option(value.replaceAll("_", " "), value));
  }
  for (const [name, scale] of Object.entries(m.scales)) document.getElementById("measure").append(new Option(scale.short, name));
  for (const name of CONTROLS)
    document.getElementById(name).addEventListener("input", (event) => choose(m, { [name]: event.target.value }));
  document.getElementById("reset").addEventListener("click", () =>
    choose(m, { dtype: "", regime: "", outcome: "", search: "" }),
  );
}

function choose(m, changed) {
  Object.assign(filter, changed);
  for (const name of CONTROLS) document.getElementById(name).value = filter[name];
  draw(m);
}

function draw(m) {
  for (const tab of document.querySelectorAll("#operators button")) tab.ariaPressed = String(tab.dataset.op === filter.op);
  drawLegend(m.scales[filter.measure]);
  drawHeat(m, filter);
  drawHistogram(m, filter);
  drawCondition(m, filter);
  drawKey(drawLength(m, filter));
  drawTable(m, filter);
}

function drawLegend(scale) {
  const ends = [...scale.edges.map((edge) => `≤ ${decimal(edge)}`), `> ${decimal(scale.edges.at(-1))}`];
  const steps = scale.colours.map((colour, k) => {
    const step = element("li", {}, element("i"), ends[k]);
    step.firstChild.style.background = colour;
    return step;
  });
  document.getElementById("legend-scale").replaceChildren(...steps);
  document.getElementById("legend-label").textContent = scale.label;
}

function drawKey(series) {
  const entries = series.map(({ name, colour, dash }) => {
    const entry = element("li", {}, element("i"), name);
    entry.firstChild.style.borderTop = `2px ${{ solid: "solid", dashed: "dashed" }[dash] ?? "dotted"} ${colour}`;
    return entry;
  });
  document.getElementById("length-key").replaceChildren(...entries);
}

async function start() {
  const script = element("script", { textContent: await unpack("packed-library") });
  document.head.append(script);
  const [charts, data, stories] = (await Promise.all(["charts", "data", "stories"].map((n) => unpack(`packed-${n}`)))).map(
    (text) => JSON.parse(text),
  );
  const m = new Measurements(data, stories);
  m.several = severalOutputs(m);
  window.trueulp = {
    measurements: m,
    pick(source) {
      const row = source.data.row?.[source.selected.indices[0]];
      if (row !== undefined) showCase(m, row);
    },
  };
  fillControls(m);
  headTable((more) => drawTable(m, filter, more));
  document.querySelector("#case .close").addEventListener("click", closeCase);
  document.querySelector("#case .copy").addEventListener("click", copyReplay);
  document.addEventListener("keydown", (event) => event.key === "Escape" && closeCase());
  for (const link of document.querySelectorAll("#failures button")) link.addEventListener("click", () => follow(m, link.dataset));
  await embedCharts(charts);
  draw(m);
  document.body.classList.add("ready");
}

// From a line of the failures to its case.
function follow(m, { op, impl, dtype, place }) {
  choose(m, { op, dtype, regime: "", outcome: "", search: "" });
  const row = m.rows.find(
    (r) => m.word("op", r) === op && m.word("impl", r) === impl && m.word("dtype", r) === dtype && m.word("place", r) === place,
  );
  if (row !== undefined) showCase(m, row);
}

start().catch((error) => {
  document.getElementById("broken").hidden = false;
  document.getElementById("broken").append(` (${error})`);
  throw error;
});
