// A timeline: lanes loaded where they are seen, zoom, filters, folding, and the IOVs at a place. `drawing.js` draws the lanes.
// Moments have 64 bits, which numbers of JavaScript do not have, so they stay texts.
"use strict";

const LANES_AT_ONCE = 6;
const ROWS_PER_PAGE = 10;
// What links between the pages of a tag keep. The same names are in templatetags/cdb_web.py.
const KEPT = ["rev", "since", "until", "lanes", "fold", "gaps", "changed", "select", "at"];

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

// One lane for several: a gap in any of them is shown.
function summary(lanes) {
  const most = (name, order) =>
    Array.from(lanes[0][name], (_, pixel) => order[Math.max(...lanes.map((lane) => order.indexOf(lane[name][pixel])))]).join("");
  return { states: most("states", "ovpg").replaceAll("g", lanes.length > 1 ? "p" : "g"), changes: most("changes", "0123456789") };
}

class Timeline {
  constructor(section) {
    this.section = section;
    this.inAddress = "inAddress" in section.dataset;
    this.form = this.inAddress ? document.getElementById("view") : null;
    this.grid = section.querySelector(".lanes");
    this.details = section.querySelector(".rows");
    this.rows = [...section.querySelectorAll(".lane")];
    this.lanes = new Map(this.rows.filter((row) => "type" in row.dataset).map((row) => [row.dataset.type, row]));
    this.groups = new Map();
    this.lanes.forEach(({ dataset }) => this.groups.set(dataset.group, [...(this.groups.get(dataset.group) ?? []), dataset.type]));
    this.visible = new Set();
    this.loaded = new Map();
    this.request = 0;
    this.loading = 0;
    this.marker = null;
    this.resetGesture();
    this.readAddress();
    this.since = section.dataset.since;
    this.until = section.dataset.until;
    section.querySelectorAll("[hidden]:not(.lane)").forEach((part) => (part.hidden = false));
    this.section.querySelector(".fold")?.toggleAttribute("hidden", !this.rows.some((row) => "members" in row.dataset));
    this.line = document.createElement("div");
    this.line.className = "marker";
    this.grid.append(this.line);
    this.grid.querySelectorAll("a").forEach((link) => (link.tabIndex = -1));
    this.listen();
    this.arrange();
    this.observer = new IntersectionObserver((entries) => this.see(entries), { rootMargin: "200px" });
    this.rows.forEach((row) => this.observer.observe(row));
  }

  // The element of a lane's drawing, which no gesture moves.
  get place() {
    return this.places()[0]?.querySelector(".place") ?? this.section.querySelector(".axis canvas");
  }

  get width() {
    return Math.max(100, Math.floor(this.place.getBoundingClientRect().width));
  }

  // --- The address, the form and the links say what is shown.

  readAddress() {
    this.query = new URLSearchParams(this.inAddress ? location.search : "");
    ["left", "right"].forEach((name) => this.query.delete(name));
    if (this.section.dataset.rev) {
      this.query.set("rev", this.section.dataset.rev);
    }
    this.folded = new Set((this.query.get("fold") || "").split(",").filter(Boolean));
    if (this.folded.delete("*")) {
      this.groups.forEach((_, group) => this.folded.add(group));
    }
    this.selected = this.lanes.has(this.query.get("select")) ? this.query.get("select") : null;
  }

  // Changes parameters of the address; with `push`, the Back button undoes it.
  set(changes, push = false) {
    for (const [name, value] of Object.entries(changes)) {
      this.query[value ? "set" : "delete"](name, value);
      const field = this.form?.elements[name];
      if (field && field !== document.activeElement && field.type !== "checkbox") {
        field.value = value ?? "";
      }
    }
    if (!this.inAddress) {
      return;
    }
    const address = new URL(location.href);
    const search = this.query.size ? `?${this.query}` : "";
    if (search !== address.search) {
      address.search = search;
      history[push ? "pushState" : "replaceState"](null, "", address);
    }
    this.search = location.search;
    document.querySelectorAll("nav.tag a, .lanes a").forEach((link) => {
      const target = new URL(link.href);
      const isComparison = target.searchParams.has("a");
      KEPT.forEach((name) => {
        const value = name === "rev" && isComparison ? null : this.query.get(name);
        target.searchParams[value ? "set" : "delete"](name, value);
      });
      const [since, until] = ["since", "until"].map((name) => target.searchParams.get(name));
      if ("packed" in link.dataset) {
        // On the page of the history, they are times.
        ["since", "until", "window"].forEach((name) => target.searchParams.delete(name));
        if (since && until) {
          target.searchParams.set("window", `${since}..${until}`);
        }
      }
      link.href = target.pathname + target.search;
    });
  }

