"""Shorten the `repr` of dataclasses to at most 200 characters."""

from __future__ import annotations

import reprlib
from dataclasses import fields
from typing import Any

MOST = 200  # characters of a `repr`


class Brief:
    """A base class that limits the `repr` of a dataclass to 200 characters and shortens each field.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Result(Brief):
    ...     numbers: tuple[int, ...]
    ...     name: str
    >>> Result(tuple(range(10**6)), "large")
    Result(numbers=(0, 1, 2, 3, ...), name='large')
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # `dataclass` writes its own `__repr__` unless it finds one in the class itself, not in a base class.
        cls.__repr__ = Brief.__repr__

    def __repr__(self) -> str:
        parts = (f"{f.name}={_shorten.repr(getattr(self, f.name))}" for f in fields(self) if f.repr)  # pyright: ignore[reportArgumentType]
        text = f"{type(self).__name__}({', '.join(parts)})"
        return text if len(text) <= MOST else f"{text[: MOST - 2]}…)"


class _Shorten(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxtuple, self.maxlist, self.maxdict, self.maxother, self.maxstring = 2, 4, 4, 2, 60, 60

    def repr_ndarray(self, array: Any, _level: int) -> str:
        return f"array of shape {array.shape}"

    def repr_Tensor(self, tensor: Any, _level: int) -> str:
        return f"tensor of shape {tuple(tensor.shape)}"

    def repr_LRNN(self, _model: Any, _level: int) -> str:
        return "LRNN(…)"  # the text of a module has many lines


_shorten = _Shorten()
