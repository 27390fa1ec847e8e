// How points are coloured: layers of rows, each of one colour or of a number a row, and the legend.

// Viridis, as matplotlib has it, without the darkest end, which is lost on a dark page.
const ramp = ["#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];

// Rows by their code, in their order.
function grouped(codeOf, count) {
  const sizes = new Uint32Array(count);
  for (let row = 0; row < rowCount; ++row) ++sizes[codeOf(row)];
  const groups = Array.from(sizes, (size) => new Uint32Array(size));
  sizes.fill(0);
  for (let row = 0; row < rowCount; ++row) {
    const code = codeOf(row);
    groups[code][sizes[code]++] = row;
  }
  return groups;
}

function byLabel() {
  const rows = grouped((row) => codes[row], about.names.length);
  return { layers: about.names.map((name, i) => ({ name, color: about.colors[i], rows: rows[i] })) };
}

function byCategory({ texts, places }) {
  const named = [...new Set(texts)].filter((name) => name !== "");
  const code = new Map([...named, ""].map((name, i) => [name, i]));
  const codeOfText = texts.map((name) => code.get(name));
  const rows = grouped((row) => codeOfText[places ? places[row] : row], named.length + 1);
  const layers = named.map((name, i) => ({ name, color: about.palette[i], rows: rows[i] }));
  if (rows[named.length].length) {
    layers.push({ name: "none", color: about.missing, rows: rows[named.length] });
  }
  return { layers };
}

function byNumber(column) {
  const numbers = column.texts.map((entry) => (entry === "" ? NaN : Number(entry)));
  const numberOf = (row) => numbers[column.places ? column.places[row] : row];
  const [rows, without] = grouped((row) => (Number.isNaN(numberOf(row)) ? 1 : 0), 2);
  const sorted = Float32Array.from(rows, numberOf).sort();
  const at = (part) => sorted[Math.round(part * (sorted.length - 1))];
  const [low, high] = [at(0.005), at(0.995)]; // a few outliers do not take all the colours
  const layers = [{ name: column.name, rows, numberOf, low, high }];
  if (without.length) layers.unshift({ name: "none", color: about.missing, rows: without });
  return { layers, scale: { low, high } };
}

const choices = [
  ...(about.labelled || about.names.length > 1 ? [{ name: "label", make: byLabel }] : []),
  ...columns
    .filter(({ kind }) => kind !== "text")
    .map((column) => ({
      name: column.name,
      make: () => (column.kind === "number" ? byNumber(column) : byCategory(column)),
    })),
];
if (!choices.length || choices[0].make !== byLabel) choices.unshift({ name: "nothing", make: byLabel });

let coloring = choices[0].make();
let layers = coloring.layers;
let shown = layers.map(() => true);
// Diameters suit a window of a thousand pixels; points on a phone are smaller.
const usual = about.size * Math.min(1, Math.max(0.6, map.clientWidth / 700));
let size = usual;

// What is drawn of each layer: its rows in the map that is shown. On the way between two maps, those
// in both, and apart from them those that fade away and those that appear.
let drawn = [];
let dividedFor = null;

function divide() {
  const [before, after, part] = between();
  const wanted = [layers, before, part ? after : before];
  if (!dividedFor || wanted.some((each, i) => each !== dividedFor[i])) {
    dividedFor = wanted;
    drawn = layers.flatMap(({ rows }, layer) => {
      if (!about.apart) return [{ layer, rows }];
      if (!part) return [{ layer, rows: rows.filter(before.has) }];
      return [
        { layer, rows: rows.filter((row) => before.has(row) && after.has(row)) },
        { layer, rows: rows.filter((row) => before.has(row) && !after.has(row)), going: true },
        { layer, rows: rows.filter((row) => !before.has(row) && after.has(row)), coming: true },
      ];
    });
  }
  for (const each of drawn) each.fade = each.going ? 1 - part : each.coming ? part : 1;
}

const markers = (rows, marker) => ({
  ...positions(rows),
  type: flat ? "scattergl" : "scatter3d",
  mode: "markers",
  marker,
  hoverinfo: "none", // the card shows more, and as text
  unselected: { marker: { opacity: 0.06 } },
});

function traces() {
  divide();
  const points = drawn.map(({ layer, rows, fade }) => {
    const { color, numberOf, low, high } = layers[layer];
    const scaled = () => ({
      color: Float32Array.from(rows, numberOf),
      cmin: low,
      cmax: high,
      colorscale: ramp.map((code, k) => [k / (ramp.length - 1), code]),
    });
    return {
      ...markers(rows, {
        size,
        opacity: about.opacity * fade,
        line: { width: 0 },
        ...(numberOf ? scaled() : { color }),
      }),
      visible: shown[layer],
      selectedpoints: selectedIn(rows),
    };
  });
  // What a search has found, on top of everything.
  const ring = { size: 14, color: dark() ? "#fff" : "#000", symbol: "circle-open", line: { width: 2 } };
  return [...points, markers(foundRows.filter(nearest().has), ring)];
}

const legend = document.getElementById("legend");

function drawLegend() {
  legend.hidden = layers.length < 2 && !coloring.scale;
  legend.replaceChildren(...(coloring.scale ? [scaleBar(coloring.scale)] : layers.map(entry)));
}

function entry({ name, color, rows }, i) {
  const button = element("button");
  button.title = `${name}: click to hide or show, double-click to see it alone`;
  button.setAttribute("aria-pressed", shown[i]);
  const dot = element("i");
  dot.style.background = color;
  button.append(dot, element("span", name), element("small", countText(rows)));
  // A double click is two clicks first, which undo each other.
  button.addEventListener("click", (event) =>
    event.shiftKey ? alone(i) : show(shown.map((visible, k) => (k === i ? !visible : visible))),
  );
  button.addEventListener("dblclick", () => alone(i));
  return button;
}

const countText = (rows) => rows.filter(nearest().has).length.toLocaleString("en");

// Numbers of points in the map that is shown.
function countAgain() {
  legend.querySelectorAll("small").forEach((small, i) => (small.textContent = countText(layers[i].rows)));
}

function scaleBar({ low, high }) {
  const box = element("div");
  box.className = "scale";
  const bar = element("div");
  bar.className = "bar";
  bar.style.background = `linear-gradient(to right, ${ramp.join(", ")})`;
  const ends = element("div");
  ends.className = "ends";
  ends.append(...[low, high].map((end) => element("span", String(Number(end.toPrecision(3))))));
  box.append(bar, ends);
  return box;
}

function alone(i) {
  const already = shown.every((visible, k) => visible === (k === i));
  return show(shown.map((_, k) => already || k === i));
}

function show(wanted) {
  shown = wanted;
  legend.querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", shown[i]));
  return Plotly.restyle(map, { visible: drawn.map(({ layer }) => shown[layer]) }, [...drawn.keys()]);
}

const menu = document.getElementById("color");
menu.append(...choices.map(({ name }, i) => Object.assign(element("option", name), { value: i })));
document.getElementById("colors").hidden = choices.length < 2;
menu.addEventListener("change", async () => {
  coloring = choices[menu.value].make();
  layers = coloring.layers;
  shown = layers.map(() => true);
  drawLegend();
  await redraw();
});
