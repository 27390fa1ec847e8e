"use strict";
// Shows the map whose data stand in the page's script elements of type text/plain. All text of the
// user's reaches the page as text: through textContent, or escaped for Plotly's own markup.

const text = (id) => document.getElementById(id).textContent;
const about = JSON.parse(text("about"));
const map = document.getElementById("map");
const card = document.getElementById("card");
const flat = about.low.length === 2;

// For a legend: not too long, and without effect, for Plotly reads a few tags and entities there.
function plain(name) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  const short = name.length > 32 ? `${name.slice(0, 31)}…` : name;
  return short.replace(/[&<>]/g, (character) => entities[character]);
}

function decode(id, Kind) {
  const characters = atob(text(id));
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = characters.charCodeAt(i);
  return new Kind(bytes.buffer);
}

// ---- Points -------------------------------------------------------------------------------------

const steps = decode("positions", Uint16Array); // all of x, then all of y, then all of z
const codes = decode("codes", Uint16Array);
const everything = 65535 * about.step; // extent of the map
const axes = flat ? ["x", "y"] : ["x", "y", "z"];

const coordinate = (row, axis) => about.low[axis] + about.step * steps[axis * codes.length + row];

function positions(rows) {
  return Object.fromEntries(
    axes.map((name, axis) => [name, Float32Array.from(rows, (row) => coordinate(row, axis))]),
  );
}

// The rows of each category, in their order.
const sizes = new Uint32Array(about.names.length);
for (const code of codes) ++sizes[code];
const rowsOf = Array.from(sizes, (size) => new Uint32Array(size));
sizes.fill(0);
codes.forEach((code, row) => (rowsOf[code][sizes[code]++] = row));

const markers = (rows, name, marker) => ({
  ...positions(rows),
  type: flat ? "scattergl" : "scatter3d",
  mode: "markers",
  name: plain(name),
  marker,
  hoverinfo: "none", // the card shows more, and as text
});

const traces = rowsOf.map((rows, code) =>
  markers(rows, about.names[code], {
    size: about.size,
    color: about.colors[code],
    opacity: about.opacity,
    line: { width: 0 },
  }),
);
// What a search has found, on top of everything.
traces.push({
  ...markers([], "found", { size: 14, color: "#000", symbol: "circle-open", line: { width: 2 } }),
  showlegend: false,
});

const hidden = { visible: false, showspikes: false };
const layout = {
  dragmode: flat ? "pan" : "orbit",
  hovermode: "closest",
  hoverdistance: 12,
  showlegend: about.names.length > 1,
  legend: { itemsizing: "constant", y: 0.94 }, // below the buttons
  margin: { l: 0, r: 0, t: 0, b: 0 },
  uirevision: "kept", // zoom and hidden categories stay when a search redraws
  xaxis: { ...hidden },
  yaxis: { ...hidden, scaleanchor: "x" },
  scene: { xaxis: hidden, yaxis: hidden, zaxis: hidden, aspectmode: "data" },
};
const config = {
  scrollZoom: true,
  responsive: true,
  displaylogo: false,
  showSendToCloud: false, // data stay here
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};

// ---- The card of one row ------------------------------------------------------------------------

const columns = about.columns.map(({ name, texts }, i) => {
  const places = texts.length === codes.length ? null : decode(`column${i}`, Uint32Array);
  return { name, of: (row) => texts[places ? places[row] : row] };
});

function fields(row) {
  const found = [about.ids ? ["id", about.ids[row]] : ["row", row]];
  if (about.labelled) found.push(["label", about.names[codes[row]]]);
  return found.concat(columns.map((column) => [column.name, column.of(row)]));
}

function thumbnail(row) {
  const { width, height, across, perSheet } = about.images;
  const place = row % perSheet;
  const scale = Math.max(1, Math.floor(112 / Math.max(width, height)));
  const picture = document.createElement("div");
  picture.className = "picture";
  Object.assign(picture.style, {
    width: `${width * scale}px`,
    height: `${height * scale}px`,
    backgroundImage: `url(data:image/png;base64,${text(`sheet${Math.floor(row / perSheet)}`)})`,
    backgroundSize: `${across * width * scale}px auto`,
    backgroundPosition:
      `${-(place % across) * width * scale}px ${-Math.floor(place / across) * height * scale}px`,
  });
  return picture;
}