  // --- Which lanes are shown.

  hasGap(type) {
    return /[gp]/.test(this.loaded.get(type)?.states ?? "");
  }

  arrange() {
    const part = (this.query.get("lanes") || "").trim().toLowerCase();
    const gaps = this.query.has("gaps");
    const matches = (type) => type.toLowerCase().includes(part) && (!gaps || this.hasGap(type));
    const shown = new Set([...this.lanes.keys()].filter(matches));
    this.rows.forEach((row) => {
      const { type, group } = row.dataset;
      const isFolded = this.folded.has(group);
      if (type !== undefined) {
        row.hidden = !shown.has(type) || (group !== "" && isFolded);
      } else {
        const members = this.groups.get(group).filter((one) => shown.has(one));
        row.hidden = members.length <= (isFolded ? 0 : 1);
        row.toggleAttribute("data-folded", isFolded);
        const button = row.querySelector("button");
        button.setAttribute("aria-expanded", String(!isFolded));
        button.textContent = `${group} (${members.length})`;
      }
      row.classList.toggle("selected", type !== undefined && type === this.selected);
    });
    const count = this.section.querySelector(".count");
    if (count) {
      const known = [...this.lanes.keys()].filter((type) => this.loaded.get(type)).length;
      count.textContent = `${shown.size} of ${this.lanes.size} lanes` + (gaps && known < this.lanes.size ? `, ${known} looked at` : "");
      const fold = this.section.querySelector(".fold");
      fold.textContent = this.folded.size ? "Unfold all" : "Fold all";
    }
    // All lanes are one stop of the Tab key.
    const places = this.places();
    const current = places.find((row) => row.contains(document.activeElement)) ?? places.find((row) => row.dataset.type === this.selected) ?? places[0];
    this.rows.forEach((row) => (row.querySelector(".place").tabIndex = row === current ? 0 : -1));
    this.mark();
    this.loadMissing();
  }

  // The rows with a drawing that are shown.
  places() {
    return this.rows.filter((row) => !row.hidden && ("type" in row.dataset || "folded" in row.dataset));
  }

  fold(groups, isFolded) {
    groups.forEach((group) => this.folded[isFolded ? "add" : "delete"](group));
    const all = [...this.groups.keys()].filter(Boolean);
    this.set({ fold: this.folded.size && all.every((group) => this.folded.has(group)) ? "*" : [...this.folded].join(",") });
    this.arrange();
    this.redraw();
  }

  // --- Loading.

  parameters(more) {
    const given = { since: this.since, until: this.until, width: this.width, ...more };
    ["rev", "against", "at"].forEach((name) => (given[name] = this.query.get(name) ?? ""));
    return new URLSearchParams(Object.entries(given).filter(([, value]) => value !== ""));
  }

  see(entries) {
    entries.forEach(({ target, isIntersecting }) => this.visible[isIntersecting ? "add" : "delete"](target));
    this.loadMissing();
  }

  // The types whose lanes are needed: those that are seen, and with the filter for gaps all of them.
  wanted() {
    const seen = [...this.visible].filter((row) => !row.hidden);
    const types = seen.flatMap((row) => row.dataset.type ?? ("folded" in row.dataset ? this.groups.get(row.dataset.group) : []));
    return [...new Set(this.query.has("gaps") ? [...types, ...this.lanes.keys()] : types)];
  }

  // The window is known only after a zoom, so lanes that become visible during one wait for its end.
  loadMissing() {
    const missing = this.wanted().filter((type) => !this.loaded.has(type));
    if (!this.zooming && missing.length) {
      this.load(missing, {});
    }
  }

  async zoom(part) {
    this.loaded.clear();
    this.request += 1;
    const request = this.request;
    this.zooming = true;
    try {
      await this.load(this.wanted(), part);
    } finally {
      if (request === this.request) {
        this.zooming = false;
        this.loadMissing();
      }
    }
  }

