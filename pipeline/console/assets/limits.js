// What is taken of what there is.

import { $, h, text, attr, slots } from "./dom.js";
import { count, exact, called } from "./format.js";

const LEAST = 6; // lines, so that nothing below moves
const names = { in_use: "in use", queued: "waiting", tokens: "tokens left", wait_seconds: "seconds left", keys: "keys", probes: "probes out", store_down: "store down" };
const skipped = new Set(["failure_rate", "calls", "failures", "slow", "wait_seconds"]); // the circuit's panel has them

function line() {
  const fill = h("span", { class: "bar-fill" });
  const item = h("li", {}, h("span", { class: "who" }, ""), h("span", { class: "what" }, ""), h("b", {}, ""), h("span", { class: "bar-line", role: "meter", "aria-valuemin": "0" }, fill));
  item.fill = fill;
  return item;
}

export function drawLimits(row) {
  const all = [];
  for (const l of row.layers) {
    for (const g of l.gauges) {
      if (l.breaker && skipped.has(g.name)) continue;
      all.push({ who: called(l.kind, l.name), what: names[g.name] ?? g.name.replaceAll("_", " "), value: g.value, limit: g.limit, free: g.name === "tokens" });
    }
    if (l.retry?.budget === "balance") all.push({ who: called("retry", l.name), what: "budget left", value: l.retry.balance, limit: l.retry.capacity ?? 0, free: true });
  }
  const list = $("limits");
  slots(list, Math.max(LEAST, all.length), line);
  [...list.children].forEach((li, i) => fill(li, all[i]));
}

function fill(li, g) {
  const [who, what, value, meter] = li.children;
  text(who, g?.who ?? "");
  text(what, g?.what ?? "");
  text(value, !g ? "" : amount(g.value) + (g.limit > 0 ? ` of ${amount(g.limit)}` : ""));
  attr(li, "data-used", g ? "true" : null);
  const share = g && g.limit > 0 && g.value !== null ? Math.max(0, Math.min(1, g.value / g.limit)) : null;
  attr(li, "data-on", share === null ? null : "true");
  attr(li, "data-full", share !== null && (g.free ? share === 0 : share === 1) ? "true" : null);
  attr(meter, "aria-hidden", share === null ? "true" : null);
  attr(meter, "aria-label", share === null ? null : `${g.who}, ${g.what}`);
  attr(meter, "aria-valuemax", share === null ? null : g.limit);
  attr(meter, "aria-valuenow", share === null ? null : Math.max(0, Math.min(g.limit, g.value)));
  attr(meter, "aria-valuetext", share === null ? null : `${amount(g.value)} of ${amount(g.limit)}`);
  li.fill.style.transform = `scaleX(${share ?? 0})`;
}

const amount = (n) => (n === null ? "–" : n >= 10000 ? count(n) : exact(n));
