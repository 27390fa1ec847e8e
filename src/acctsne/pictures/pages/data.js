"use strict";
// What Python has written into the page's script elements of type text/plain, as arrays. All text of
// the user's reaches the page as text, through textContent; Plotly is given none of it.

const text = (id) => document.getElementById(id).textContent;
const about = JSON.parse(text("about"));
const map = document.getElementById("map");
const flat = about.low.length === 2;

function decode(id, Kind) {
  const characters = atob(text(id));
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = characters.charCodeAt(i);
  return new Kind(bytes.buffer);
}

const steps = decode("positions", Uint16Array); // all of x, then all of y, then all of z
const codes = decode("codes", Uint16Array); // which of the labels
const rowCount = codes.length;
const everything = 65535 * about.step; // extent of the map
const axes = flat ? ["x", "y"] : ["x", "y", "z"];

const coordinate = (row, axis) => about.low[axis] + about.step * steps[axis * rowCount + row];

// Ends of an axis, with room for the points at the edge.
const ends = axes.map((_, axis) => {
  const most = steps.subarray(axis * rowCount, (axis + 1) * rowCount).reduce((a, b) => Math.max(a, b));
  const room = 0.04 * everything;
  return [about.low[axis] - room, about.low[axis] + about.step * most + room];
});

function positions(rows) {
  return Object.fromEntries(
    axes.map((name, axis) => [name, Float32Array.from(rows, (row) => coordinate(row, axis))]),
  );
}

const columns = about.columns.map(({ name, texts, kind }, i) => {
  const places = texts.length === rowCount ? null : decode(`column${i}`, Uint32Array);
  return { name, texts, kind, places, of: (row) => texts[places ? places[row] : row] };
});

const idOf = (row) => (about.ids ? about.ids[row] : String(row));

const element = (tag, content = "") =>
  Object.assign(document.createElement(tag), { textContent: content });

const dark = () => document.documentElement.dataset.theme === "dark";
