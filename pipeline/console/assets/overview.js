// The list: trouble first. Its boxes never move; which pipeline a box shows does, and not under the pointer of who is about to
// press one.

import { $, h, s, text, attr, show, slots, shapes, words, glyph } from "./dom.js";
import { state, sorted, key } from "./store.js";
import { count, latency, pad } from "./format.js";
import { line } from "./curve.js";

const HOLD = 8000; // after the last movement in the list
const SPARK = [96, 20];

let order = []; // ids, as they are shown
let touched = -Infinity;
let current = null; // the key that the one tab stop is at
let drawn = null;

const list = $("rows");
const filter = $("filter");

function row() {
  const parts = {
    path: s("path", { d: shapes.idle }),
    name: h("span", { class: "name" }, ""),
    why: h("span", { class: "why-line" }, ""),
    calls: s("path", { class: "all" }),
    bad: s("path", { class: "bad" }),
    rate: h("span", { class: "number" }, ""),
    wrong: h("span", { class: "number wrong" }, ""),
    slow: h("span", { class: "number" }, ""),
  };
  const link = h("a", { class: "row", tabindex: "-1" },
    s("svg", { class: "glyph", viewBox: "0 0 16 16", "aria-hidden": "true" }, parts.path),
    parts.name,
    s("svg", { class: "spark", viewBox: `0 0 ${SPARK[0]} ${SPARK[1]}`, "aria-hidden": "true" }, parts.calls, parts.bad),
    parts.rate, parts.wrong, parts.slow, parts.why);
  const item = h("li", {}, link);
  item.parts = { ...parts, link };
  return item;
}

export function drawTally() {
  const n = { bad: 0, warn: 0, ok: 0, idle: 0 };
  for (const r of state.rows.values()) n[r.level]++;
  const box = $("tally");
  if (!box.children.length) {
    for (const level of Object.keys(n)) box.append(h("li", { "data-level": level }, glyph(level), h("span", {}, words[level].toLowerCase()), h("b", {}, "")));
  }
  Object.values(n).forEach((v, i) => text(box.children[i].querySelector("b"), v));
  document.title = n.bad ? `(${n.bad}) Fairlead console` : "Fairlead console";
}

export function drawOverview(chosen) {
  drawn = chosen;
  const now = sorted();
  const held = performance.now() - touched < HOLD && order.length === now.length && order.every((id) => state.rows.has(id));
  const focused = document.activeElement?.closest?.("#rows li")?.parts.id;
  if (!held) order = now.map((r) => r.id);
  text($("held"), held && now.some((r, i) => r.id !== order[i]) ? "order held" : "");

  const wanted = filter.value.trim().toLowerCase();
  const rows = order.map((id) => state.rows.get(id)).filter((r) => !wanted || matches(r, wanted));
  slots(list, rows.length, row);
  show($("none"), rows.length === 0);
  const keys = rows.map(key);
  if (!keys.includes(current)) current = keys.includes(chosen) ? chosen : keys[0];
  rows.forEach((r, i) => fill(list.children[i].parts, r, keys[i], chosen));
  if (focused !== undefined && !held) { // the focus stays with its pipeline
    const at = rows.findIndex((r) => r.id === focused);
    if (at >= 0 && list.children[at].parts.link !== document.activeElement) list.children[at].parts.link.focus({ preventScroll: true });
  }
}

function matches(r, wanted) {
  return r.name.toLowerCase().includes(wanted) || words[r.level].toLowerCase().startsWith(wanted) || r.why.some((w) => w.toLowerCase().includes(wanted));
}

function fill(p, r, k, chosen) {
  const calls = r.recent.calls / 10;
  const bad = (r.recent.failed + r.recent.refused) / 10;
  p.id = r.id;
  attr(p.link, "href", "#/" + encodeURIComponent(k));
  attr(p.link, "data-level", r.level);
  attr(p.link, "aria-current", k === chosen ? "true" : null);
  attr(p.link, "tabindex", k === current ? "0" : "-1");
  attr(p.path, "d", shapes[r.level]);
  text(p.name, r.name);
  const why = r.why[0] ?? (r.level === "idle" ? "no calls in the last minute" : "all well");
  text(p.why, why);
  text(p.rate, pad(rate(calls), 5));
  text(p.wrong, pad(bad ? rate(bad) : "·", 5));
  text(p.slow, pad(latency(r.latency[1]), 6));
  attr(p.link, "aria-label", `${r.name}: ${words[r.level]}, ${why}. ${rate(calls)} calls and ${rate(bad)} bad per second, 95th percentile ${latency(r.latency[1])}`);
  const spark = state.sparks.get(r.id);
  const top = Math.max(4, ...spark.calls);
  attr(p.calls, "d", line(spark.calls, 60, ...SPARK, top, true));
  attr(p.bad, "d", spark.bad.some((n) => n) ? line(spark.bad, 60, ...SPARK, top, true) : "");
}

function rate(n) {
  return n === 0 || n >= 9.95 ? count(n) : n.toFixed(1);
}

export function focusRow(k) {
  for (const item of list.children) {
    if (!item.hidden && item.parts.link.getAttribute("href") === "#/" + encodeURIComponent(k)) {
      current = k;
      item.parts.link.focus();
      return;
    }
  }
}

const touch = () => { touched = performance.now(); };
for (const kind of ["pointermove", "pointerdown", "wheel", "keydown", "focusin"]) list.addEventListener(kind, touch, { passive: true });
list.addEventListener("pointerleave", () => { touched = -Infinity; });
filter.addEventListener("input", () => drawOverview(drawn));
filter.addEventListener("keydown", (e) => {
  if (e.key === "ArrowDown") { e.preventDefault(); move(0, 0); }
  if (e.key === "Escape" && filter.value) { e.preventDefault(); filter.value = ""; drawOverview(drawn); }
});
list.addEventListener("keydown", (e) => {
  const visible = [...list.children].filter((i) => !i.hidden);
  const at = visible.indexOf(document.activeElement.closest("li"));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: visible.length - 1, PageDown: at + 10, PageUp: at - 10 }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  if (e.key === "ArrowUp" && at === 0) return filter.focus();
  move(Math.max(0, Math.min(visible.length - 1, to)));
});

function move(to) {
  const item = [...list.children].filter((i) => !i.hidden)[to];
  if (!item) return;
  const link = item.parts.link;
  for (const other of list.children) attr(other.parts.link, "tabindex", other === item ? "0" : "-1");
  current = decodeURIComponent(link.getAttribute("href").slice(2));
  link.focus();
}
