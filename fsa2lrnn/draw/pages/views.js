// What is drawn of a model: its blocks and vectors as heat maps, its logits, its margin along the word, its state in a
// plane. Each takes an element and what is to be seen in it.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const isDrawn = ["svg", "path", "circle", "line", "rect", "text", "g", "title", "polyline"].includes(name);
  const made = isDrawn ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shown(value) {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(2) : value.toFixed(3);
  return text.replaceAll("-", "−");
}

// Blocks of one layer with x before, v and x after: each head reads x_k = A x_{k−1} + v from left to right.
class Heat {
  constructor(canvas, layer) {
    this.canvas = canvas;
    this.layer = layer;
    this.gap = 8;
    this.sign = 12;
    canvas.addEventListener("pointermove", (event) => this.tell(event));
    canvas.addEventListener("pointerleave", () => (canvas.title = ""));
  }

  draw(move, before, after, colours, scale) {
    Object.assign(this, { move, before, after });
    const { canvas, layer } = this, ratio = window.devicePixelRatio || 1, b = layer.b;
    const rest = 2 * this.sign + 3 + this.gap, room = canvas.parentElement.clientWidth;
    const two = layer.heads > 1 ? Math.floor((room / 2 - rest) / (b + 3)) : 14;
    this.cell = Math.max(4, Math.min(14, Math.floor(150 / b), two));
    const tile = { width: this.cell * (b + 3) + rest, height: this.cell * b + 20 };
    this.tile = tile;
    const width = Math.max(room, tile.width);
    this.columns = Math.max(1, Math.min(layer.heads, Math.floor(width / tile.width)));
    const rows = Math.ceil(layer.heads / this.columns);
    const wide = this.columns * tile.width, high = rows * tile.height;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    this.colours = colours;
    for (let h = 0; h < layer.heads; h++) this.head(pen, h, scale);
  }

  head(pen, h, scale) {
    const { layer, tile, cell, move, before, after, sign } = this, b = layer.b, size = layer.sizes[h];
    const left = (h % this.columns) * tile.width, top = Math.floor(h / this.columns) * tile.height + 15;
    pen.fillStyle = this.colours.soft;
    pen.textAlign = "left";
    pen.fillText(size === 1 ? `channel ${h}` : `head ${h}`, left, top - 4);
    const mid = top + (cell * size) / 2 + 4;
    let x = left;
    this.column(pen, x, top, after, h * b, size, scale.x, true);
    x += cell;
    pen.textAlign = "center";
    if (!move) return;
    pen.fillStyle = this.colours.soft;
    pen.fillText("=", x + sign / 2, mid);
    x += sign;
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < size; j++) {
        this.square(pen, x + j * cell, top + i * cell, move.A[(h * b + i) * b + j] / scale.A);
      }
    }
    this.frame(pen, x, top, size, size);
    x += cell * size + 3;
    this.column(pen, x, top, before, h * b, size, scale.x, false);
    x += cell;
    pen.fillStyle = this.colours.soft;
    pen.fillText("+", x + sign / 2, mid);
    x += sign;
    this.column(pen, x, top, move.v, h * b, size, scale.x, false);
  }

  column(pen, x, y, values, from, size, full, isNew) {
    for (let i = 0; i < size; i++) this.square(pen, x, y + i * this.cell, values[from + i] / full);
    this.frame(pen, x, y, 1, size, isNew);
  }

  square(pen, x, y, share) {
    if (!share) return;
    pen.globalAlpha = Number.isNaN(share) ? 1 : 0.08 + 0.92 * Math.min(Math.abs(share), 1);
    pen.fillStyle = Number.isNaN(share) ? this.colours.fails : share > 0 ? this.colours.above : this.colours.below;
    pen.fillRect(x, y, this.cell, this.cell);
    pen.globalAlpha = 1;
  }

  frame(pen, x, y, wide, high, isNew = false) {
    pen.strokeStyle = isNew ? this.colours.ink : this.colours.rule;
    pen.strokeRect(x + 0.5, y + 0.5, wide * this.cell - 1, high * this.cell - 1);
  }

  // The number under the pointer.
  tell(event) {
    const { layer, tile, cell, sign } = this, b = layer.b;
    const h = Math.floor(event.offsetY / tile.height) * this.columns + Math.floor(event.offsetX / tile.width);
    if (!(h < layer.heads)) return;
    const size = layer.sizes[h];
    const x = event.offsetX % tile.width, i = Math.floor(((event.offsetY % tile.height) - 15) / cell);
    if (i < 0 || i >= size) return;
    const at = (from) => Math.floor((x - from) / cell);
    const matrix = cell + sign, old = matrix + cell * size + 3, plus = old + cell + sign;
    let said = "";
    if (at(0) === 0) said = `x[${i}] = ${shown(this.after[h * b + i])}`;
    if (this.move) {
      const j = at(matrix);
      if (j >= 0 && j < size) said = `A[${i}, ${j}] = ${shown(this.move.A[(h * b + i) * b + j])}`;
      if (at(old) === 0) said = `x before[${i}] = ${shown(this.before[h * b + i])}`;
      if (at(plus) === 0) said = `v[${i}] = ${shown(this.move.v[h * b + i])}`;
    }
    this.canvas.title = said && `head ${h}: ${said}`;
  }
}

