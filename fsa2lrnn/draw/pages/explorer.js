// The page: a word is read by the automaton and by every model, and looked at after each of its letters.
"use strict";

const { machine, typed, words, models } = JSON.parse(document.getElementById("data").textContent);
const MOST = 20000, SHOWN = 60, SLICE = 12, TRAIL = 12; // letters; cells of the tape; milliseconds; states in a plane
const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const readers = models.map((spec) => new Model(spec.program, spec.letters));

let word = [], at = 0, states = [], runs = [], player = 0, colours = {};

function setWord(tokens, position) {
  let same = 0;
  while (same < Math.min(word.length, tokens.length) && word[same] === tokens[same]) same++;
  word = tokens;
  states = [machine.start];
  for (const a of word) states.push(machine.delta[a][states[states.length - 1]]);
  runs.forEach((run) => run.cut(same));
  go(position ?? word.length);
  work();
}

// A model along the word: all that was computed so far.
class Run {
  constructor(reader, spec) {
    Object.assign(this, { reader, spec });
    const { states: first, logits } = reader.start();
    this.steps = [{ states: first, moves: reader.layers.map(() => null), logits }];
    this.margins = [NaN];
    this.wrong = Infinity;
  }

  cut(length) {
    this.steps.length = Math.min(this.steps.length, length + 1);
    this.margins.length = this.steps.length;
    if (this.wrong > length) this.wrong = Infinity;
  }

  get isDone() {
    return this.steps.length > word.length;
  }

  advance() {
    const k = this.steps.length, step = this.reader.step(this.steps[k - 1].states, word[k - 1]);
    this.steps.push(step);
    const wanted = this.wanted(k);
    let other = -Infinity;
    step.logits.forEach((value, j) => {
      if (j !== wanted && !(value <= other)) other = value;
    });
    this.margins.push(this.counts(k) && wanted >= 0 ? step.logits[wanted] - other : NaN);
    if (this.isWrong(k) && k < this.wrong) this.wrong = k;
  }

  wanted(k) {
    return this.spec.wanted[states[k]];
  }

  counts(k) {
    return k > 0 && this.spec.counts[states[k]];
  }

  given(k) {
    return largest(this.steps[k].logits);
  }

  isWrong(k) {
    return this.counts(k) && this.given(k) !== this.wanted(k);
  }

  said(k) {
    const j = this.given(k);
    return j < 0 ? "NaN" : this.spec.outputs[j];
  }
}

// Models read on in slices, so that the page answers meanwhile.
let working = 0;
function work() {
  if (working) return;
  const turn = () => {
    working = 0;
    const until = performance.now() + SLICE;
    let isLeft = true;
    while (isLeft && performance.now() < until) {
      const next = runs.filter((run) => !run.isDone).sort((a, b) => a.steps.length - b.steps.length)[0];
      isLeft = Boolean(next);
      if (next) next.advance();
    }
    render();
    if (runs.some((run) => !run.isDone)) working = setTimeout(turn, 0);
  };
  turn();
}

function reach(k) {
  for (const run of runs) while (run.steps.length <= k) run.advance();
}

// Going along it.

function go(position) {
  at = Math.max(0, Math.min(position, word.length));
  render();
}

function play(isOn) {
  clearTimeout(player);
  player = 0;
  one("#play").textContent = isOn ? "❚❚ pause" : "▶ play";
  if (!isOn) return;
  if (at === word.length) at = 0;
  const tick = () => {
    const wait = Number(one("#speed").value);
    go(at + (wait ? 1 : Math.max(1, Math.round(word.length / 200))));
    if (at < word.length) player = setTimeout(tick, wait);
    else play(false);
  };
  player = setTimeout(tick, 0);
}

function firstError() {
  reach(word.length);
  const places = runs.map((run) => run.wrong).filter(Number.isFinite);
  if (places.length) go(Math.min(...places));
  else one("#said").textContent = word.length ? "No output of this word is wrong." : "Type a word first.";
}

