// What Python has written into the page's script elements of type text/plain, as arrays. All text of
// the user's reaches the page as text, through textContent; Plotly is given none of it.
"use strict";

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

const codes = decode("codes", Uint16Array); // which of the labels
const rowCount = codes.length;
const everything = 65535 * about.step; // extent of the maps
const axes = flat ? ["x", "y"] : ["x", "y", "z"];

// The maps. A row is a point, of whatever maps have it; `place` is where a map has it, or -1.
const maps = about.maps.map((title, m) => {
  const steps = decode(`positions${m}`, Uint16Array); // all of x, then all of y, then all of z
  const count = steps.length / axes.length;
  const places = about.apart ? new Int32Array(rowCount).fill(-1) : null;
  if (places) decode(`rows${m}`, Uint32Array).forEach((row, i) => (places[row] = i));
  const place = (row) => (places ? places[row] : row);
  return {
    title,
    place,
    has: (row) => place(row) >= 0,
    at: (row, axis) => about.low[axis] + about.step * steps[axis * count + place(row)],
    most: axes.map((_, axis) =>
      steps.subarray(axis * count, (axis + 1) * count).reduce((a, b) => Math.max(a, b)),
    ),
  };
});

// What is shown: a map's number, or a part of the way from one to the next.
let moment = 0;
const between = () => [maps[Math.floor(moment)], maps[Math.ceil(moment)], moment % 1];
const nearest = () => maps[Math.round(moment)];

// Where a point is now. One that only one of two maps has does not move between them.
function coordinate(row, axis) {
  const [before, after, part] = between();
  if (!part || !after.has(row)) return before.at(row, axis);
  if (!before.has(row)) return after.at(row, axis);
  return (1 - part) * before.at(row, axis) + part * after.at(row, axis);
}

// Ends of an axis, with room for the points at the edge.
const ends = axes.map((_, axis) => {
  const most = Math.max(...maps.map((each) => each.most[axis]));
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
