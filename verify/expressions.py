"""`python -m verify.expressions [COUNT] [SEED]`: compare the reader of expressions with `re`; exit 1 on a difference.

Random patterns with all syntax of `re`, half of them with random characters inserted, removed or repeated, are read
over an alphabet of three letters, or over their own letters. The reader refuses a pattern, or its machine accepts the
words of at most four letters (over three letters of its alphabet) that `re.fullmatch` accepts. Patterns with the
operators `&` and `^`, which `re` does not have, are counted as noted: for each the reader warns.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections import Counter
from itertools import product

from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

COUNT, MAX_WORD = 2_000, 4
LETTERS = "ab1_-] \n^&é.{$,"
SIGNS = "()[]{}\\*+?|^$.,-&01389abfnpxuNPQdDsSwWzZAB:=!<>i#~ \n"
ESCAPES = (
    *(rf"\{c}" for c in "dDsSwWbBAZzQEhNecpPGRXkafnrtv0123456789"), r"\x61", r"\x6", r"\u00e9", r"\U00000062",
    r"\N{DIGIT ONE}", r"\N{no such}", r"\141", r"\012", r"\01", r"\777", r"\U00110000", r"\ud800", r"\cA", r"\p{L}",
)  # fmt: skip
QUANTIFIERS = ("*", "+", "?", "{2}", "{,2}", "{1,}", "{1,2}", "{0}", "{,}", "{00,01}")
ODD_QUANTIFIERS = ("{2,1}", "{}", "{a}", "{1", "{1, 2}", "{-1}", "{,1,}", "}", "{99999999999}")
GROUPS = ("(", "(?:", "(?P<{}>")
ODD_GROUPS = (
    "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i)", "(?i:", "(?-i:", "(?s)", "(?P=n)", "(?(1)", "(?P<1>", "(?<n>",
    "(?P>n)", "(?R)", "(?#c)", "(?#", "(?^", "(?", "(*", "^", "$",
)  # fmt: skip
ODD_CLASSES = (
    "[[:alpha:]]",
    "[a-Z]",
    "[b-a]",
    "[]",
    "[^]",
    "[a",
    r"[a-\d]",
    "[[a]",
    "[a--b]",
    "[a&&b]",
    "[a||b]",
    "[^^]",
)


class Patterns:
    """A generator of patterns from a seed; `odd` is the share of constructs that are exotic or faulty."""

    def __init__(self, rng: random.Random, alphabet: str, odd: float) -> None:
        self.rng, self.alphabet, self.odd = rng, alphabet, odd

    def is_odd(self) -> bool:
        return self.rng.random() < self.odd

    def letter(self) -> str:
        letter = self.rng.choice(self.alphabet)
        if self.is_odd():
            return self.rng.choice((*ESCAPES, letter, self.rng.choice(LETTERS)))
        return letter if letter.isalnum() or letter in "_ \n" else f"\\{letter}"

    def character_class(self) -> str:
        if self.is_odd():
            return self.rng.choice(ODD_CLASSES)
        items: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            first = self.letter()
            kind = self.rng.random()
            items.append(
                f"{first}-{self.letter()}" if kind < 0.2 else rf"\{self.rng.choice('dDsSwW')}" if kind < 0.35 else first
            )
        ends = ("]" if self.rng.random() < 0.1 else "", "-" if self.rng.random() < 0.1 else "")
        return f"[{'^' if self.rng.random() < 0.3 else ''}{ends[0]}{''.join(items)}{ends[1]}]"

    def pattern(self, depth: int) -> str:
        kind = self.rng.random()
        if depth == 0 or kind < 0.2:
            shorthand = self.rng.choice((".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S"))
            return self.rng.choice((self.letter(), self.letter(), self.letter(), shorthand, self.character_class()))
        if kind < 0.55:
            return "".join(self.pattern(depth - 1) for _ in range(self.rng.randint(1, 3)))
        if kind < 0.7:
            return f"{self.pattern(depth - 1)}|{'' if self.rng.random() < 0.15 else self.pattern(depth - 1)}"
        opening = self.rng.choice(ODD_GROUPS if self.is_odd() else GROUPS).replace("{}", f"n{self.rng.randrange(1000)}")
        group = f"{opening}{'' if self.rng.random() < 0.05 else self.pattern(depth - 1)})"
        if kind < 0.8:
            return group
        quantifier = self.rng.choice(ODD_QUANTIFIERS if self.is_odd() else QUANTIFIERS)
        mode = self.rng.choice("+?*") if self.is_odd() else "?" if self.rng.random() < 0.15 else ""
        return f"{self.rng.choice((group, self.letter(), self.character_class()))}{quantifier}{mode}"

    def mutated(self, pattern: str) -> str:
        characters = list(pattern)
        for _ in range(self.rng.randint(1, 3)):
            at, kind = self.rng.randint(0, len(characters)), self.rng.randrange(3)
            characters[at : at + (kind > 0)] = (
                characters[at : at + 1] * 2 if kind == 2 else "" if kind else self.rng.choice(SIGNS)
            )
        return "".join(characters)


def words(letters: str) -> list[str]:
    """Return all words of at most `MAX_WORD` letters."""
    return ["".join(word) for length in range(MAX_WORD + 1) for word in product(letters, repeat=length)]


def answer(pattern: str, alphabet: str | None, rng: random.Random) -> tuple[str, dict[str, bool]]:
    """Return how the reader treats a pattern ("read", "noted", or the refusal) and whether it accepts each word."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            machine = from_regex(pattern, alphabet=alphabet)
        except BudgetExceeded:
            return "is beyond the limits", {}
        except InvalidMachine as refusal:
            fault = re.search(r" at position \d+ ([^:;,(]*)|alphabet is empty", str(refusal))
            return "other" if fault is None else (fault[1] or fault[0]).strip(), {}
    letters = alphabet or "".join(map(str, rng.sample(machine.alphabet, min(3, len(machine.alphabet)))))
    return "noted" if notes else "read", {word: machine.accepts(list(word)) for word in words(letters)}


