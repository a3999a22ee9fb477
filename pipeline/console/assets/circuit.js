// A circuit: its three states, where it is, why, since when, and when the next probe may go.

import { $, h, s, text, attr } from "./dom.js";
import { state } from "./store.js";
import { clock, span, percent, called } from "./format.js";

const switches = {
  closed: "M1 7H6M10 7H15M4.6 7a1.4 1.4 0 1 0 2.8 0a1.4 1.4 0 1 0-2.8 0M8.6 7a1.4 1.4 0 1 0 2.8 0a1.4 1.4 0 1 0-2.8 0M6 7H10",
  open: "M1 7H4.6M11.4 7H15M3.6 7a1.4 1.4 0 1 0 2.8 0a1.4 1.4 0 1 0-2.8 0M9.6 7a1.4 1.4 0 1 0 2.8 0a1.4 1.4 0 1 0-2.8 0M6 6L10.5 1.5",
  "half-open": "M1 7H4.6M11.4 7H15M3.6 7a1.4 1.4 0 1 0 2.8 0a1.4 1.4 0 1 0-2.8 0M9.6 7a1.4 1.4 0 1 0 2.8 0a1.4 1.4 0 1 0-2.8 0M6.4 6.4L10.8 4.2",
};

// switchGlyph draws the circuit as the switch that it is.
export function switchGlyph(node, name) {
  if (!node.firstChild) node.append(s("svg", { viewBox: "0 0 16 10", class: "switch" }, s("path")));
  attr(node.querySelector("path"), "d", switches[name] ?? switches.closed);
}

// stateWord is the card's state and what it says.
export function stateWord(c) {
  const tone = { open: "bad", "half-open": "warn", closed: c.forced ? "warn" : "good" }[c.state] ?? "";
  return [tone, (c.forced ? "forced " : "") + c.state];
}

const nodes = { closed: [20, 30], open: [300, 30], "half-open": [160, 108] };
const arrows = [
  ["closed", "open", "M122 42H294", "trips", 208, 35],
  ["open", "half-open", "M350 56V122H268", "open time is over", 356, 142],
  ["half-open", "open", "M238 106V84H326V62", "a probe fails", 282, 79],
  ["half-open", "closed", "M158 122H70V62", "probes succeed", 64, 142],
];

let built = "";
let panels = [];
let decorate = null;

// onPanel has f add to each panel: control.js, which is there only where control is allowed, adds what can be pressed.
export function onPanel(f) {
  decorate = f;
  panels.forEach(f);
}

function machine() {
  const boxes = {};
  const root = s("svg", { class: "machine", viewBox: "0 0 420 152", role: "img" });
  for (const [from, to, d, label, x, y] of arrows) {
    root.append(s("g", { class: "arrow", "data-from": from, "data-to": to }, s("path", { d }), s("path", { class: "tip", d: tip(d) }), s("text", { x, y, "text-anchor": "middle" }, label)));
  }
  for (const [name, [x, y]] of Object.entries(nodes)) {
    boxes[name] = s("g", { class: "node", "data-node": name }, s("rect", { x, y: y - 4, width: 100, height: 32, rx: 16 }), s("text", { x: x + 50, y: y + 17, "text-anchor": "middle" }, name));
    root.append(boxes[name]);
  }
  return { root, boxes };
}

// tip is the head of an arrow whose path ends with H or V.
function tip(d) {
  const parts = [...d.matchAll(/([MHV])([\d.]+)(?: ([\d.]+))?/g)];
  let [x, y, dx, dy] = [0, 0, 0, 0];
  for (const [, op, a, b] of parts) {
    if (op === "M") [x, y] = [+a, +b];
    if (op === "H") [dx, dy, x] = [Math.sign(+a - x), 0, +a];
    if (op === "V") [dx, dy, y] = [0, Math.sign(+a - y), +a];
  }
  return `M${x - 6 * dx - 4 * dy} ${y - 6 * dy - 4 * dx}L${x} ${y}L${x - 6 * dx + 4 * dy} ${y - 6 * dy + 4 * dx}Z`;
}

const facts = [["since", "Since"], ["trip", "Tripped"], ["last", "Last change"], ["window", "Window"], ["probes", "Probes"], ["rules", "Opens when"]];

