// What every part of the page uses: making nodes once, and changing only what has changed.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

// h makes an element: h("li", {class: "row", onclick: f}, child, "text").
export function h(tag, attrs = {}, ...children) {
  return fill(document.createElement(tag), attrs, children);
}

// s makes an SVG element.
export function s(tag, attrs = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attrs, children);
}

function fill(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

// text sets a node's text through its one text node: the page's texts come from outside and are never markup.
export function text(node, value) {
  const now = String(value);
  const first = node.firstChild;
  if (first && first.nodeType === Node.TEXT_NODE && !first.nextSibling) {
    if (first.data !== now) first.data = now;
  } else {
    node.textContent = now;
  }
}

export function attr(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    node.setAttribute(name, value);
  }
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

// slots keeps n children of a list, made by make(i), and hides the others: what moves in a list is its text, never its boxes.
export function slots(list, n, make) {
  while (list.children.length < n) list.append(make(list.children.length));
  for (let i = 0; i < list.children.length; i++) show(list.children[i], i < n);
}

// The shapes of the levels: a state is never told by its colour alone.
export const shapes = {
  bad: "M5 1h6l4 4v6l-4 4H5l-4-4V5zM7 4h2v5H7zM7 10.4h2v2H7z",
  warn: "M8 1 15.4 14.6H.6zM7.1 6h1.8v4.2H7.1zM7.1 11.2h1.8V13H7.1z",
  ok: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zM7 11.2 3.9 8.1l1.2-1.2L7 8.8l3.9-3.9 1.2 1.2z",
  idle: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zM8 2.6a5.4 5.4 0 1 1 0 10.8A5.4 5.4 0 0 1 8 2.6z",
};

export const words = { bad: "Trouble", warn: "Attention", ok: "Healthy", idle: "Idle" };

export function glyph(level) {
  return s("svg", { class: "glyph", viewBox: "0 0 16 16", "aria-hidden": "true" }, s("path", { d: shapes[level] ?? shapes.idle }));
}
