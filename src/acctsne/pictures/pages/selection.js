// Rows selected by a box or a lasso, and their ids as csv. The outline is ours and so is the test of
// what lies inside: Plotly makes an object of every selected point, too much for half a million.

const selected = new Uint8Array(rowCount);
const outline = document.querySelector("#outline path");
const bar = document.getElementById("selection");
let selectedCount = 0;
let corners = []; // of the outline being drawn, in pixels of the map

// Positions among rows of the selected ones; null where nothing is selected at all.
const selectedIn = (rows) =>
  selectedCount ? Array.from(rows.keys()).filter((i) => selected[rows[i]]) : null;

const selectedRows = () => Array.from(selected.keys()).filter((row) => selected[row]);

const tool = () => document.body.dataset.tool;

function setTool(name) {
  document.body.dataset.tool = name;
  for (const button of document.querySelectorAll("#tools [data-tool]")) {
    button.setAttribute("aria-pressed", button.dataset.tool === name);
  }
}

// ---- Drawing the outline ------------------------------------------------------------------------

function place(event) {
  const box = map.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function onDown(event) {
  const onPoints = event.target.closest(".nsewdrag");
  if (tool() === "pan" || event.button !== 0 || !onPoints) return;
  event.preventDefault();
  event.stopPropagation(); // Plotly would pan
  map.setPointerCapture(event.pointerId);
  corners = [place(event)];
  hideCard();
}

function onDraw(event) {
  if (!corners.length) return;
  event.stopPropagation();
  const [x, y] = place(event);
  const [x0, y0] = tool() === "box" ? corners[0] : corners.at(-1);
  if (tool() === "box") corners = [[x0, y0], [x, y0], [x, y], [x0, y]];
  else if (Math.hypot(x - x0, y - y0) >= 3) corners.push([x, y]);
  outline.setAttribute("d", `M${corners.map((corner) => corner.join(",")).join("L")}Z`);
}

async function onUp(event) {
  if (!corners.length) return;
  const drawn = corners;
  corners = [];
  outline.removeAttribute("d");
  await select(drawn.length > 2 ? rowsInside(drawn) : [], event.shiftKey);
}

// ---- What lies inside ---------------------------------------------------------------------------

function rowsInside(polygon) {
  const area = map.querySelector(".nsewdrag").getBoundingClientRect();
  const box = map.getBoundingClientRect();
  const [left, right] = map.layout.xaxis.range;
  const [bottom, top] = map.layout.yaxis.range;
  const x = [], y = [];
  for (const [across, down] of polygon) {
    const dataX = left + ((across + box.left - area.left) / area.width) * (right - left);
    const dataY = top + ((down + box.top - area.top) / area.height) * (bottom - top);
    x.push(dataX);
    y.push(dataY);
  }
  const [lowX, highX] = [Math.min(...x), Math.max(...x)];
  const [lowY, highY] = [Math.min(...y), Math.max(...y)];
  const inside = (px, py) => {
    let odd = false; // crossings of a ray to the right
    for (let i = 0, j = x.length - 1; i < x.length; j = i++) {
      if (y[i] > py !== y[j] > py && px < x[i] + ((py - y[i]) / (y[j] - y[i])) * (x[j] - x[i])) {
        odd = !odd;
      }
    }
    return odd;
  };
  const found = [];
  drawn.forEach(({ layer, rows }) => {
    if (!shown[layer]) return; // what is hidden is not meant
    for (const row of rows) {
      const px = coordinate(row, 0), py = coordinate(row, 1);
      if (px < lowX || px > highX || py < lowY || py > highY) continue;
      if (inside(px, py)) found.push(row);
    }
  });
  return found;
}

async function select(rows, add = false) {
  if (!add) selected.fill(0);
  for (const row of rows) selected[row] = 1;
  selectedCount = selected.reduce((sum, one) => sum + one, 0);
  bar.hidden = !selectedCount;
  document.getElementById("chosen").textContent = `${selectedCount.toLocaleString("en")} selected`;
  await Plotly.restyle(
    map,
    { selectedpoints: drawn.map((part) => selectedIn(part.rows)) },
    [...drawn.keys()],
  );
}

// ---- As csv -------------------------------------------------------------------------------------

const cell = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

// Rows and ids; where maps have rows of their own, ids and the row in each map that has it.
function csv() {
  const rowIn = (row) => maps.map((each) => (each.has(row) ? each.place(row) : ""));
  const columnsOf = (row) =>
    about.apart ? [cell(idOf(row)), ...rowIn(row)] : about.ids ? [row, cell(idOf(row))] : [row];
  const named = about.apart ? ["id", ...about.maps.map(cell)] : about.ids ? ["row", "id"] : ["row"];
  return [named, ...selectedRows().map(columnsOf)].map((line) => `${line.join(",")}\n`).join("");
}

async function copy() {
  if (!selectedCount) return;
  await navigator.clipboard.writeText(csv());
  document.getElementById("chosen").textContent = `${selectedCount.toLocaleString("en")} copied`;
}

function download() {
  if (!selectedCount) return;
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = "selected.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

setTool("pan");
if (flat) {
  map.addEventListener("pointerdown", onDown, { capture: true });
  // Plotly listens to these, not to pointers.
  for (const kind of ["mousedown", "touchstart"]) {
    map.addEventListener(
      kind,
      (event) => tool() !== "pan" && event.target.closest(".nsewdrag") && event.stopPropagation(),
      { capture: true },
    );
  }
  map.addEventListener("pointermove", onDraw, { capture: true });
  map.addEventListener("pointerup", onUp, { capture: true });
  map.addEventListener("pointercancel", () => {
    corners = [];
    outline.removeAttribute("d");
  });
} else {
  for (const button of document.querySelectorAll("#tools [data-tool]")) button.hidden = true;
}
