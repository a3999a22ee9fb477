// What a screen reader is told without asking: changes of state, and nothing that merely ticks.

import { $, text, words } from "./dom.js";
import { state } from "./store.js";

const levels = new Map(); // by id
const MOST = 3; // pipelines named in one message

export function announce(frame, boot) {
  const changes = [];
  for (const row of state.rows.values()) {
    const before = levels.get(row.id);
    const quiet = (row.level === "idle" || row.level === "ok") && (before === "idle" || before === "ok");
    if (boot === frame.boot && before !== undefined && before !== row.level && !quiet) {
      changes.push(`${row.name}: ${words[row.level]}${row.why.length ? ", " + row.why[0] : ""}`);
    }
    levels.set(row.id, row.level);
  }
  for (const id of levels.keys()) if (!state.rows.has(id)) levels.delete(id);
  if (boot !== frame.boot && boot !== "") changes.unshift("The service was restarted");
  if (!changes.length) return;
  const more = changes.length - MOST;
  text($("announce"), changes.slice(0, MOST).join(". ") + (more > 0 ? `. And ${more} more pipelines changed` : "") + ".");
}