const ACTIONS = {
  first: () => go(0),
  back: () => go(at - 1),
  next: () => go(at + 1),
  last: () => go(word.length),
  play: () => play(!player),
  error: firstError,
};
const KEYS = { Home: "first", ArrowLeft: "back", ArrowRight: "next", End: "last", " ": "play", e: "error" };

// What is seen.

function render() {
  reach(at);
  const root = getComputedStyle(document.documentElement);
  for (const name of ["ink", "soft", "rule", "above", "below", "fails"]) colours[name] = root.getPropertyValue(`--${name}`);
  renderMachine();
  renderTape();
  models.forEach((spec, i) => renderModel(i));
  const q = states[at];
  const parts = runs.map((run, i) => (at && run.counts(at) ? `${models[i].name} outputs ${run.said(at)}${run.isWrong(at) ? ", wrong" : ""}` : ""));
  one("#said").textContent =
    `After ${at} of ${word.length} letters the automaton is in state ${meaning(q)} and outputs ${machine.outputs[q]}. ` +
    parts.filter(Boolean).join("; ");
  one("#first").disabled = one("#back").disabled = at === 0;
  one("#next").disabled = one("#last").disabled = at === word.length;
  one("#play").disabled = one("#error").disabled = word.length === 0;
}

function meaning(q) {
  const [name, label] = [machine.names[q], machine.states[q]];
  return name === label ? name : `${name} (${label})`;
}

function renderMachine() {
  const q = states[at], before = at ? states[at - 1] : null;
  const drawing = one("#automaton > .scroll");
  if (!drawing) {
    const moves = machine.alphabet.slice(0, 40).map((letter, a) => `${letter} → ${machine.names[machine.delta[a][q]]}`);
    one("#moves").textContent = `State ${machine.names[q]}, output ${machine.outputs[q]}. Next: ${moves.join(", ")}`;
    return;
  }
  mark(drawing, q);
  for (const arrow of all(".arrow", drawing)) {
    arrow.classList.toggle("taken", arrow.dataset.edge === `${before}-${q}`);
    arrow.classList.toggle("open", arrow.dataset.edge.startsWith(`${q}-`));
  }
  if (drawing.scrollWidth > drawing.clientWidth) {
    const place = one(".place.here", drawing).getBoundingClientRect(), box = drawing.getBoundingClientRect();
    drawing.scrollLeft += place.left + place.width / 2 - box.left - box.width / 2;
  }
}

// Marks a drawing's present state by a ring around its circle, below the arrowheads.
function mark(drawing, q) {
  for (const place of all(".place", drawing)) place.classList.toggle("here", place.dataset.state === String(q));
  const circle = one(".place.here > .node", drawing);
  const ring = one(".ring", drawing) || element("circle", { class: "ring" });
  ring.setAttribute("cx", circle.getAttribute("cx"));
  ring.setAttribute("cy", circle.getAttribute("cy"));
  ring.setAttribute("r", Number(circle.getAttribute("r")) + 4.5);
  if (!ring.parentElement) one("title", drawing).after(ring);
}

function renderTape() {
  const from = Math.max(0, Math.min(at - SHOWN / 2, word.length - SHOWN)), to = Math.min(word.length, from + SHOWN);
  const positions = Array.from({ length: to - from }, (_, i) => from + i + 1);
  const row = (title, text, kind) =>
    element("tr", {}, element("th", { scope: "row" }, title), ...positions.map((k) => {
      const cell = element("td", { "data-k": k, class: `${k === at ? "here" : ""} ${kind ? kind(k) : ""}` }, text(k));
      return cell;
    }));
  const rows = [
    row("after", String, () => "position"),
    row("letter", (k) => machine.alphabet[word[k - 1]]),
    row("automaton", (k) => machine.outputs[states[k]]),
    ...runs.map((run, i) =>
      row(models[i].name, (k) => (k < run.steps.length ? run.said(k) : "…"), (k) =>
        k < run.steps.length && run.isWrong(k) ? "wrong" : run.counts(k) ? "" : "silent")),
  ];
  const cut = from > 0 || to < word.length ? `letters ${from + 1} to ${to} of ${word.length}` : "";
  const table = element("table", { class: "word" }, element("tbody", {}, ...rows));
  const tape = one("#tape"), moved = tape.scrollLeft;
  tape.replaceChildren(word.length ? table : element("p", { class: "hint" }, "Type a word, or choose one."));
  if (cut) tape.append(element("p", { class: "hint" }, cut));
  tape.scrollLeft = moved;
  const here = one("tr:nth-child(2) td.here", tape);
  if (here) tape.scrollLeft = Math.max(0, here.offsetLeft - tape.clientWidth / 2);
}