// A bar a logit, from zero; the one wanted is outlined.
function logitBars(place, logits, outputs, wanted, given) {
  const many = outputs.length > 12;
  const order = [...outputs.keys()];
  if (many) order.sort((i, j) => logits[j] - logits[i]);
  const reach = Math.max(...Array.from(logits, Math.abs).filter(Number.isFinite), 1e-9);
  place.replaceChildren(
    ...order.slice(0, 12).map((j) => {
      const share = Number.isFinite(logits[j]) ? logits[j] / reach : 0;
      const bar = element("span", { class: "bar" });
      bar.style.setProperty("--from", `${share < 0 ? 50 + 50 * share : 50}%`);
      bar.style.setProperty("--long", `${Math.abs(share) * 50}%`);
      const state = j === given ? (wanted === -1 || j === wanted ? "given" : "given wrong") : "";
      const row = element("div", { class: `logit ${state} ${j === wanted ? "wanted" : ""}` });
      row.append(element("span", { class: "name" }, outputs[j]), bar, element("span", {}, shown(logits[j])));
      return row;
    }),
    ...(many ? [element("p", { class: "hint" }, `the largest 12 of ${outputs.length}`)] : []),
  );
}

// The wanted logit less the largest other, along the word: below zero the model is wrong.
function marginChart(margins, k, total) {
  const [width, height, left] = [320, 96, 34];
  const known = margins.filter(Number.isFinite);
  const high = Math.max(...known, 1), low = Math.min(...known, 0);
  const x = (i) => left + (i / Math.max(total, 1)) * (width - left - 6);
  const y = (m) => 8 + ((high - m) / (high - low)) * (height - 26);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "margin" });
  svg.append(element("title", {}, "Margin: the wanted logit less the largest other, letter by letter"));
  if (low < 0) {
    svg.append(element("rect", { x: left, y: y(0), width: width - left - 6, height: y(low) - y(0), class: "danger" }));
  }
  svg.append(element("line", { x1: left, y1: y(0), x2: width - 6, y2: y(0), class: "axis" }));
  const label = (at, text) => element("text", { x: left - 5, y: at + 4, "text-anchor": "end", class: "label tiny" }, text);
  svg.append(label(y(high), String(Number(high.toPrecision(2)))));
  if (y(0) - y(high) > 12) svg.append(label(y(0), "0"));
  let path = "", isDown = false;
  margins.forEach((m, i) => {
    if (Number.isFinite(m)) path += `${isDown ? "L" : "M"}${x(i).toFixed(1)} ${y(m).toFixed(1)}`;
    isDown = Number.isFinite(m);
  });
  svg.append(element("path", { d: path, class: "curve" }));
  margins.forEach((m, i) => {
    if (m < 0) svg.append(element("circle", { cx: x(i), cy: y(m), r: 2.4, class: "wrong" }));
  });
  svg.append(element("line", { x1: x(k), y1: 4, x2: x(k), y2: height - 16, class: "cursor" }));
  if (Number.isFinite(margins[k])) svg.append(element("circle", { cx: x(k), cy: y(margins[k]), r: 3.5, class: "now" }));
  svg.append(element("text", { x: left, y: height - 3, class: "label tiny faint" }, "letters read"));
  svg.append(element("text", { x: width - 6, y: height - 3, "text-anchor": "end", class: "label tiny faint" }, String(total)));
  return svg;
}

// The plane in which the automaton's states lie apart: what random words left, and where the model is now.
function planeChart(plane, names, trail, state) {
  const size = 200, margin = 20;
  const reach = Math.max(...plane.points.flatMap(([x, y]) => [Math.abs(x), Math.abs(y)]), 1e-9) * 1.05;
  const x = (v) => margin + ((Math.max(-1.15, Math.min(1.15, v / reach)) + 1) / 2) * (size - 2 * margin);
  const y = (v) => size - x(v);
  const hue = (q) => `--h:${Math.round((360 * q) / names.length + 20)}`;
  const svg = element("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", class: "plane" });
  svg.append(element("title", {}, "The model's state in the plane in which the automaton's states lie apart"));
  svg.append(element("rect", { x: 0.5, y: 0.5, width: size - 1, height: size - 1, rx: 8, class: "frame" }));
  const sums = new Map();
  for (const [px, py, q] of plane.points) {
    svg.append(element("circle", { cx: x(px), cy: y(py), r: 2.6, class: "state near", style: hue(q) }));
    const [sx, sy, n] = sums.get(q) || [0, 0, 0];
    sums.set(q, [sx + px, sy + py, n + 1]);
  }
  if (sums.size <= 16) {
    for (const [q, [sx, sy, n]] of sums) {
      const place = { x: x(sx / n), y: y(sy / n) - 8, "text-anchor": "middle", class: "label tiny halo" };
      svg.append(element("text", place, names[q]));
    }
  }
  const points = trail.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(" ");
  svg.append(element("polyline", { points, class: "trail" }));
  const [nx, ny] = trail[trail.length - 1];
  svg.append(element("circle", { cx: x(nx), cy: y(ny), r: 6, class: "now state", style: hue(state) }));
  return svg;
}
