// Paths of curves.

// line is the path of values, the newest at the right edge of width, of n seconds in all; closed = down to the axis. Unknown
// values (null) are gaps.
export function line(values, n, width, height, top, closed) {
  const step = width / (n - 1);
  const first = n - values.length;
  let d = "";
  let open = false;
  let start = 0;
  const end = (x) => (closed && open ? `L${fix(x)} ${height}L${fix(start)} ${height}Z` : "");
  values.forEach((v, i) => {
    const x = (first + i) * step;
    if (v === null) {
      d += end(x - step);
      open = false;
      return;
    }
    const y = height - Math.min(1, v / top) * (height - 1);
    if (!open) start = x;
    d += `${open ? "L" : "M"}${fix(x)} ${fix(y)}`;
    if (!open && !closed) d += "h.01"; // a lone second is a dot
    open = true;
  });
  return d + end(width);
}

function fix(x) {
  return Math.round(x * 100) / 100;
}

// ceiling is a round number that is no less than the highest value.
export function ceiling(highest, least) {
  if (highest <= least) return least;
  const power = 10 ** Math.floor(Math.log10(highest));
  for (const m of [1, 2, 3, 5, 7.5, 10]) if (m * power >= highest * 0.9999) return m * power;
  return 10 * power;
}