function renderModel(i) {
  const card = one(`[data-model="${i}"]`), run = runs[i], spec = models[i], step = run.steps[at];
  const wanted = run.counts(at) ? run.wanted(at) : -1, given = run.given(at);
  const verdict = one(".verdict", card);
  verdict.className = `verdict ${run.isWrong(at) ? "fails" : at && run.counts(at) ? "right" : ""}`;
  verdict.textContent = !at
    ? "Before the first letter."
    : run.isWrong(at)
      ? `Wrong: outputs ${run.said(at)}, expected ${machine.outputs[states[at]]}.`
      : run.counts(at) ? `Right: outputs ${run.said(at)}.` : `Outputs ${run.said(at)}; this output does not count.`;
  renderViews(card, i, wanted, given);
  renderLayers(card, i);
  for (const [head, numbers] of Object.entries(spec.heads)) {
    const b = run.reader.layers[0].b, x = step.states[0].x.subarray(head * b, (head + 1) * b);
    const figure = one(`[data-head="${head}"]`, card), q = numbers.indexOf(largest(x));
    mark(figure, q);
  }
  const numbers = one(".numbers", card);
  if (numbers.parentElement.open) numbers.textContent = inNumbers(run, step);
}

function renderViews(card, i, wanted, given) {
  const views = one(".views", card), run = runs[i], spec = models[i];
  if (!views.childElementCount) {
    for (const name of ["logits", "place", "margins"]) views.append(element("div", { class: name }));
  }
  logitBars(one(".logits", views), run.steps[at].logits, spec.outputs, wanted, given);
  one(".margins", views).replaceChildren(
    element("h3", {}, "Margin along the word"), marginChart(run.margins.slice(0, word.length + 1), at, word.length));
  if (!spec.plane) return;
  const trail = [];
  for (let k = Math.max(0, at - TRAIL); k <= at; k++) trail.push(projected(spec.plane, run.steps[k].states));
  const chart = planeChart(spec.plane, machine.names, trail, states[at]);
  one(".place", views).replaceChildren(element("h3", {}, "Its state in a plane"), chart);
}

function projected(plane, parts) {
  const x = parts.flatMap((part) => [...part.x]);
  return plane.directions.map((d) => d.reduce((sum, share, j) => sum + share * (x[j] - plane.mean[j]), 0));
}

function renderLayers(card, i) {
  const place = one(".layers", card), run = runs[i], { layers } = run.reader, step = run.steps[at];
  if (!run.heats) {
    run.heats = layers.map((layer, l) => {
      const title = layers.length > 1 ? `Layer ${l}` : "Transition blocks of the letter, and the state";
      const canvas = element("canvas", { role: "img" });
      const legend = element("p", { class: "hint" });
      place.append(element("h3", {}, title), element("div", { class: "scroll" }, canvas), legend);
      return { heat: layer.kind === "index" ? null : new Heat(canvas, layer), canvas, legend, scale: { A: 0, x: 0 } };
    });
  }
  run.heats.forEach(({ heat, canvas, legend, scale }, l) => {
    const { x } = step.states[l], move = step.moves[l];
    if (!heat) {
      canvas.hidden = true;
      legend.textContent = `An index table of ${layers[l].b} states: the 1 of the one-hot state is entry ${x}.`;
      return;
    }
    const before = at ? run.steps[at - 1].states[l].x : x;
    scale.A = Math.max(scale.A, size(move && move.A), 1e-9);
    scale.x = Math.max(scale.x, size(x), size(move && move.v), 1e-9);
    heat.draw(move, before, x, colours, { A: scale.A, x: scale.x });
    const hot = layers[l].sizes.map((b, h) => oneHot(x.subarray(h * layers[l].b, h * layers[l].b + b)));
    const isNamed = hot.every((q) => q >= 0) && hot.length <= 8;
    const named = isNamed ? ` One-hot at ${hot.length > 1 ? "entries" : "entry"} ${hot.join(", ")}, counted from 0.` : "";
    canvas.setAttribute("aria-label", `Layer ${l}: blocks and state.${named}`);
    const inA = scale.A > 1e-9 ? `${shown(scale.A)} in A, ` : ""; // none was shown before the first letter
    legend.textContent = `x after = A · x before + v. Red above zero, blue below; full colour is ${inA}${shown(scale.x)} in x and v.${named}`;
  });
}

