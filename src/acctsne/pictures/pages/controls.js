// Zoom, movement, fingers, theme and the keyboard.

function zoom(factor) {
  if (!flat) {
    const { eye } = map.layout.scene.camera ?? { eye: { x: 1.25, y: 1.25, z: 1.25 } };
    const moved = Object.fromEntries(Object.entries(eye).map(([axis, at]) => [axis, at * factor]));
    return Plotly.relayout(map, { "scene.camera.eye": moved });
  }
  return view((low, high) => {
    const [middle, half] = [(low + high) / 2, ((high - low) / 2) * factor];
    return [middle - half, middle + half];
  });
}

// Change the ranges of both axes; `change` is told which one, 0 or 1.
function view(change) {
  const ranges = axes.map((name, axis) => change(...map.layout[`${name}axis`].range, axis));
  return Plotly.relayout(map, { "xaxis.range": ranges[0], "yaxis.range": ranges[1] });
}

function move(right, up) {
  if (!flat) return;
  const parts = [right, up];
  view((low, high, axis) => [low, high].map((end) => end + (parts[axis] * (high - low)) / 8));
}

// Two fingers: what they hold stays under them. Plotly knows one finger only.
let pinch = null; // where they began: the point between them, their distance, the ranges

function fingers({ touches: [one, other] }) {
  return {
    at: [(one.clientX + other.clientX) / 2, (one.clientY + other.clientY) / 2],
    apart: Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY),
  };
}

function onPinchStart(event) {
  if (event.touches.length !== 2) return;
  event.stopPropagation();
  event.preventDefault();
  hideCard();
  const ranges = axes.map((name) => [...map.layout[`${name}axis`].range]);
  pinch = { ...fingers(event), ranges, box: map.querySelector(".nsewdrag").getBoundingClientRect() };
}

function onPinch(event) {
  if (!pinch || event.touches.length !== 2) return;
  event.stopPropagation();
  event.preventDefault();
  const { at, apart } = fingers(event);
  const factor = pinch.apart / Math.max(apart, 1);
  const { left, top, width, height } = pinch.box;
  const parts = (place) => [(place[0] - left) / width, 1 - (place[1] - top) / height];
  const [began, now] = [parts(pinch.at), parts(at)];
  view((low, high, axis) => {
    const [first, last] = pinch.ranges[axis];
    const held = first + began[axis] * (last - first);
    const span = (last - first) * factor;
    return [held - now[axis] * span, held + (1 - now[axis]) * span];
  });
}

if (flat) {
  map.addEventListener("touchstart", onPinchStart, { capture: true, passive: false });
  map.addEventListener("touchmove", onPinch, { capture: true, passive: false });
  map.addEventListener("touchend", () => (pinch = null), { capture: true });
}

function whole() {
  const everywhere = { "xaxis.range": ends[0], "yaxis.range": ends[1] };
  return Plotly.relayout(map, flat ? everywhere : { "scene.camera": null });
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

async function changeTheme(theme) {
  setTheme(theme);
  await redraw();
}

const actions = {
  closer: () => zoom(0.7),
  farther: () => zoom(1 / 0.7),
  whole,
  picture: () => Plotly.downloadImage(map, { format: "png", scale: 2, filename: document.title }),
  theme: () => changeTheme(dark() ? "light" : "dark"),
  earlier: () => flip(-1),
  later: () => flip(1),
  copy,
  download,
  clear: () => select([]),
};

const keys = {
  p: () => setTool("pan"),
  b: () => setTool("box"),
  l: () => setTool("lasso"),
  "+": actions.closer,
  "=": actions.closer, // where + needs Shift
  "-": actions.farther,
  0: actions.whole,
  d: actions.theme,
  c: actions.copy,
  s: actions.download,
  ",": actions.earlier,
  ".": actions.later,
  Escape: actions.clear,
  "/": () => search.focus(),
  ArrowLeft: () => move(-1, 0),
  ArrowRight: () => move(1, 0),
  ArrowUp: () => move(0, 1),
  ArrowDown: () => move(0, -1),
};
if (!flat) ["b", "l"].forEach((key) => delete keys[key]);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=range]), select")) {
    if (["Escape", "Enter"].includes(event.key)) map.focus();
    return;
  }
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.tool) setTool(button.dataset.tool);
  else if (button?.dataset.action) actions[button.dataset.action]();
});

const darkPreferred = matchMedia("(prefers-color-scheme: dark)");
setTheme(darkPreferred.matches ? "dark" : "light");
// What the system has turned to, whatever the page was turned to by hand.
darkPreferred.addEventListener("change", ({ matches }) => changeTheme(matches ? "dark" : "light"));