  // Loads lanes of the present window, or of a part of it, which then is the window. The first request comes alone, so that the
  // first lanes are there soon; then there are two at once, so that a click is answered between them.
  async load(types, part) {
    const request = this.request;
    const base = this.parameters(part);
    const batches = [];
    for (let start = 0; start < Math.max(types.length, 1); start += LANES_AT_ONCE) {
      batches.push(types.slice(start, start + LANES_AT_ONCE));
    }
    types.forEach((type) => this.loaded.set(type, null));
    this.section.setAttribute("aria-busy", "true");
    this.loading += 1;
    const work = async (most) => {
      for (let isGood = true; isGood && most && batches.length && request === this.request; most -= 1) {
        const query = new URLSearchParams(base);
        batches.shift().forEach((type) => query.append("type", type));
        const found = await fetchJson(`${this.section.dataset.url}?${query}`);
        isGood = found.ok;
        if (!found.ok) {
          this.details.textContent = `The lanes could not be loaded: ${found.detail}`;
          batches.length = 0;
        } else if (request === this.request) {
          this.show(found);
        }
      }
    };
    await work(1);
    await Promise.all([work(Infinity), work(Infinity)]);
    if (request === this.request) {
      // Lanes that were not loaded are tried again when they become visible.
      types.filter((type) => !this.loaded.get(type)).forEach((type) => this.loaded.delete(type));
      this.resetGesture();
    }
    this.loading -= 1;
    if (!this.loading) {
      this.section.removeAttribute("aria-busy");
      this.section.dataset.loads = String(Number(this.section.dataset.loads || 0) + 1);
    }
  }

  show(found) {
    const isMoved = found.since !== this.since || found.until !== this.until;
    this.resetGesture();
    this.since = found.since;
    this.until = found.until;
    this.labels = found.labels;
    this.marker = found.marker;
    this.drawnWidth = this.width;
    this.section.dataset.drawn = "";
    this.section.querySelector(".window").textContent = `${found.text} (axis: ${found.unit})`;
    drawLabels(this.section.querySelector(".axis canvas"), this.width, found.labels);
    Object.entries(found.lanes).forEach(([type, lane]) => this.loaded.set(type, lane));
    this.redraw(new Set(Object.keys(found.lanes)));
    if (this.query.has("gaps")) {
      this.arrange();
    }
    if (isMoved || this.everything) {
      this.set(this.everything ? { since: null, until: null } : { since: found.since, until: found.until }, this.pushes);
      this.pushes = false;
    }
    for (const name of ["since", "until"]) {
      if (this.form && this.form.elements[name] !== document.activeElement) {
        this.form.elements[name].value = found[name];
      }
    }
    this.mark();
    if (this.selected && this.marker !== null && !this.details.dataset.type) {
      this.showRows(this.selected, this.marker, false);
    }
  }

  // Draws the lanes of some types, or all, and the summaries of their groups.
  redraw(types = new Set(this.lanes.keys())) {
    const palette = colors();
    const canvas = (row) => row.querySelector("canvas");
    types.forEach((type) => this.loaded.get(type) && draw(canvas(this.lanes.get(type)), this.loaded.get(type), palette));
    this.rows.filter((row) => "folded" in row.dataset).forEach((row) => {
      const members = this.groups.get(row.dataset.group);
      const lanes = members.map((type) => this.loaded.get(type)).filter(Boolean);
      if (lanes.length && members.some((type) => types.has(type))) {
        draw(canvas(row), summary(lanes), palette);
      }
    });
    if (this.labels) {
      drawLabels(this.section.querySelector(".axis canvas"), this.width, this.labels);
    }
  }

  // --- Gestures move and scale what is drawn, until the lanes of the new window are loaded.

  resetGesture() {
    this.gesture = { shift: 0, scale: 1 };
    this.applyGesture();
  }

  applyGesture() {
    this.section.style.setProperty("--shift", `${this.gesture.shift}px`);
    this.section.style.setProperty("--scale", this.gesture.scale);
  }

  // Scales by a factor around a place, and moves by a number of pixels.
  move(x, factor, distance) {
    const { shift, scale } = this.gesture;
    const next = { shift: x + (shift - x) * factor + distance, scale: scale * factor };
    // The server accepts parts from -10 to 10.
    const reach = 9 * this.width * next.scale;
    if (next.shift < reach && this.width - next.shift < reach) {
      this.gesture = next;
      this.applyGesture();
    }
  }

  commit() {
    const { shift, scale } = this.gesture;
    if (shift !== 0 || scale !== 1) {
      this.goTo({ left: -shift / scale / this.width, right: (this.width - shift) / scale / this.width });
    }
  }

  goTo(part) {
    this.everything = part === null;
    this.pushes = true;
    if (part === null) {
      this.since = this.until = "";
    }
    return this.zoom(part ?? {});
  }

  commitSoon() {
    clearTimeout(this.committing);
    this.committing = setTimeout(() => this.commit(), 150);
  }

  // --- The IOVs at a place.

  mark() {
    this.line.hidden = this.marker === null;
    this.line.style.left = `${this.place.offsetLeft + this.marker}px`;
    this.rows.forEach((row) => row.classList.toggle("selected", "type" in row.dataset && row.dataset.type === this.selected));
  }

