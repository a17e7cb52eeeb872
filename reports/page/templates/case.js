// The worst case of a cell or a row of the table: its story where the page holds it, and always the line to replay it.

const STORY = [
  ["where", ["element"]],
  ["input", null],
  ["result", ["got", "expected", "exact"]],
  ["judgement", ["error", "allowed", "condition", "verdict", "detail"]],
];

function showCase(m, row) {
  const panel = document.getElementById("case");
  const story = m.stories[row];
  const names = ["op", "impl", "dtype"].map((name) => m.word(name, row));
  panel.querySelector("h2").textContent = names.join(" · ");
  panel.querySelector(".where").textContent = `${m.word("regime", row)}, n = ${m.get("n", row)}`;
  const outcome = panel.querySelector(".outcome");
  outcome.textContent = `${m.word("outcome", row)}: ${m.word("reason", row)}`;
  outcome.className = `outcome ${m.word("outcome", row).replace(" ", "-")}`;
  panel.querySelector("dl").replaceChildren(...(story ? storyLines(story) : numbers(m, row)));
  panel.querySelector(".untold").replaceChildren(...(story ? [] : untold(m, row)));
  panel.querySelector("code").replaceChildren(...wordsOf(m.word("replay", row)));
  panel.querySelector(".copied").textContent = "";
  panel.hidden = false;
  panel.scrollTop = 0;
}

// A command breaks between its words, not within "--impl".
function wordsOf(command) {
  return command.split(/( )/).map((word) => (word === " " ? word : element("span", { textContent: word })));
}

function storyLines(story) {
  const grouped = new Set(STORY.flatMap(([, names]) => names ?? []));
  const inputs = Object.keys(story).filter((name) => !grouped.has(name));
  return STORY.flatMap(([title, names]) => {
    const here = (names ?? inputs).filter((name) => story[name]);
    return here.length ? [element("dt", { className: "group", textContent: title }), ...here.flatMap((n) => line(n, story[n]))] : [];
  });
}

function line(name, text) {
  return [element("dt", { textContent: name }), element("dd", { textContent: text })];
}

function numbers(m, row) {
  const names = { max_ulp: "max ULP", max_row_ulp: "max row ULP", condition: "condition", bound_used: "bound used", detail: "detail" };
  return Object.entries(names)
    .map(([name, text]) => [text, name === "detail" ? m.word(name, row) : decimal(m.get(name, row))])
    .filter(([, text]) => text)
    .flatMap(([name, text]) => line(name, text));
}

// Only the worst length of a regime is told digit by digit: lead there.
function untold(m, row) {
  const same = ["op", "impl", "dtype", "output", "regime"];
  const codes = (r) => same.map((name) => m.words[name].codes[r]).join();
  const other = Object.keys(m.stories).map(Number).find((r) => codes(r) === codes(row));
  if (other === undefined) return ["The page has no room for this case's digits: the line below prints them."];
  const button = element("button", { type: "button", textContent: `n = ${m.get("n", other)}` });
  button.addEventListener("click", () => showCase(m, other));
  return ["The line below prints this case digit by digit. The page holds the worst one of this regime: ", button];
}

function closeCase() {
  document.getElementById("case").hidden = true;
}

async function copyReplay() {
  const panel = document.getElementById("case");
  const range = document.createRange();
  range.selectNodeContents(panel.querySelector("code"));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  const copied = document.execCommand("copy");
  panel.querySelector(".copied").textContent = copied ? "copied" : "selected: copy it with the keyboard";
}
