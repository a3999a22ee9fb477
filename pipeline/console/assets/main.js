// The page: what is chosen, and who draws it.

import { $, show, text, attr } from "./dom.js";
import { connect } from "./stream.js";
import { state, apply, load, current, find, key, sorted } from "./store.js";
import { clock } from "./format.js";
import { drawOverview, drawTally, focusRow } from "./overview.js";
import { drawDetail } from "./detail.js";
import { announce } from "./announce.js";

let chosen = null; // a key
let loading = false;
const wide = matchMedia("(min-width: 60rem)");

function address() {
  if (!location.hash.startsWith("#/")) return null;
  try {
    return decodeURIComponent(location.hash.slice(2));
  } catch {
    return null; // somebody's own idea of an address
  }
}

function choose(byHand) {
  const wanted = address();
  const before = chosen;
  if (wanted !== null) chosen = wanted;
  else if (!wide.matches) chosen = null;
  else if (chosen === null || !find(chosen)) chosen = state.rows.size ? key(sorted()[0]) : null;
  document.body.classList.toggle("chosen", wanted !== null);
  draw();
  if (!byHand || before === chosen) return;
  if (wanted !== null && !wide.matches) $("name").focus();
  if (wanted === null && before !== null) focusRow(before);
}

function draw() {
  drawTally();
  drawOverview(chosen);
  const row = chosen === null ? null : find(chosen);
  show($("detail"), row !== null || chosen !== null);
  drawDetail(row, chosen);
  if (row && !current(row.id) && !loading) {
    loading = true;
    load(row.id).catch(() => {}).finally(() => {
      loading = false;
      drawDetail(find(chosen), chosen);
    });
  }
}

function second(frame) {
  const known = state.boot;
  apply(frame);
  if (known !== frame.boot) choose(false);
  else draw();
  announce(frame, known);
  show($("split"), true);
  show($("waiting"), false);
}

const said = { live: "Live", lost: "Lost, trying again", paused: "Paused" };

function link(now) {
  attr($("link"), "data-state", now);
  text($("link-text"), state.error && now === "live" ? state.error : said[now]);
  text($("link-time"), state.time ? (now === "live" ? "" : "as of ") + clock(state.time) : "");
  document.body.classList.toggle("stale", now !== "live");
}

addEventListener("hashchange", () => choose(true));
wide.addEventListener("change", () => choose(false));
addEventListener("keydown", (e) => {
  const typing = e.target instanceof HTMLInputElement || document.querySelector("dialog[open]");
  if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey) {
    e.preventDefault();
    $("filter").focus();
  }
});
connect("stream", second, link);
