// One pipeline, whole.

import { $, h, text, attr, slots, shapes, words } from "./dom.js";
import { state } from "./store.js";
import { clock, span, exact, latency } from "./format.js";
import { drawNesting } from "./nesting.js";
import { drawCircuits } from "./circuit.js";
import { drawCharts } from "./charts.js";
import { drawLimits } from "./limits.js";
import { drawJournal } from "./journal.js";
import { drawSettings } from "./settings.js";

const trends = { better: "▼ getting better", worse: "▲ getting worse", steady: "▬ no better yet" };
const WHYS = 3;
const ERRORS = 10;

export function drawDetail(row, chosen) {
  drawJournal();
  if (!row) {
    if (chosen !== null) {
      text($("name"), chosen);
      text($("word"), "not there now");
      attr($("head"), "data-level", "idle");
    }
    return;
  }
  head(row);
  drawNesting(row);
  drawCircuits(row);
  drawLimits(row);
  drawCharts(row);
  errors(row);
  stops(row);
  drawSettings(row);
}

function head(row) {
  attr($("head"), "data-level", row.level);
  attr($("head-glyph"), "d", shapes[row.level]);
  text($("name"), row.name);
  text($("word"), `${words[row.level]} for ${span(state.time - row.level_since)}`);
  text($("trend"), trends[row.trend] ?? "");
  const why = $("why");
  const lines = row.why.length ? row.why : [row.level === "idle" ? "No calls in the last minute." : "Nothing is wrong."];
  slots(why, Math.max(WHYS, lines.length), () => h("li", {}, ""));
  [...why.children].forEach((li, i) => text(li, lines[i] ?? ""));
  figures(row);
}

function figures(row) {
  const t = row.recent;
  const all = [
    ["calls/s", (t.calls / 10).toFixed(1)], ["failed/s", (t.failed / 10).toFixed(1), t.failed], ["refused/s", (t.refused / 10).toFixed(1), t.refused],
    ["retries/s", (t.retries / 10).toFixed(1)], ["cancelled/s", (t.cancelled / 10).toFixed(1)], ["in flight", exact(row.in_flight)],
    ["p50", latency(row.latency[0])], ["p95", latency(row.latency[1])], ["p99", latency(row.latency[2])],
  ];
  const dl = $("figures");
  if (!dl.children.length) for (const [label] of all) dl.append(h("div", {}, h("dt", {}, label), h("dd", {}, "")));
  all.forEach(([, value, some], i) => {
    text(dl.children[i].lastChild, value);
    attr(dl.children[i], "data-some", some ? "true" : null);
  });
}

function errors(row) {
  slots($("errors"), ERRORS, () => h("li", {}, h("span", { class: "when" }, ""), h("span", { class: "tag" }, ""), h("span", { class: "message" }, "")));
  [...$("errors").children].forEach((li, i) => {
    const e = row.errors[i];
    const [when, tag, message] = li.children;
    attr(li, "data-used", e ? "true" : null);
    text(when, e ? clock(e.last, state.time) : "");
    text(tag, e ? e.from : "");
    text(message, e ? e.text : i === 0 ? "none seen" : "");
    attr(li, "title", e ? `${e.text}\nfirst ${clock(e.first, state.time)}, last ${clock(e.last, state.time)}` : null);
  });
}

function stops(row) {
  const all = Object.entries(row.stops).sort((a, b) => b[1] - a[1]);
  const total = all.reduce((n, [, v]) => n + v, 0);
  slots($("stops"), 9, () => h("li", {}, h("span", { class: "reason" }, ""), h("b", {}, ""), h("span", { class: "bar-line", "aria-hidden": "true" }, h("span", { class: "bar-fill" }))));
  [...$("stops").children].forEach((li, i) => {
    const [reason, n] = all[i] ?? [i === 0 ? "no retry loop has ended early" : "", null];
    text(li.children[0], reason.replaceAll("_", " "));
    text(li.children[1], n === null ? "" : exact(n));
    li.querySelector(".bar-fill").style.transform = `scaleX(${n === null ? 0 : n / total})`;
    attr(li, "data-on", n === null ? null : "true");
  });
}
