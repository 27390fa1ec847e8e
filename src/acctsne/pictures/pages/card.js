// The card of one row: its id, label, fields and thumbnail.

const card = document.getElementById("card");

function fields(row) {
  const found = [about.ids ? ["id", about.ids[row]] : ["row", row]];
  if (about.labelled) found.push(["label", about.names[codes[row]]]);
  found.push(...columns.map((column) => [column.name, column.of(row)]));
  if (about.apart) {
    found.push(["in", maps.filter((each) => each.has(row)).map((each) => each.title).join(", ")]);
  }
  return found;
}

function thumbnail(row) {
  const { width, height, across, perSheet } = about.images;
  const place = row % perSheet;
  const scale = Math.max(1, Math.floor(112 / Math.max(width, height)));
  const picture = element("div");
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
  const list = element("dl");
  for (const [name, value] of fields(row)) list.append(element("dt", name), element("dd", value));
  card.replaceChildren(...(about.images ? [thumbnail(row)] : []), list);
  card.dataset.row = row;
  card.hidden = false;
  // Beside the pointer, on the side where there is room.
  const box = card.getBoundingClientRect();
  const beside = left + 16 + box.width > innerWidth ? left - 16 - box.width : left + 16;
  card.style.left = `${Math.max(0, beside)}px`;
  card.style.top = `${Math.max(0, Math.min(top + 16, innerHeight - box.height - 8))}px`;
}

let pointer = [0, 0];
let pinned = false; // a search's card stays until the pointer moves, whatever is redrawn

function onMove(event) {
  pointer = [event.clientX, event.clientY];
  pinned = false;
}

function onHover({ points: [point] }) {
  const part = drawn[point.curveNumber];
  if (part && !pinned) showCard(part.rows[point.pointNumber], ...pointer);
}

function hideCard() {
  if (!pinned) card.hidden = true;
}
