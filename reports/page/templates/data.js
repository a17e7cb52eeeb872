"use strict";
// The data of the page: unpacked from base64 and gzip, kept in columns, written as text and nothing else.

async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

class Measurements {
  constructor(data, stories) {
    Object.assign(this, data, { stories });
    this.size = data.counts.n.length;
    this.rows = Array.from({ length: this.size }, (_, row) => row);
    for (const column of Object.values(this.floats)) column.forEach((v, i) => (column[i] = finite(v)));
    this.faulty = new Set(data.faulty);
  }
  word(name, row) {
    const { values, codes } = this.words[name];
    return values[codes[row]];
  }
  get(name, row) {
    if (name in this.words) return this.word(name, row);
    if (name === "misrounded_share") return this.counts.misrounded[row] / Math.max(this.counts.compared[row], 1);
    return (this.floats[name] ?? this.counts[name])[row];
  }
  values(name) {
    return [...this.words[name].values];
  }
  isFaulty(row) {
    return this.faulty.has(`${this.word("op", row)}-${this.word("impl", row)}`);
  }
  // The worse of two rows: failures first, then what was judged, then the larger share of the bound, then the error.
  worse(a, b) {
    const order = { fail: 0, pass: 1, "not judged": 2 };
    const first = (row) => [
      order[this.word("outcome", row)],
      -this.floats.bound_used[row] || 0,
      -this.floats.max_ulp[row] || 0,
      row,
    ];
    const [left, right] = [first(a), first(b)];
    const k = left.findIndex((v, i) => v !== right[i]);
    return k < 0 || left[k] < right[k] ? a : b;
  }
}

function finite(value) {
  return value === "inf" ? Infinity : value === null ? NaN : value;
}

function decimal(value) {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2).replace(/\.?0*e\+?/, "e") : String(Number(value.toPrecision(4)));
}

function whole(value) {
  return value.toLocaleString("en-US");
}

// A name as a chart draws it: one line, not too long, and no mathematics ($$ and \( would start TeX).
function plain(name, longest = 38) {
  const line = name.replace(/[\s\p{Cc}]+/gu, " ").replace(/\$\$/g, "$\u2060$").replace(/\\([([])/g, "\\\u2060$1");
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
