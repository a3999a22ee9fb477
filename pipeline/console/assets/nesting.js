// The nesting, drawn as what it is: boxes in boxes, around fn.

import { $, h, text, attr } from "./dom.js";
import { count, exact, latency, called } from "./format.js";
import { switchGlyph, stateWord } from "./circuit.js";

const titles = {
  timeout: "Timeout", retry: "Retry", cooldown: "Cooldown", breaker: "Breaker", ratelimit: "Rate limit", guard: "Guard",
  bulkhead: "Bulkhead", "attempt-timeout": "Attempt timeout",
};

const box = $("nesting");
let built = "";
let cards = [];

const figure = (label) => {
  const value = h("b", {}, "0");
  const name = h("span", {}, label);
  return { node: h("div", { class: "figure" }, value, name), value, name };
};

function card(kind, name) {
  const c = { a: figure("admitted"), b: figure("refused"), state: h("span", { class: "state-word" }, ""), mark: h("span", { class: "mark", "aria-hidden": "true" }) };
  c.bar = h("span", { class: "bar-fill" });
  c.level = h("span", { class: "level" }, "");
  c.shared = h("span", { class: "shared" }, "");
  c.gauge = h("div", { class: "gauge" }, c.level, h("span", { class: "bar-line", "aria-hidden": "true" }, c.bar));
  c.node = h("div", { class: "card", role: "group" },
    h("p", { class: "kind" }, titles[kind] ?? kind, c.shared), h("p", { class: "card-name" }, name || "–"),
    h("p", { class: "state" }, c.mark, c.state), h("div", { class: "two" }, c.a.node, c.b.node), c.gauge);
  return c;
}

function build(row) {
  cards = row.layers.map((l) => card(l.kind, l.name));
  const fn = card("fn", "your function");
  fn.node.classList.add("fn");
  text(fn.node.querySelector(".kind"), "fn");
  text(fn.b.name, "failed");
  text(fn.a.name, "runs");
  cards.push(fn);
  let inner = h("ol", {}, h("li", { class: "innermost" }, fn.node));
  for (let i = row.layers.length - 1; i >= 0; i--) {
    inner = h("ol", {}, h("li", { "data-kind": row.layers[i].kind }, cards[i].node, inner));
  }
  box.style.setProperty("--cards", cards.length);
  box.replaceChildren(inner);
}

export function drawNesting(row) {
  const shape = row.id + JSON.stringify(row.layers.map((l) => [l.kind, l.name]));
  if (shape !== built) {
    build(row);
    built = shape;
  }
  row.layers.forEach((l, i) => fill(cards[i], l, row));
  fillFn(cards[cards.length - 1], row);
}

function put(c, value, state, word) {
  attr(c.node, "data-state", state);
  text(c.state, word);
}

function fill(c, l, row) {
  let [state, word] = ["", ""];
  let [a, b, an, bn] = [l.admitted, l.refused, l.per === "call" ? "calls" : "admitted", l.together ? "refused*" : "refused"];
  let gauge = l.gauges.find((g) => g.limit > 0 && ["in_use", "tokens", "keys"].includes(g.name));
  let level = gauge ? `${short(gauge.value)} / ${short(gauge.limit)} ${label(gauge.name)}` : "";
  let share = gauge ? gauge.value / gauge.limit : null;
  if (l.waiting !== null && l.waiting > 0) [state, word] = ["waiting", `${exact(l.waiting)} waiting`];
  switch (l.kind) {
    case "timeout":
    case "attempt-timeout":
      [bn, b] = ["fired", l.fired];
      word = "limit " + latency(l.limit);
      break;
    case "retry":
      [an, bn, b] = ["calls", "retries", row.totals.retries];
      word = l.retry.attempts < 0 ? "no limit" : `up to ${l.retry.attempts}`;
      if (l.retry.budget === "balance") {
        level = `${exact(l.retry.balance)}${l.retry.capacity !== null ? " / " + exact(l.retry.capacity) : ""} in budget`;
        share = l.retry.capacity ? l.retry.balance / l.retry.capacity : null;
        if (l.retry.balance === 0) [state, word] = ["warn", "budget spent"];
      } else if (l.retry.budget === "none") level = "no budget";
      break;
    case "cooldown":
      [state, word] = l.state === "cooling" ? ["warn", "cooling"] : ["", "no pause asked"];
      gauge = l.gauges.find((g) => g.name === "wait_seconds");
      if (gauge?.value > 0) [level, share] = [`${gauge.value.toFixed(0)} s left`, gauge.value / gauge.limit];
      break;
    case "bulkhead":
    case "ratelimit":
      if (!word) [state, word] = ["", "nobody waits"];
      break;
    default:
      if (!word) word = l.state || "–";
  }
  if (l.kind === "bulkhead" && gauge && gauge.value >= gauge.limit) [state, word] = ["warn", l.waiting > 0 ? `full, ${exact(l.waiting)} waiting` : "full"];
  if (l.breaker) {
    [state, word] = stateWord(l.breaker);
    level = l.breaker.calls ? `${l.breaker.failures} of ${l.breaker.calls} failed` : l.breaker.state === "closed" ? "window empty" : "";
    share = l.breaker.calls ? l.breaker.failures / l.breaker.calls : null;
    switchGlyph(c.mark, l.breaker.state);
  }
  if (l.error) [state, word] = ["warn", "unreadable"];
  put(c, null, state, word);
  text(c.a.value, count(a));
  text(c.b.value, count(b));
  text(c.a.name, an);
  text(c.b.name, bn);
  attr(c.b.node, "data-some", b > 0 ? "true" : null);
  text(c.level, level);
  bar(c, share);
  const sharers = l.sharers ?? [];
  text(c.shared, sharers.length ? "shared" : "");
  attr(c.shared, "title", sharers.length ? `also in ${sharers.join(", ")}` : null);
  attr(c.node, "aria-label", `${called(titles[l.kind] ?? l.kind, l.name)}: ${word}; ${exact(a)} ${an}, ${exact(b)} ${l.together ? "refused by all guards together" : bn}` +
    (level ? `; ${level}` : "") + (sharers.length ? `; shared with ${sharers.join(", ")}` : "") + (l.error ? `; ${l.error}` : ""));
}

function fillFn(c, row) {
  put(c, null, "", `${exact(row.in_flight)} calls in flight`);
  text(c.a.value, count(row.totals.attempts));
  text(c.b.value, count(row.totals.attempt_failures));
  attr(c.b.node, "data-some", row.totals.attempt_failures > 0 ? "true" : null);
  text(c.level, "");
  bar(c, null);
  attr(c.node, "aria-label", `The function: ${exact(row.totals.attempts)} runs, ${exact(row.totals.attempt_failures)} failed; ${exact(row.in_flight)} calls in flight`);
}

function bar(c, share) {
  attr(c.gauge, "data-on", share !== null ? "true" : null);
  c.bar.style.transform = `scaleX(${share === null ? 0 : Math.max(0, Math.min(1, share))})`;
}

const short = (n) => (n === null ? "–" : Number.isInteger(n) || n >= 100 ? count(n) : n.toFixed(1));
const label = (name) => ({ in_use: "in use" })[name] ?? name;
