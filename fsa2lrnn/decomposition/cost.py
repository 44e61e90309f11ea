"""What a network costs: the cost model by which cascades are compared with each other and with a single block."""

from __future__ import annotations

from dataclasses import dataclass

LAYER_PRICE = 256  # a layer more counts as much as four more blocks of 4 states


@dataclass(frozen=True, order=True)
class Cost:
    """What a network pays per token.

    Args:
        total: the number that is compared: Σ b³ + gate units + 256 a layer.
        scan: Σ b³, multiplications of a parallel scan.
        step: Σ b², multiplications of a sequential step.
        units: hidden units of all gates and of the read-out.
        layers: number of layers.

    >>> Cost.of([(5, 1), (5,)], units=20)
    Cost(total=783, scan=251, step=51, units=20, layers=2)
    """

    total: int
    scan: int
    step: int
    units: int
    layers: int

    @classmethod
    def of(cls, block_sizes: list[tuple[int, ...]] | tuple[tuple[int, ...], ...], units: int) -> Cost:
        """The cost of layers with these block sizes and gates of so many hidden units in all."""
        sizes = [size for layer in block_sizes for size in layer]
        scan = sum(size**3 for size in sizes)
        layers = len(block_sizes)
        total = scan + units + LAYER_PRICE * layers
        return cls(total, scan, sum(size**2 for size in sizes), units, layers)

    def explain(self) -> str:
        """The cost as a sentence's part."""
        return (
            f"{self.total:,} = Σb³ {self.scan:,} + {self.units:,} gate units + {LAYER_PRICE} × {self.layers} "
            f"layer{'s' if self.layers > 1 else ''}"
        )