function size(values) {
  let most = 0;
  for (const value of values || []) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  return most;
}

function oneHot(x) {
  const found = largest(x);
  return x.length > 1 && x.every((value, j) => value === (j === found ? 1 : 0)) ? found : -1;
}

function inNumbers(run, step) {
  const lines = step.states.map((part, l) => {
    if (typeof part.x === "number") return `state ${part.x}`;
    const { b, sizes } = run.reader.layers[l];
    return sizes.map((n, h) => `layer ${l}, head ${h}: ${[...part.x.subarray(h * b, h * b + n)].map(shown).join("  ")}`).join("\n");
  });
  return [...lines, `logits: ${[...step.logits].map(shown).join("  ")}`].join("\n");
}

// What is done.

function type(text) {
  const fault = one("#fault"), input = one("#word");
  try {
    setWord(typedWord(text));
    fault.textContent = "";
    input.removeAttribute("aria-invalid");
  } catch (error) {
    fault.textContent = error.message;
    input.setAttribute("aria-invalid", "true");
  }
}

function choose(tokens, position) {
  play(false);
  one("#word").value = writtenWord(tokens);
  one("#fault").textContent = "";
  one("#word").removeAttribute("aria-invalid");
  setWord(tokens, position);
}

function begin() {
  models.forEach((spec, i) => runs.push(new Run(readers[i], spec)));
  one("#word").addEventListener("input", (event) => {
    play(false);
    type(event.target.value);
  });
  one("#word").addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "Escape") one("#tape").focus();
  });
  for (const [name, act] of Object.entries(ACTIONS)) {
    one(`#${name}`).addEventListener("click", () => {
      if (name !== "play") play(false);
      act();
    });
  }
  for (const button of all("[data-letter]")) {
    button.addEventListener("click", () => choose([...word, Number(button.dataset.letter)]));
  }
  for (const button of all("[data-word]")) {
    button.addEventListener("click", () => choose(words[Number(button.dataset.word)].letters, 0));
  }
  one("#rub").addEventListener("click", () => choose(word.slice(0, -1)));
  one("#random").addEventListener("click", () => {
    choose(randomWord(40), 0);
  });
  one("#tape").addEventListener("click", (event) => {
    const cell = event.target.closest("[data-k]");
    if (cell) go(Number(cell.dataset.k));
  });
  document.addEventListener("keydown", (event) => {
    const tag = event.target.tagName;
    if (event.ctrlKey || event.metaKey || event.altKey || tag === "INPUT" || tag === "SELECT") return;
    if (event.key === " " && (tag === "BUTTON" || tag === "SUMMARY")) return;
    const name = KEYS[event.key];
    if (!name) return;
    event.preventDefault();
    if (name !== "play") play(false);
    if (!one(`#${name}`).disabled) ACTIONS[name]();
  });
  for (const details of all("details")) details.addEventListener("toggle", render);
  window.addEventListener("resize", render);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  if (!words.length) setWord([]);
  else {
    choose(words[0].letters, 0);
    firstError();
  }
}

begin();
