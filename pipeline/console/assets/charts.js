// Five minutes of one pipeline as small curves with one time axis. A pointer or the arrow keys read one second in all of them.

import { $, h, s, text, attr } from "./dom.js";
import { state } from "./store.js";
import { count, latency, exact, pad } from "./format.js";
import { line, ceiling } from "./curve.js";

const N = 300;
const W = 300;
const H = 72;

const charts = [
  { title: "Calls", unit: "per second", lines: [["calls", "ink"]], least: 4, show: count },
  { title: "Failed", unit: "calls per second", lines: [["failed", "bad"]], least: 4, show: count },
  { title: "Refused", unit: "calls per second, never ran", lines: [["refused", "warn"]], least: 4, show: count },
  { title: "Retries", unit: "sent again, per second", lines: [["retries", "accent"]], least: 4, show: count },
  { title: "In flight", unit: "calls", lines: [["in_flight", "ink"]], least: 4, show: count },
  { title: "Latency", unit: "of calls, last 10 s", lines: [["p50", "ink"], ["p95", "accent"], ["p99", "bad"]], least: 0.001, show: latency, curve: true },
];

let last = null;
let at = null; // seconds ago that is read; null = now
const box = $("curves");

function build() {
  for (const c of charts) {
    c.paths = c.lines.map(([, tone]) => s("path", { class: `tone-${tone}` }));
    c.cursor = s("path", { class: "cursor", d: "" });
    c.max = h("span", { class: "max" }, "");
    c.values = c.lines.map(([name]) => h("b", { "data-line": name }, "–"));
    const values = c.lines.map(([name], i) => h("span", { class: `value line-${i}` }, c.curve ? h("i", {}, name) : "", c.values[i]));
    c.area = c.curve ? null : s("path", { class: `fill-${c.lines[0][1]}` });
    const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      s("path", { class: "grid", d: `M0 ${H}H${W}M0 ${H / 2}H${W}M60 0V${H}M120 0V${H}M180 0V${H}M240 0V${H}` }), ...(c.area ? [c.area] : []), ...c.paths, c.cursor);
    c.node = h("figure", { class: "chart", role: "img" },
      h("figcaption", {}, h("span", { class: "what" }, c.title), " ", h("small", {}, c.unit)),
      h("div", { class: "values" }, ...values), h("div", { class: "plot" }, svg, c.max),
      h("div", { class: "axis", "aria-hidden": "true" }, h("span", {}, "−5 min"), h("span", {}, "−2½"), h("span", {}, "now")));
    box.append(c.node);
  }
}

export function drawCharts(row) {
  last = row;
  if (!charts[0].node) build();
  const series = row && state.series?.id === row.id ? state.series : null;
  for (const c of charts) {
    const data = c.lines.map(([name]) => (series ? series[name] : []));
    const highest = data.reduce((m, values) => values.reduce((a, v) => Math.max(a, v ?? 0), m), 0);
    const top = ceiling(highest * 1.05, c.least);
    data.forEach((values, i) => attr(c.paths[i], "d", line(values, N, W, H, top, false)));
    if (c.area) attr(c.area, "d", line(data[0], N, W, H, top, true));
    text(c.max, pad(c.show(top), 6));
    const point = data.map((values) => (values.length ? values[values.length - 1 - (at ?? 0)] ?? null : null));
    point.forEach((v, i) => text(c.values[i], c.show(v)));
    const x = W - ((at ?? 0) * W) / (N - 1);
    attr(c.cursor, "d", at === null ? "" : `M${x} 0V${H}`);
    const said = c.lines.map(([name], i) => (c.curve ? name + " " : "") + c.show(point[i])).join(", ");
    attr(c.node, "aria-label", `${c.title}, ${c.unit}: ${said}; highest in five minutes ${c.show(highest)}`);
  }
  text($("curves-at"), at === null ? "now" : `${exact(at)} s ago`);
}

function read(ago) {
  at = ago;
  if (last) drawCharts(last);
}

box.addEventListener("pointermove", (e) => {
  const plot = e.target.closest?.(".plot");
  if (!plot) return;
  const r = plot.getBoundingClientRect();
  read(Math.max(0, Math.min(N - 1, Math.round((N - 1) * (1 - (e.clientX - r.left) / r.width)))));
});
box.addEventListener("pointerleave", () => read(null));
box.addEventListener("blur", () => read(null));
box.addEventListener("keydown", (e) => {
  const step = { ArrowLeft: 1, ArrowRight: -1, PageUp: 30, PageDown: -30 }[e.key];
  if (step !== undefined) {
    e.preventDefault();
    read(Math.max(0, Math.min(N - 1, (at ?? 0) + step)));
  }
  if (e.key === "Escape") read(null);
});
