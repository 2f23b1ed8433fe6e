// What draws lanes and axes on canvases, for timelines and for previews. The server sends one character for each pixel.
"use strict";

const HEIGHT = 22;

function colors() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  return { valid: color("--lane-valid"), change: color("--lane-change"), gap: color("--lane-gap"), differs: color("--lane-differs"), added: color("--lane-added"), text: color("--pico-color") };
}

function context(canvas, width) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  const found = canvas.getContext("2d");
  found.scale(ratio, ratio);
  found.clearRect(0, 0, width, HEIGHT);
  return found;
}

// Calls a function for each run of equal characters, with its start and its length.
function runs(text, call) {
  for (let start = 0, end; start < text.length; start = end) {
    for (end = start + 1; text[end] === text[start]; end += 1);
    call(text[start], start, end - start);
  }
}

function draw(canvas, lane, marker) {
  const { valid, change, gap, differs, added, text } = colors();
  const drawing = context(canvas, lane.states.length);
  runs(lane.states, (state, start, length) => {
    if (state !== "g") {
      drawing.fillStyle = valid;
      drawing.fillRect(start, 2, length, HEIGHT - 4);
    }
    // A gap is narrower than what is valid, so that it can be told without its color. Below something valid, it is a part of it.
    if (state !== "v") {
      drawing.fillStyle = gap;
      drawing.fillRect(start, state === "g" ? 8 : HEIGHT - 8, length, 6);
    }
  });
  drawing.fillStyle = change;
  runs(lane.changes, (count, start, length) => {
    if (count !== "0") {
      drawing.globalAlpha = Math.min(1, 0.35 + Number(count) * 0.1);
      drawing.fillRect(start, 2, length, HEIGHT - 4);
    }
  });
  drawing.globalAlpha = 1;
  const mark = (marks, color, top) => {
    drawing.fillStyle = color;
    runs(marks || "", (does, start, length) => does === "1" && drawing.fillRect(start, top, length, 4));
  };
  mark(lane.differs, differs, 0);
  mark(lane.added, added, 0);
  mark(lane.removed, differs, HEIGHT - 4);
  if (marker !== null) {
    drawing.fillStyle = text;
    drawing.fillRect(marker, 0, 1, HEIGHT);
  }
}

function drawLabels(canvas, width, labels) {
  const drawing = context(canvas, width);
  drawing.fillStyle = colors().text;
  drawing.font = "12px sans-serif";
  for (const [position, text] of labels) {
    drawing.fillRect(position, HEIGHT - 5, 1, 5);
    drawing.fillText(text, Math.min(position + 3, width - drawing.measureText(text).width), HEIGHT - 8);
  }
}

// The drawing of a preview has all of its data in the page.
function drawPlan() {
  document.querySelectorAll("canvas.plan").forEach((canvas) => draw(canvas, canvas.dataset, null));
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