function panel(l, index, id) {
  const p = { id, circuit: l.breaker.id, name: l.name, machine: machine(), left: h("b", {}, ""), what: h("span", {}, ""), bar: h("span", { class: "bar-fill" }), facts: {} };
  const dl = h("dl", { class: "facts" });
  for (const [key, label] of facts) {
    p.facts[key] = h("dd", {}, "");
    dl.append(h("dt", {}, label), p.facts[key]);
  }
  p.actions = h("div", { class: "actions", "data-layer": index, "data-breaker": l.name });
  p.node = h("section", { class: "circuit", "aria-label": called("Circuit", l.name) },
    h("div", { class: "picture" }, p.machine.root, h("p", { class: "countdown" }, p.left, " ", p.what), h("span", { class: "bar-line", "aria-hidden": "true" }, p.bar), p.actions), dl);
  decorate?.(p);
  return p;
}

export function drawCircuits(row) {
  const with_ = row.layers.map((l, i) => [l, i]).filter(([l]) => l.breaker);
  const shape = row.id + JSON.stringify(with_.map(([l, i]) => [l.name, i, l.breaker.id]));
  if (shape !== built) {
    panels = with_.map(([l, i]) => panel(l, i, row.id));
    $("circuits").replaceChildren(...(panels.length ? panels.map((p) => p.node) : [h("p", { class: "empty" }, "This pipeline has no circuit breaker.")]));
    built = shape;
  }
  with_.forEach(([l], i) => fill(panels[i], l));
}

function fill(p, l) {
  const c = l.breaker;
  const [tone, word] = stateWord(c);
  p.breaker = c;
  p.received = performance.now();
  attr(p.node, "data-state", tone);
  for (const [name, node] of Object.entries(p.machine.boxes)) attr(node, "data-here", name === c.state ? "true" : null);
  const at = `${clock(c.since, state.time)} (${c.at_least ? "at least " : ""}${span(state.time - c.since)})`;
  text(p.facts.since, at);
  text(p.facts.trip, c.trip_at ? `${c.trip}, at ${clock(c.trip_at, state.time)}` : "never seen");
  text(p.facts.last, c.reason || "none yet");
  text(p.facts.window, c.state !== "closed" ? "counts while closed" : c.calls ? `${percent(c.rate)}: ${c.failures} of ${c.calls} failed${c.slow ? `, ${c.slow} slow` : ""}` : "empty");
  text(p.facts.probes, c.state !== "half-open" ? `${c.max_probes || "any number"} at once${c.needed ? `, ${c.needed} must succeed` : ""}` : `${c.probes}${c.max_probes ? " of " + c.max_probes : ""} out, ${c.successes}${c.needed ? " of " + c.needed : ""} succeeded`);
  text(p.facts.rules, c.rules || "unknown");
  attr(p.machine.root, "aria-label", `${called("Circuit", l.name)} is ${word} since ${at}. ${c.reason ? "Last change: " + c.reason + "." : ""}`);
  count(p);
}

// count tells what is left of the open time, between two seconds as well.
function count(p) {
  const c = p.breaker;
  const left = Math.max(0, c.wait - (performance.now() - p.received) / 1000);
  attr(p.node, "data-counting", c.state === "open" && c.wait > 0 ? "true" : null);
  if (c.state === "open" && c.wait > 0) {
    text(p.left, left.toFixed(left < 10 ? 1 : 0) + " s");
    text(p.what, "until the next probe");
    p.bar.style.transform = `scaleX(${c.open_for ? Math.min(1, left / c.open_for) : 0})`;
    return;
  }
  text(p.left, { open: c.forced ? "forced open" : "open", "half-open": "probing", closed: c.forced ? "forced closed" : "closed" }[c.state] ?? c.state);
  text(p.what, { open: c.forced ? "until somebody ends it" : "the next call may probe", "half-open": "the next calls decide", closed: "calls go through" }[c.state] ?? "");
  p.bar.style.transform = "scaleX(0)";
}

const still = matchMedia("(prefers-reduced-motion: reduce)");
setInterval(() => {
  if (still.matches || document.hidden || document.body.classList.contains("stale")) return;
  for (const p of panels) if (p.breaker?.state === "open") count(p);
}, 100);