def compare(count: int, seed: int = 0) -> tuple[Counter[str], Counter[str], list[str]]:
    """Return the counts of patterns by treatment, the counts of refusals by name, and the patterns read differently."""
    rng = random.Random(seed)
    counts, refusals, different = Counter[str](), Counter[str](), list[str]()
    for number in range(count):
        alphabet = "".join(rng.sample(LETTERS, 3))
        patterns = Patterns(rng, alphabet, odd=0.0 if number % 4 == 0 else 0.1)
        pattern = patterns.pattern(3)
        pattern = patterns.mutated(pattern) if number % 2 else pattern
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                python = re.compile(pattern, re.DOTALL)
        except (re.error, OverflowError):
            python = None
        kind, accepts = answer(pattern, rng.choice((alphabet, None)), rng)
        if kind not in ("read", "noted"):
            refusals[kind] += 1
            kind = "refused"
        elif kind == "noted" and set(pattern) & set("&^"):
            pass
        elif kind == "noted" or python is None or any(accepts[w] != bool(python.fullmatch(w)) for w in accepts):
            kind = "different"
            different.append(f"{pattern!r} over {alphabet!r}")
        group = "not accepted by re" if python is None else "plain" if number % 4 == 0 else "odd or mutated"
        counts[f"{group}: {kind}"] += 1
    return counts, refusals, different


def main(count: int, seed: int = 0) -> int:
    """Print the counts; return 1 if a pattern was read as another language."""
    counts, refusals, different = compare(count, seed)
    for title, table in (("patterns", counts), ("refusals", refusals)):
        print(f"{title}: {sum(table.values()):,}")
        print("".join(f"{number:>8,}  {name}\n" for name, number in table.most_common()))
    print(f"read differently: {len(different):,}\n" + "".join(f"  {pattern}\n" for pattern in different[:20]))
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:3])) if sys.argv[1:] else main(COUNT))
