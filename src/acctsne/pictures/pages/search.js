// Finding rows by their ids.

const search = document.getElementById("search");
const mostShown = 10000;
const longEnough = 200; // milliseconds to wait for more of the user's typing or scrolling
let foundRows = [];

function matches(wanted) {
  if (!wanted) return [];
  if (!about.ids) {
    const row = Number(wanted);
    return Number.isInteger(row) && row >= 0 && row < rowCount ? [row] : [];
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
  foundRows = rows.slice(0, mostShown);
  const found = positions(foundRows.filter(nearest().has));
  card.hidden = true;
  pinned = false;
  await Plotly.restyle(
    map,
    Object.fromEntries(axes.map((axis) => [axis, [found[axis]]])),
    [drawn.length],
  );
  if (rows.length === 1) await goTo(rows[0]);
}

async function goTo(row) {
  if (!nearest().has(row)) await flipTo(maps.findIndex((each) => each.has(row)));
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
