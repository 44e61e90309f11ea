// Words of the page's machine, whose letters tokens number: as they are typed and written, and random ones.
"use strict";

function typedWord(text) {
  const number = new Map(machine.alphabet.map((letter, a) => [letter, a]));
  let letters;
  if (typed === "list") {
    try {
      letters = text.trim() ? JSON.parse(text).map(String) : [];
    } catch {
      throw new Error(`a word over these letters is typed as a JSON list: ${JSON.stringify(machine.alphabet.slice(0, 2))}`);
    }
  } else {
    letters = typed === "characters" ? [...text].filter((c) => number.has(c) || c.trim()) : text.split(/\s+/).filter(Boolean);
  }
  if (letters.length > MOST) throw new Error(`${letters.length} letters: a page reads ${MOST} at most`);
  return letters.map((letter, k) => {
    if (!number.has(letter)) {
      throw new Error(`“${letter}”, letter ${k + 1}, is not in the alphabet: ${machine.alphabet.slice(0, 20).join(" ")}`);
    }
    return number.get(letter);
  });
}

function writtenWord(tokens) {
  const letters = tokens.map((a) => machine.alphabet[a]);
  return typed === "list" ? JSON.stringify(letters) : letters.join(typed === "words" ? " " : "");
}

// Random letters, which keep out of sinks where they can.
function randomWord(length) {
  const tokens = [];
  let q = machine.start;
  for (let k = 0; k < length; k++) {
    const letters = [...machine.alphabet.keys()];
    const onward = letters.filter((a) => !machine.sinks[machine.delta[a][q]]);
    const among = onward.length ? onward : letters;
    tokens.push(among[Math.floor(Math.random() * among.length)]);
    q = machine.delta[tokens[k]][q];
  }
  return tokens;
}
