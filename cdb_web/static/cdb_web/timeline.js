// A timeline: lanes loaded where they are seen, zoom, and the IOVs at a place. `drawing.js` draws them.
// Moments have 64 bits, which numbers of JavaScript do not have, so they stay texts.
"use strict";

const LANES_AT_ONCE = 6;

// Without types, it is one empty batch, which loads the axis.
function batches(types) {
  const count = Math.max(1, Math.ceil(types.length / LANES_AT_ONCE));
  return Array.from({ length: count }, (_, number) => types.slice(number * LANES_AT_ONCE, (number + 1) * LANES_AT_ONCE));
}

// The members of a JSON response, and whether it is a success. It also has a `detail` if there was no response.
async function fetchJson(address) {
  try {
    const response = await fetch(address);
    const members = await response.json().catch(() => ({ detail: response.status }));
    return { ...members, ok: response.ok };
  } catch (error) {
    return { detail: error.message, ok: false };
  }
}

class Timeline {
  constructor(section) {
    this.section = section;
    this.lanes = new Map([...section.querySelectorAll(".lane")].map((lane) => [lane.dataset.type, lane]));
    this.visible = new Set();
    this.drawn = new Map();
    this.since = section.dataset.since;
    this.until = section.dataset.until;
    this.request = 0;
    this.loading = 0;
    section.querySelectorAll(".axis, .legend").forEach((part) => (part.hidden = false));
    this.observer = new IntersectionObserver((entries) => this.see(entries), { rootMargin: "200px" });
    this.lanes.forEach((lane) => this.observer.observe(lane));
    section.querySelectorAll("[data-left]").forEach((link) =>
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.zoom(Number(link.dataset.left), Number(link.dataset.right));
      }),
    );
    this.lanes.forEach((lane, type) => this.listen(lane.querySelector("canvas"), type));
    document.addEventListener("theme", () => this.redraw());
    this.search = location.search;
    // The link to the content changes only the fragment.
    window.addEventListener("popstate", () => location.search !== this.search && location.reload());
    window.addEventListener("resize", () => {
      clearTimeout(this.resizing);
      // On a phone, the height changes without the width.
      this.resizing = setTimeout(() => this.width !== this.drawnWidth && this.zoom(0, 1), 200);
    });
  }

  get width() {
    return Math.max(100, Math.floor(this.section.querySelector(".lane canvas").getBoundingClientRect().width));
  }

  parameters(more) {
    const given = { since: this.since, until: this.until, width: this.width, ...more };
    ["rev", "against", "at"].forEach((name) => (given[name] = this.section.dataset[name]));
    return new URLSearchParams(Object.entries(given).filter(([, value]) => value !== ""));
  }

  see(entries) {
    for (const { target, isIntersecting } of entries) {
      this.visible[isIntersecting ? "add" : "delete"](target.dataset.type);
    }
    this.loadMissing();
  }

  // The window is known only after a zoom, so lanes that become visible during one wait for its end.
  loadMissing() {
    const missing = [...this.visible].filter((type) => !this.drawn.has(type));
    if (!this.zooming && missing.length) {
      this.load(missing, {});
    }
  }

  async zoom(left, right) {
    this.drawn.clear();
    this.request += 1;
    const request = this.request;
    this.zooming = true;
    try {
      await this.load([...this.visible], { left, right });
    } finally {
      if (request === this.request) {
        this.zooming = false;
        this.loadMissing();
      }
    }
  }

  // Loads lanes of the present window, or of a part of it, which then is the window. The first request comes alone, so that the
  // first lanes are there soon.
  async load(types, part) {
    const request = this.request;
    const base = this.parameters(part);
    const [first, ...rest] = batches(types);
    types.forEach((type) => this.drawn.set(type, null));
    this.section.setAttribute("aria-busy", "true");
    this.loading += 1;
    const fetched = async (batch) => {
      const query = new URLSearchParams(base);
      batch.forEach((type) => query.append("type", type));
      const found = await fetchJson(`${this.section.dataset.url}?${query}`);
      if (!found.ok) {
        this.section.querySelector(".rows").textContent = `The lanes could not be loaded: ${found.detail}`;
      } else if (request === this.request) {
        this.show(found);
      }
      return found.ok;
    };
    // A later zoom makes the rest useless.
    if ((await fetched(first)) && request === this.request) {
      await Promise.all(rest.map(fetched));
    }
    if (request === this.request) {
      // Lanes that were not loaded are tried again when they become visible.
      types.filter((type) => !this.drawn.get(type)).forEach((type) => this.drawn.delete(type));
    }
    this.loading -= 1;
    if (!this.loading) {
      this.section.removeAttribute("aria-busy");
      this.section.dataset.loads = String(Number(this.section.dataset.loads || 0) + 1);
    }
  }

  show(found) {
    const moved = found.since !== this.since || found.until !== this.until;
    this.since = found.since;
    this.until = found.until;
    this.labels = found.labels;
    this.drawnWidth = this.width;
    this.marker = found.marker;
    this.section.dataset.drawn = "";
    this.section.querySelector(".window").textContent = `${found.text} (axis: ${found.unit})`;
    drawLabels(this.section.querySelector(".axis canvas"), this.width, found.labels);
    for (const [type, lane] of Object.entries(found.lanes)) {
      this.drawn.set(type, lane);
      draw(this.lanes.get(type).querySelector("canvas"), lane, found.marker);
    }
    if (moved && "inAddress" in this.section.dataset) {
      const address = new URL(location.href);
      address.searchParams.set("since", found.since);
      address.searchParams.set("until", found.until);
      ["left", "right"].forEach((name) => address.searchParams.delete(name));
      history[this.zooming ? "pushState" : "replaceState"](null, "", address);
      this.search = location.search;
    }
  }

  redraw() {
    this.drawn.forEach((lane, type) => lane && draw(this.lanes.get(type).querySelector("canvas"), lane, this.marker));
    if (this.labels) {
      drawLabels(this.section.querySelector(".axis canvas"), this.width, this.labels);
    }
  }

  listen(canvas, type) {
    let down = null;
    const place = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("pointerdown", (event) => {
      down = place(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      const up = place(event);
      if (down !== null && Math.abs(up - down) > 4) {
        const edges = [down, up].map((x) => Math.min(1, Math.max(0, x / this.width))).sort((a, b) => a - b);
        this.zoom(...edges);
      } else {
        this.rows(type, up);
      }
      down = null;
    });
    let timer;
    canvas.addEventListener("pointermove", (event) => {
      clearTimeout(timer);
      if (down !== null && this.drawn.get(type)) {
        draw(canvas, this.drawn.get(type), this.marker);
        const drawing = canvas.getContext("2d");
        drawing.globalAlpha = 0.4;
        drawing.fillStyle = colors().text;
        drawing.fillRect(Math.min(down, place(event)), 0, Math.abs(place(event) - down), HEIGHT);
      }
      timer = down === null ? setTimeout(() => this.tip(canvas, type, place(event)), 250) : undefined;
    });
    canvas.addEventListener("pointerleave", () => {
      clearTimeout(timer);
      canvas.title = "";
    });
    canvas.addEventListener("keydown", (event) => {
      const actions = {
        "+": () => this.zoom(0.25, 0.75),
        "-": () => this.zoom(-0.5, 1.5),
        ArrowLeft: () => this.zoom(-0.25, 0.75),
        ArrowRight: () => this.zoom(0.25, 1.25),
        Enter: () => this.rows(type, this.width / 2),
      };
      if (actions[event.key] && !event.ctrlKey && !event.altKey && !event.metaKey) {
        event.preventDefault();
        actions[event.key]();
      }
    });
  }

  async fetchRows(type, x) {
    const pixel = Math.min(this.width - 1, Math.max(0, Math.floor(x)));
    const address = `${this.section.dataset.rows}?${this.parameters({ type, x: pixel })}`;
    const response = await fetch(address).catch(() => null);
    return response?.ok ? response.text() : "<p>The IOVs could not be loaded.</p>";
  }

  async rows(type, x) {
    // The text comes from a template of the server, which escapes all names and URLs.
    const rows = this.section.querySelector(".rows");
    rows.innerHTML = await this.fetchRows(type, x);
    rows.scrollIntoView({ block: "nearest" });
  }

  async tip(canvas, type, x) {
    const page = new DOMParser().parseFromString(await this.fetchRows(type, x), "text/html");
    const lines = [...page.querySelectorAll("tbody tr")].map((row) =>
      [...row.cells].map((cell) => cell.textContent.trim()).join("  "),
    );
    canvas.title = [page.querySelector("h3")?.textContent ?? "", ...lines].join("\n");
  }
}

// The slider chooses the revision that the form has.
document.querySelectorAll(".slider").forEach((label) => {
  const slider = label.querySelector("input");
  label.hidden = slider.max === slider.min;
  slider.addEventListener("input", () => (slider.form.elements.rev.value = slider.value));
  slider.addEventListener("change", () => {
    sessionStorage.setItem("slider", "used");
    slider.form.requestSubmit();
  });
  // The page of another revision goes on where the slider was used.
  if (sessionStorage.getItem("slider")) {
    sessionStorage.removeItem("slider");
    slider.focus();
  }
});

document.querySelectorAll(".timeline:not(.fixed)").forEach((section) => new Timeline(section));
