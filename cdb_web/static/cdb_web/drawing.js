// What draws lanes and axes on canvases, for timelines and for previews. The server sends one character for each pixel.
"use strict";

const HEIGHT = 22;
// From top to bottom: marks, the lane with its changes, and a strip of its own for gaps, so that nothing is painted over them.
const MARKS = 3;
const BAR = 15;
const STRIP = 17;

function colors() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const found = { text: color("--pico-color") };
  ["valid", "change", "gap", "differs", "added", "outside"].forEach((name) => (found[name] = color(`--lane-${name}`)));
  return found;
}

function context(canvas, width) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  const found = canvas.getContext("2d");
  found.scale(ratio, ratio);
  return found;
}

// Calls a function for each run of equal characters that are not "0", with its start and its length.
function runs(text, call) {
  for (let start = 0, end; start < text.length; start = end) {
    for (end = start + 1; text[end] === text[start]; end += 1);
    if (text[start] !== "0") {
      call(text[start], start, end - start);
    }
  }
}

// Draws a lane: strings with a character for each pixel, and `is_open`. Those of `Lane` in lanes.py are `states`, `changes` and
// `ends`; with a 1 for each marked pixel, there may be `differs`, `added` and `removed`.
function draw(canvas, lane, palette = colors()) {
  const width = lane.states.length;
  const drawing = context(canvas, width);
  runs(lane.states, (state, start, length) => {
    if (state !== "g") {
      drawing.fillStyle = state === "o" ? palette.outside : palette.valid;
      drawing.fillRect(start, state === "o" ? 8 : MARKS, length, state === "o" ? 2 : BAR - MARKS);
    }
  });
  drawing.fillStyle = palette.change;
  const ends = lane.ends || "";
  runs(lane.changes, (count, start, length) => {
    drawing.globalAlpha = Math.min(1, 0.35 + Number(count) * 0.1);
    for (let pixel = start; pixel < start + length; pixel += 1) {
      // A start that ends the IOV before it is a broken line.
      const parts = ends[pixel] === "n" ? [[MARKS, 4], [BAR - 4, 4]] : [[MARKS, BAR - MARKS]];
      parts.forEach(([top, height]) => drawing.fillRect(pixel, top, 1, height));
    }
  });
  drawing.globalAlpha = 1;
  if (lane.is_open) {
    drawing.beginPath();
    drawing.moveTo(width - 8, MARKS);
    drawing.lineTo(width, (MARKS + BAR) / 2);
    drawing.lineTo(width - 8, BAR);
    drawing.fill();
  }
  const mark = (marks, color, top) => {
    drawing.fillStyle = color;
    runs(marks || "", (_, start, length) => drawing.fillRect(start, top, length, 4));
  };
  mark(lane.differs, palette.differs, 0);
  mark(lane.added, palette.added, 0);
  mark(lane.removed, palette.differs, BAR - 4);
  drawing.fillStyle = palette.gap;
  runs(lane.states, (state, start, length) => "gp".includes(state) && drawing.fillRect(start, STRIP, length, HEIGHT - STRIP));
}

function drawLabels(canvas, width, labels) {
  const drawing = context(canvas, width);
  drawing.fillStyle = colors().text;
  drawing.font = "12px sans-serif";
  let free = 0;
  for (const [position, text] of labels) {
    const length = drawing.measureText(text).width;
    const start = Math.min(position + 3, width - length);
    drawing.fillRect(position, HEIGHT - 5, 1, 5);
    if (start >= free) {
      drawing.fillText(text, start, HEIGHT - 8);
      free = start + length + 4;
    }
  }
}

// The drawing of a preview has all of its data in the page.
function drawPlan() {
  document.querySelectorAll("canvas.plan").forEach((canvas) => draw(canvas, canvas.dataset));
  document.querySelectorAll("canvas.labels").forEach((canvas) => {
    // The lanes are scaled to the width of the page, but not the digits.
    const width = Math.max(100, Math.floor(canvas.getBoundingClientRect().width));
    const labels = JSON.parse(canvas.dataset.labels);
    drawLabels(canvas, width, labels.map(([position, text]) => [(position * width) / Number(canvas.dataset.width), text]));
  });
}
drawPlan();
document.addEventListener("theme", drawPlan);
window.addEventListener("resize", drawPlan);
// A part of the page that htmx has loaded.
document.addEventListener("htmx:afterSwap", drawPlan);
