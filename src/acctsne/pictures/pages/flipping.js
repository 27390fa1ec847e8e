// From map to map: a slider, two buttons and two keys, and points that move on the way.

const slider = document.getElementById("moment");
const title = document.getElementById("shown");
const flipTime = 900; // milliseconds from a map to the next
const still = matchMedia("(prefers-reduced-motion: reduce)");
let goal = 0; // the map that is shown, or on the way
let flight = 0; // counts the ways, so that a later one ends those before

function tellMap() {
  const { title: name } = nearest();
  title.textContent = `${name} (${Math.round(moment) + 1} of ${maps.length})`;
  slider.value = moment;
  slider.setAttribute("aria-valuetext", name);
}

async function setMoment(wanted) {
  const counted = nearest();
  moment = wanted;
  hideCard();
  tellMap();
  if (nearest() !== counted) countAgain();
  await redraw();
}

async function flipTo(wanted) {
  goal = wanted;
  const mine = ++flight;
  const [start, began] = [moment, performance.now()];
  const duration = still.matches ? 0 : flipTime * Math.min(2, Math.abs(goal - start));
  for (let part = 0; part < 1; ) {
    await new Promise(requestAnimationFrame);
    if (mine !== flight) return;
    part = duration ? Math.min(1, (performance.now() - began) / duration) : 1;
    const eased = part * part * (3 - 2 * part);
    await setMoment(part < 1 ? start + eased * (goal - start) : goal);
  }
}

const flip = (by) => flipTo(Math.min(maps.length - 1, Math.max(0, goal + by)));

if (maps.length > 1) {
  document.getElementById("maps").hidden = false;
  slider.max = maps.length - 1;
  document
    .getElementById("stops")
    .append(...maps.map((_, m) => Object.assign(element("option"), { value: m })));
  tellMap();
  slider.addEventListener("input", () => {
    ++flight;
    goal = Math.round(slider.valueAsNumber);
    setMoment(slider.valueAsNumber);
  });
  slider.addEventListener("change", () => flipTo(goal)); // let go between two maps
  slider.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    flip(by);
  });
}
