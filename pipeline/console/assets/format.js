// Numbers and times as a person reads them. Widths are kept: digits are tabular, and what may grow is padded with figure spaces.

const FIGURE = "\u2007";

export function count(n) {
  if (n === null || n === undefined) return "–";
  if (n < 10000) return String(Math.round(n));
  if (n < 999500) return short(n / 1e3) + "k";
  if (n < 999.5e6) return short(n / 1e6) + "M";
  return short(n / 1e9) + "G";
}

function short(x) {
  return x < 9.95 ? x.toFixed(1) : String(Math.round(x));
}

// exact has its thousands apart.
export function exact(n) {
  return n === null ? "–" : n.toLocaleString("en", { maximumFractionDigits: 1 });
}

// seconds of a latency: three digits and a unit.
export function latency(s) {
  if (s === null || s === undefined) return "–";
  if (s < 0.001) return digits(s * 1e6) + " µs";
  if (s < 1) return digits(s * 1e3) + " ms";
  if (s < 100) return digits(s) + " s";
  return Math.round(s) + " s";
}

function digits(x) {
  return x < 9.95 ? x.toFixed(1) : String(Math.round(x));
}

// span is a time that has passed or is left, in milliseconds.
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });

// clock is the viewer's time of day, with the date where it is not about today.
export function clock(ms, now = ms) {
  return (Math.abs(now - ms) < 20 * 3600e3 ? time : day).format(ms);
}

export function percent(share) {
  return share === null ? "–" : (share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0) + " %";
}

export function pad(text, width) {
  return FIGURE.repeat(Math.max(0, width - text.length)) + text;
}

export function plural(n, one, many = one + "s") {
  return n === 1 ? "1 " + one : exact(n) + " " + many;
}

// a name that was given none
export function called(kind, name) {
  return name ? `${kind} “${name}”` : kind;
}
