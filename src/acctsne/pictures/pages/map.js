// Draws the map with Plotly, and again when colours, the theme or the map change.

const hidden = { visible: false, showspikes: false };

const layout = () => ({
  dragmode: flat ? "pan" : "orbit",
  hovermode: "closest",
  hoverdistance: 12,
  showlegend: false, // ours is beside the map
  margin: { l: 0, r: 0, t: 0, b: 0 },
  paper_bgcolor: dark() ? "#14171c" : "#fff",
  plot_bgcolor: dark() ? "#14171c" : "#fff",
  // The view stays when something is redrawn, whether a finger or a key has changed it.
  uirevision: "kept",
  // Given, so that hiding a category moves nothing.
  xaxis: { ...hidden, range: map.layout?.xaxis.range ?? ends[0] },
  yaxis: { ...hidden, range: map.layout?.yaxis.range ?? ends[1], scaleanchor: "x" },
  scene: {
    ...Object.fromEntries(axes.map((name, axis) => [`${name}axis`, { ...hidden, range: ends[axis] }])),
    aspectmode: "data",
    ...(map.layout?.scene?.camera ? { camera: map.layout.scene.camera } : {}),
  },
});
const config = { scrollZoom: true, responsive: true, displayModeBar: false };

const redraw = () => Plotly.react(map, traces(), layout(), config);

// Larger points when few are in view.
async function resize() {
  const [low, high] = map.layout.xaxis.range;
  const closer = Math.max(1, everything / Math.abs(high - low));
  const wanted = Math.min(usual * Math.sqrt(closer), Math.max(usual, 7));
  if (Math.abs(Math.log(wanted / size)) < 0.2) return; // each change redraws all points
  size = wanted;
  await Plotly.restyle(map, { "marker.size": size }, [...drawn.keys()]);
}

drawLegend();
redraw().then(() => {
  map.on("plotly_hover", onHover);
  map.on("plotly_unhover", hideCard);
  if (flat) map.on("plotly_relayout", afterwards(resize));
  map.on("plotly_relayouting", hideCard);
  map.addEventListener("pointermove", onMove, { capture: true }); // before Plotly's own
  document.body.dataset.ready = "yes";
});
