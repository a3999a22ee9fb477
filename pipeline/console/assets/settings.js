// A registry's settings of what this pipeline is made of. They are asked for when a pipeline is chosen, and then now and then.

import { $, h, show } from "./dom.js";
import { called } from "./format.js";

const EVERY = 10000;
const sections = {
  retry: "retry", breaker: "circuit-breaker", ratelimit: "rate-limiter", bulkhead: "bulkhead", timeout: "time-limiter",
  "attempt-timeout": "time-limiter", cooldown: "cooldown",
};

let all = [];
let asked = -Infinity;
let shape = "";

export async function drawSettings(row) {
  draw(row);
  if (performance.now() - asked < EVERY) return;
  asked = performance.now();
  try {
    const answer = await fetch("settings.json");
    if (answer.ok) all = await answer.json();
  } catch {
    return; // the stream tells that the service is gone
  }
  draw(row);
}

function draw(row) {
  const wanted = [["pipelines", row.name], ...row.layers.map((l) => [sections[l.kind], l.name])];
  const mine = [];
  for (const [section, name] of wanted) {
    const of = all.filter((x) => x.section === section && x.name === name);
    if (of.length && !mine.some(([s, n]) => s === section && n === name)) mine.push([section, name, of]);
  }
  const now = row.id + JSON.stringify(mine);
  if (now === shape) return;
  shape = now;
  show($("settings-panel"), mine.length > 0);
  $("settings").replaceChildren(...mine.map(([section, name, of]) => h("section", {}, h("h4", {}, called(section, name)),
    h("dl", {}, ...of.flatMap((x) => [h("dt", {}, x.key), h("dd", { class: x.default ? "default" : "" }, x.value + (x.default ? " (default)" : ""))])))));
}
