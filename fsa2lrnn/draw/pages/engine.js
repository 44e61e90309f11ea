// A model, letter by letter, in the arithmetic that it has in torch: every product and every sum is rounded to its
// number type. Sums are taken in the order of their indices, where torch may take another.
"use strict";

const ARRAYS = { f32: Float32Array, f64: Float64Array, i32: Int32Array };

function decoded(array) {
  const text = atob(array.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[array.type](bytes.buffer);
}

class Model {
  // `program` is what programs.py writes; `letters` gives the model's number of each of the page's letters.
  constructor(program, letters) {
    this.letters = letters;
    this.connection = program.connection;
    this.shift = program.shift;
    this.isSingle = program.dtype === "f32";
    this.round = this.isSingle ? Math.fround : (x) => x;
    this.Array = ARRAYS[program.dtype];
    this.embedding = program.embedding && decoded(program.embedding);
    this.width = program.embedding ? program.embedding.shape[1] : 0;
    this.layers = program.layers.map((layer) => this.layer(layer));
    this.readout = program.readout && { ...this.gate(program.readout), norm: this.norm(program.readout.norm) };
  }

  layer(spec) {
    const common = { kind: spec.kind, sizes: spec.sizes, heads: spec.sizes.length, b: Math.max(...spec.sizes) };
    if (spec.kind === "index") {
      const [next, cell, output] = [decoded(spec.next), decoded(spec.cell), decoded(spec.output)];
      return { ...common, start: spec.start, next, cell, output, outputs: spec.outputs };
    }
    const found = { ...common, x0: decoded(spec.x0), norm: this.norm(spec.norm) };
    if (spec.kind === "tables") return { ...found, A: decoded(spec.A), v: decoded(spec.v) };
    const value = spec.value ? this.gate(spec.value) : null;
    return { ...found, rule: spec.rule, p: spec.p, transition: this.gate(spec.transition), value };
  }

  gate(spec) {
    const [hidden, wide] = spec.W1.shape;
    const parts = { W1: decoded(spec.W1), b1: decoded(spec.b1), W2: decoded(spec.W2), b2: decoded(spec.b2) };
    return { ...parts, hidden, wide, out: spec.W2.shape[0] };
  }

  norm(spec) {
    return spec ? { weight: decoded(spec.weight), bias: decoded(spec.bias), eps: spec.eps } : null;
  }

  // Before the first letter: of each layer its state, and under a token shift what it would have read.
  start() {
    const states = [];
    let stream = new this.Array(this.width);
    this.layers.forEach((layer, i) => {
      const x = layer.kind === "index" ? layer.start : layer.x0.slice();
      states.push({ x, u: this.shift ? this.normed(layer.norm, stream) : null });
      if (layer.kind !== "index") stream = this.connect(stream, x, i);
    });
    return { states, logits: this.read(states, stream) };
  }

  // One letter: the states after it, what moved them (A and v, row by row), and the logits.
  step(states, letter) {
    const a = this.letters[letter];
    if (this.layers[0].kind === "index") {
      const layer = this.layers[0];
      const x = layer.next[layer.cell[a] * layer.b + states[0].x];
      return { states: [{ x, u: null }], moves: [null], logits: this.read([{ x }], null) };
    }
    let stream = this.embedding.slice(a * this.width, (a + 1) * this.width);
    const after = [], moves = [];
    this.layers.forEach((layer, i) => {
      const u = this.normed(layer.norm, stream);
      const move = this.tables(layer, a, this.shift ? joined(this.Array, u, states[i].u) : u);
      const x = this.moved(layer, move, states[i].x);
      after.push({ x, u: this.shift ? u : null });
      moves.push(move);
      stream = this.connect(stream, x, i);
    });
    return { states: after, moves, logits: this.read(after, stream) };
  }

  tables(layer, a, u) {
    const { heads, b } = layer, square = heads * b * b, row = heads * b;
    if (layer.kind === "tables") {
      return { A: layer.A.subarray(a * square, (a + 1) * square), v: layer.v.subarray(a * row, (a + 1) * row) };
    }
    const A = this.apply(layer.transition, u);
    const v = layer.value ? this.apply(layer.value, u) : new this.Array(row);
    layer.sizes.forEach((size, h) => {
      for (let i = 0; i < b; i++) {
        if (i >= size) v[h * b + i] = 0;
        for (let j = 0; j < b; j++) if (i >= size || j >= size) A[(h * b + i) * b + j] = 0;
      }
      this.ruled(layer, A.subarray(h * b * b, (h + 1) * b * b), b, size);
    });
    return { A, v };
  }

  // The column rule on one block, in place.
  ruled(layer, block, b, size) {
    const { rule, p } = layer, f = this.round;
    if (rule === "none") return;
    const norms = [];
    for (let j = 0; j < b; j++) {
      if (rule === "onehot") {
        let best = 0;
        for (let i = 1; i < size; i++) if (block[i * b + j] > block[best * b + j]) best = i;
        for (let i = 0; i < b; i++) block[i * b + j] = i === best ? 1 : 0;
        continue;
      }
      if (rule === "paper") {
        let mean = 0;
        for (let i = 0; i < b; i++) mean = f(mean + block[i * b + j]);
        mean = f(mean / b);
        for (let i = 0; i < b; i++) block[i * b + j] = f(block[i * b + j] - mean);
      }
      let sum = 0;
      for (let i = 0; i < b; i++) sum = f(sum + f(Math.abs(block[i * b + j]) ** p));
      norms.push(f(sum ** (1 / p)));
    }
    if (rule === "onehot") return;
    const largest = Math.max(...norms);
    for (let j = 0; j < b; j++) {
      const by = rule === "clip" ? Math.max(1, norms[j]) : largest;
      for (let i = 0; i < b; i++) block[i * b + j] = f(block[i * b + j] / by);
    }
  }

  // A x + v, block by block.
  moved(layer, { A, v }, x) {
    const { heads, b } = layer, after = new this.Array(heads * b), f = this.round;
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < b; i++) {
        let sum = 0;
        for (let j = 0; j < b; j++) sum = f(sum + f(A[(h * b + i) * b + j] * x[h * b + j]));
        after[h * b + i] = f(sum + v[h * b + i]);
      }
    }
    return after;
  }

  connect(stream, x, i) {
    const isLast = i + 1 === this.layers.length;
    if (this.connection === "concat") {
      const whole = joined(this.Array, stream, x);
      return isLast ? whole.slice(this.width) : whole;
    }
    if (this.connection === "full-residual" || (this.connection === "residual" && !isLast)) {
      return stream.map((value, k) => this.round(value + x[k]));
    }
    return x;
  }

  read(states, stream) {
    if (this.layers[0].kind === "index") {
      const { output, outputs } = this.layers[0];
      const logits = new this.Array(outputs);
      logits[output[states[0].x]] = 1;
      return logits;
    }
    return this.apply(this.readout, this.normed(this.readout.norm, stream));
  }

  // W2 relu(W1 z + b1) + b2.
  apply(gate, z) {
    const f = this.round, hidden = new this.Array(gate.hidden), out = new this.Array(gate.out);
    for (let i = 0; i < gate.hidden; i++) {
      let sum = 0;
      for (let j = 0; j < gate.wide; j++) sum = f(sum + f(gate.W1[i * gate.wide + j] * z[j]));
      hidden[i] = Math.max(0, f(sum + gate.b1[i]));
    }
    for (let i = 0; i < gate.out; i++) {
      let sum = 0;
      for (let j = 0; j < gate.hidden; j++) {
        if (hidden[j] !== 0) sum = f(sum + f(gate.W2[i * gate.hidden + j] * hidden[j]));
      }
      out[i] = f(sum + gate.b2[i]);
    }
    return out;
  }

  normed(norm, z) {
    if (!norm) return z;
    const f = this.round, n = z.length;
    let mean = 0, variance = 0;
    for (const value of z) mean = f(mean + value);
    mean = f(mean / n);
    for (const value of z) variance = f(variance + f(f(value - mean) * f(value - mean)));
    const scale = f(1 / Math.sqrt(f(f(variance / n) + norm.eps)));
    return z.map((value, k) => f(f(f(f(value - mean) * scale) * norm.weight[k]) + norm.bias[k]));
  }
}

function joined(Kind, a, b) {
  const whole = new Kind(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}

// The number of the largest logit, the first among equals; −1 where one is not a number.
function largest(logits) {
  let best = 0;
  for (let i = 0; i < logits.length; i++) {
    if (Number.isNaN(logits[i])) return -1;
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}