  async select(type, x) {
    this.selected = type;
    this.marker = Math.min(this.width - 1, Math.max(0, Math.floor(x)));
    this.mark();
    await this.showRows(type, this.marker, true);
  }

  async showRows(type, x, isChosen) {
    this.details.dataset.type = type;
    const number = (this.asked = (this.asked || 0) + 1);
    const query = this.parameters({ type, x });
    query.delete("at");
    const response = await fetch(`${this.section.dataset.rows}?${query}`).catch(() => null);
    const text = response?.ok ? await response.text() : "<p>The IOVs could not be loaded.</p>";
    if (number === this.asked) {
      // The text comes from a template of the server, which escapes all names and URLs.
      this.details.innerHTML = text;
      const at = this.details.querySelector("[data-at]")?.dataset.at;
      if (isChosen && at) {
        this.set({ select: type, at });
      }
    }
  }

  // The next place after a pixel, or before it with direction -1, where the lane changes; null if there is none.
  edge(lane, x, direction) {
    for (let pixel = x + direction; pixel >= 0 && pixel < lane.states.length; pixel += direction) {
      if (lane.changes[pixel] !== "0" || (pixel && lane.states[pixel] !== lane.states[pixel - 1])) {
        return pixel;
      }
    }
    return null;
  }

  step(type, direction) {
    const lane = this.loaded.get(type);
    if (!lane) {
      return;
    }
    const start = this.marker ?? (direction > 0 ? -1 : lane.states.length);
    const place = this.edge(lane, start, direction);
    if (place === null) {
      this.marker = null;
      this.goTo({ left: direction / 2, right: direction / 2 + 1 });
      return;
    }
    this.selected = type;
    this.marker = place;
    this.mark();
    clearTimeout(this.stepping);
    this.stepping = setTimeout(() => this.showRows(type, place, true), 120);
  }

  // --- Events.

  listen() {
    this.section.querySelectorAll("[data-left], [data-everything]").forEach((link) =>
      link.addEventListener("click", (event) => {
        event.preventDefault();
        const { left, right } = link.dataset;
        this.goTo(left === undefined ? null : { left: Number(left), right: Number(right) });
      }),
    );
    const field = (name) => (this.form?.elements[name]?.closest(".timeline") ? this.form.elements[name] : null);
    field("lanes")?.addEventListener("input", () => this.filter({ lanes: field("lanes").value.trim() }));
    field("gaps")?.addEventListener("change", () => this.filter({ gaps: field("gaps").checked ? "1" : null }));
    this.section.querySelector(".fold")?.addEventListener("click", () => this.fold([...this.groups.keys()].filter(Boolean), !this.folded.size));
    this.rows.filter((row) => "members" in row.dataset).forEach((row) =>
      row.querySelector("button").addEventListener("click", () => this.fold([row.dataset.group], !("folded" in row.dataset))),
    );
    this.listenToPointers();
    this.grid.addEventListener("keydown", (event) => this.press(event));
    this.details.addEventListener("keydown", (event) => event.key === "Escape" && this.grid.querySelector("[tabindex='0']").focus());
    document.addEventListener("theme", () => this.redraw());
    this.search = location.search;
    // The link to the content changes only the fragment.
    window.addEventListener("popstate", () => location.search !== this.search && this.goBack());
    window.addEventListener("resize", () => {
      clearTimeout(this.resizing);
      // On a phone, the height changes without the width.
      this.resizing = setTimeout(() => this.width !== this.drawnWidth && this.zoom({}), 200);
    });
  }

  filter(changes) {
    this.set(changes);
    this.arrange();
  }

  // The page of an earlier address. What the server decides needs another page.
  goBack() {
    const [before, now] = [this.query, new URLSearchParams(location.search)];
    if (!this.inAddress || ["rev", "against", "changed"].some((name) => before.get(name) !== now.get(name))) {
      location.reload();
      return;
    }
    this.search = location.search;
    this.readAddress();
    ["lanes", "gaps"].forEach((name) => {
      const field = this.form.elements[name];
      if (field) {
        field.value = name === "gaps" ? "1" : (now.get(name) ?? "");
        field.checked = now.has(name);
      }
    });
    this.since = now.get("since") ?? "";
    this.until = now.get("until") ?? "";
    this.everything = !now.has("since") && !now.has("until");
    this.pushes = false;
    delete this.details.dataset.type;
    this.arrange();
    this.zoom({});
  }

