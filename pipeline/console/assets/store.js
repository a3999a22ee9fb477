// What the page knows. Frames come in, everything else reads.

const KEPT = 300;
const SPARK = 60;
const CURVES = ["calls", "failed", "refused", "retries", "in_flight", "p50", "p95", "p99"];

export const state = {
  boot: "",
  seq: 0,
  time: 0, // the server's, in milliseconds
  error: "",
  rows: new Map(), // by id
  sparks: new Map(),
  journal: [], // oldest first
  series: null, // of the chosen pipeline
};

// apply takes a frame. It says whether the frame is the next second of what was known; if not, curves have a gap.
export function apply(frame) {
  const next = frame.from !== undefined && frame.boot === state.boot && frame.from === state.seq;
  if (frame.from !== undefined && !next) return false; // of another life: all of it comes with the next connection
  if (!next) {
    state.rows.clear();
    state.sparks.clear();
    state.journal = [];
  }
  const restarted = state.boot !== "" && frame.boot !== state.boot;
  Object.assign(state, { boot: frame.boot, seq: frame.seq, time: frame.time, error: frame.error ?? "" });
  for (const row of frame.rows) {
    if (row.spark) {
      state.sparks.set(row.id, row.spark);
      delete row.spark;
    }
    state.rows.set(row.id, row);
  }
  if (next) {
    for (const row of state.rows.values()) {
      // A row that was not sent is as it was: it had no call in this second, nor in the one before.
      const spark = state.sparks.get(row.id);
      push(spark.calls, row.last.calls, SPARK);
      push(spark.bad, row.last.failed + row.last.refused, SPARK);
      if (state.series?.id === row.id && state.series.seq === frame.seq - 1) extend(state.series, row, frame.seq);
    }
  }
  state.journal = state.journal.concat(frame.journal).slice(-200);
  if (restarted) state.series = null;
  return next;
}

function push(list, value, most) {
  list.push(value);
  if (list.length > most) list.shift();
}

function extend(series, row, seq) {
  const [p50, p95, p99] = row.latency;
  const point = { calls: row.last.calls, failed: row.last.failed, refused: row.last.refused, retries: row.last.retries, in_flight: row.in_flight, p50, p95, p99 };
  for (const name of CURVES) push(series[name], point[name], KEPT);
  series.seq = seq;
}

// load fetches five minutes of one pipeline; seconds that pass meanwhile are not lost.
export async function load(id) {
  const answer = await fetch(`series.json?id=${id}`);
  if (!answer.ok) return;
  const series = await answer.json();
  const row = state.rows.get(id);
  if (series.boot !== state.boot || !row) return;
  if (series.seq === state.seq - 1) extend(series, row, state.seq);
  state.series = series;
}

// current says whether the curves are those of this pipeline up to now; a second more is on its way.
export function current(id) {
  return state.series?.id === id && state.series.seq >= state.seq;
}

const order = { bad: 0, warn: 1, ok: 2, idle: 3 };

// sorted has trouble first, then names; what is no better than equal stays in place.
export function sorted() {
  return [...state.rows.values()].sort((a, b) => order[a.level] - order[b.level] || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id - b.id));
}

// key is a pipeline's address in the page: its name, and its number where an earlier one has the same name.
export function key(row) {
  for (const other of state.rows.values()) {
    if (other.name === row.name && other.id < row.id) return `${row.name}~${row.id}`;
  }
  return row.name;
}

export function find(wanted) {
  for (const row of state.rows.values()) if (key(row) === wanted) return row;
  return null;
}
