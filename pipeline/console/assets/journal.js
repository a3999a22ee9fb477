// What has changed, in all pipelines, the newest first.

import { $, h, text, attr, slots } from "./dom.js";
import { state } from "./store.js";
import { clock, called } from "./format.js";

const LEAST = 6;

export function drawJournal() {
  const list = $("journal");
  const all = state.journal;
  slots(list, Math.max(LEAST, all.length), () => h("li", {}, h("span", { class: "when" }, ""), h("span", { class: "tag" }, ""), h("span", { class: "message" }, "")));
  [...list.children].forEach((li, i) => {
    const e = all[all.length - 1 - i];
    const [when, tag, message] = li.children;
    attr(li, "data-used", e ? "true" : null);
    text(when, e ? clock(e.at, state.time) : "");
    text(tag, e ? (e.to ?? e.kind) : "");
    attr(tag, "data-to", e?.to ?? null);
    text(message, e ? line(e) : i === 0 ? "nothing has changed since the console started" : "");
    attr(li, "title", e ? line(e) : null);
  });
}

function line(e) {
  const more = e.before ? ` (${e.before} more before it)` : "";
  if (e.to) return `${called(e.kind, e.name)}: ${e.from} → ${e.to}, ${e.text}${more}`;
  return `${called(e.kind, e.name)}: ${e.text}${more}`;
}