  listenToPointers() {
    const pointers = new Map();
    const place = (event) => event.clientX - this.place.getBoundingClientRect().left;
    const spread = () => {
      const [first, second] = [...pointers.values()];
      return { middle: (first + second) / 2, distance: Math.max(10, Math.abs(first - second)) };
    };
    let down = null;
    this.grid.addEventListener("pointerdown", (event) => {
      const row = event.target.closest(".place")?.parentElement;
      if (row && event.button === 0) {
        pointers.set(event.pointerId, place(event));
        down = pointers.size === 1 ? { row, x: place(event), isPart: event.shiftKey, isMoved: false } : { ...down, isMoved: true };
        event.target.closest(".place").setPointerCapture(event.pointerId);
      }
    });
    this.grid.addEventListener("pointermove", (event) => {
      if (!down || !pointers.has(event.pointerId)) {
        return;
      }
      const before = pointers.size === 2 ? spread() : null;
      const last = pointers.get(event.pointerId);
      down.isMoved ||= Math.abs(place(event) - down.x) > 4;
      if (!down.isMoved) {
        return;
      }
      pointers.set(event.pointerId, place(event));
      if (before) {
        const after = spread();
        this.move(before.middle, after.distance / before.distance, after.middle - before.middle);
      } else if (down.isPart) {
        this.line.style.left = `${this.place.offsetLeft + Math.min(down.x, place(event))}px`;
        this.line.style.width = `${Math.abs(place(event) - down.x)}px`;
        this.line.hidden = false;
      } else {
        this.move(0, 1, place(event) - last);
      }
    });
    const end = (event) => {
      if (!down || !pointers.delete(event.pointerId) || pointers.size) {
        return;
      }
      const { row, x, isPart, isMoved } = down;
      down = null;
      this.line.style.width = "";
      if (isMoved && isPart) {
        const [left, right] = [x, place(event)].map((one) => Math.min(1, Math.max(0, one / this.width))).sort((a, b) => a - b);
        this.goTo({ left, right });
      } else if (event.type === "pointercancel") {
        this.resetGesture();
      } else if (isMoved) {
        this.commit();
      } else if (event.type === "pointerup" && "type" in row.dataset) {
        this.focus(row, false);
        this.select(row.dataset.type, x);
      } else if (event.type === "pointerup") {
        this.fold([row.dataset.group], false);
      }
    };
    this.grid.addEventListener("pointerup", end);
    this.grid.addEventListener("pointercancel", end);
    const wheel = (event) => {
      const isAxis = event.currentTarget !== this.grid;
      const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || (event.shiftKey && !event.ctrlKey);
      if (isSideways || isAxis || event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const amount = Math.max(-300, Math.min(300, isSideways ? event.deltaX || event.deltaY : event.deltaY));
        this.move(place(event), isSideways ? 1 : Math.exp(-amount / 400), isSideways ? -amount : 0);
        this.commitSoon();
      }
    };
    [this.grid, this.section.querySelector(".axis")].forEach((part) => part.addEventListener("wheel", wheel, { passive: false }));
  }

  focus(row, scrolls = true) {
    this.rows.forEach((one) => (one.querySelector(".place").tabIndex = one === row ? 0 : -1));
    row.querySelector(".place").focus({ preventScroll: true });
    if (scrolls) {
      row.scrollIntoView({ block: "nearest" });
    }
  }

  press(event) {
    const row = event.target.closest(".place")?.parentElement;
    if (!row || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const { type, group } = row.dataset;
    const places = this.places();
    const go = (position) => this.focus(places[Math.min(places.length - 1, Math.max(0, position))]);
    const middle = this.marker ?? Math.floor(this.width / 2);
    const zoomBy = (factor) => {
      this.move(middle, factor, 0);
      this.commit();
    };
    const actions = {
      "+": () => zoomBy(2),
      "-": () => zoomBy(0.5),
      ArrowUp: () => go(places.indexOf(row) - 1),
      ArrowDown: () => go(places.indexOf(row) + 1),
      PageUp: () => go(places.indexOf(row) - ROWS_PER_PAGE),
      PageDown: () => go(places.indexOf(row) + ROWS_PER_PAGE),
      Home: () => go(0),
      End: () => go(places.length - 1),
      ArrowLeft: () => this.step(type, -1),
      ArrowRight: () => this.step(type, 1),
      f: () => group && this.fold([group], !this.folded.has(group)),
      Enter: () => (type === undefined ? this.fold([group], false) : this.select(type, middle).then(() => this.details.focus())),
    };
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
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
  } else if (matchMedia("(max-width: 1199px)").matches && !document.querySelector(".problem")) {
    // On a small screen, the timeline comes first.
    slider.closest("details").open = false;
  }
});

document.querySelectorAll(".timeline:not(.fixed)").forEach((section) => section.querySelector(".lanes") && new Timeline(section));
