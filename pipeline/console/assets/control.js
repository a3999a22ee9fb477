// What can be pressed. This file is served only where the program allows control; every command is confirmed first.

import { $, h, text } from "./dom.js";
import { state } from "./store.js";
import { called } from "./format.js";
import { onPanel } from "./circuit.js";

const actions = {
  "force-open": ["Force open", "Every call that meets it is refused, in all pipelines that share it, until somebody chooses Auto or Reset. It does not probe."],
  "force-closed": ["Force closed", "Every call goes through, however many fail, in all pipelines that share it, until somebody chooses Auto or Reset."],
  auto: ["Auto", "Ends the force: the circuit starts closed and empty, and judges for itself again. Without a force nothing changes."],
  reset: ["Reset", "The circuit starts closed and empty, with its first open time; what is under way no longer counts."],
};

const dialog = $("confirm");
let asked = null; // the command
let opener = null;

function ask(panel, action) {
  const [title, meaning] = actions[action];
  asked = { boot: state.boot, id: panel.id, circuit: panel.circuit, action };
  opener = document.activeElement;
  text($("confirm-title"), `${title}: ${called("circuit", panel.name)}?`);
  text($("confirm-text"), meaning);
  text($("confirm-error"), "");
  text($("confirm-yes"), title);
  $("confirm-yes").disabled = false;
  dialog.dataset.action = action;
  dialog.showModal();
  $("confirm-no").focus();
}

async function send() {
  $("confirm-yes").disabled = true;
  let problem = "";
  try {
    const answer = await fetch("control", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked) });
    if (!answer.ok) problem = (await answer.json().catch(() => ({}))).error ?? `the service answered ${answer.status}`;
  } catch {
    problem = "the service cannot be reached: nothing is known of what became of it";
  }
  $("confirm-yes").disabled = false;
  if (problem) return text($("confirm-error"), problem);
  text($("announce"), `${actions[asked.action][0]} was done.`);
  dialog.close();
}

onPanel((panel) => {
  panel.actions.setAttribute("role", "group");
  panel.actions.setAttribute("aria-label", `Control ${called("circuit", panel.name)}`);
  panel.actions.append(...Object.entries(actions).map(([action, [title]]) => h("button", { type: "button", "data-action": action, onclick: () => ask(panel, action) }, title)));
});
$("confirm-no").addEventListener("click", () => dialog.close());
$("confirm-yes").addEventListener("click", send);
dialog.addEventListener("close", () => opener?.focus());