function showCard(row, left, top) {
  const list = document.createElement("dl");
  for (const field of fields(row)) {
    ["dt", "dd"].forEach((tag, i) => {
      const element = document.createElement(tag);
      element.textContent = field[i];
      list.append(element);
    });
  }
  card.replaceChildren(...(about.images ? [thumbnail(row)] : []), list);
  card.dataset.row = row;
  card.hidden = false;
  // Beside the pointer, on the side where there is room.
  const box = card.getBoundingClientRect();
  card.style.left = `${left + 16 + box.width > innerWidth ? left - 16 - box.width : left + 16}px`;
  card.style.top = `${Math.max(0, Math.min(top + 16, innerHeight - box.height - 8))}px`;
}

let pointer = [0, 0];
let pinned = false; // a search's card stays until the pointer moves, whatever is redrawn

function onMove(event) {
  pointer = [event.clientX, event.clientY];
  pinned = false;
}

function onHover({ points: [point] }) {
  const rows = rowsOf[point.curveNumber];
  if (rows && !pinned) showCard(rows[point.pointNumber], ...pointer);
}

function hideCard() {
  if (!pinned) card.hidden = true;
}

// ---- Search -------------------------------------------------------------------------------------

const search = document.getElementById("search");
const mostShown = 10000;
const longEnough = 200; // milliseconds to wait for more of the user's typing or scrolling

function matches(wanted) {
  if (!wanted) return [];
  if (!about.ids) {
    const row = Number(wanted);
    return Number.isInteger(row) && row >= 0 && row < codes.length ? [row] : [];
  }
  const exact = [];
  const partial = [];
  about.ids.forEach((id, row) => {
    const lower = id.toLowerCase();
    if (lower === wanted) exact.push(row);
    else if (lower.includes(wanted)) partial.push(row);
  });
  return exact.length ? exact : partial;
}

async function find() {
  const wanted = search.value.trim().toLowerCase();
  const rows = matches(wanted);
  document.getElementById("found").textContent = wanted ? `${rows.length} found` : "";
  const shown = positions(rows.slice(0, mostShown));
  card.hidden = true;
  pinned = false;
  await Plotly.restyle(
    map,
    Object.fromEntries(axes.map((axis) => [axis, [shown[axis]]])),
    [traces.length - 1],
  );
  if (rows.length === 1) await goTo(rows[0]);
}

async function goTo(row) {
  if (flat) {
    const ranges = axes.map((name, axis) => {
      const [low, high] = map.layout[`${name}axis`].range;
      const half = Math.min(high - low, everything / 4) / 2;
      return [coordinate(row, axis) - half, coordinate(row, axis) + half];
    });
    await Plotly.relayout(map, { "xaxis.range": ranges[0], "yaxis.range": ranges[1] });
  }
  showCard(row, 0, map.getBoundingClientRect().top);
  pinned = true;
}

function afterwards(action) {
  let waiting = 0;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(action, longEnough);
  };
}

search.addEventListener("input", afterwards(find));

// ---- Larger points when few are in view ---------------------------------------------------------

let size = about.size;

async function resize() {
  const [low, high] = map.layout.xaxis.range;
  const zoom = Math.max(1, everything / Math.abs(high - low));
  const wanted = Math.min(about.size * Math.sqrt(zoom), Math.max(about.size, 7));
  if (Math.abs(Math.log(wanted / size)) < 0.2) return; // each change redraws all points
  size = wanted;
  await Plotly.restyle(map, { "marker.size": size }, [...rowsOf.keys()]);
}

// ---- Draw ---------------------------------------------------------------------------------------

Plotly.newPlot(map, traces, layout, config).then(() => {
  map.on("plotly_hover", onHover);
  map.on("plotly_unhover", hideCard);
  if (flat) map.on("plotly_relayout", afterwards(resize));
  map.on("plotly_relayouting", hideCard);
  map.addEventListener("pointermove", onMove, { capture: true }); // before Plotly's own
  document.body.dataset.ready = "yes";
});
