"""How layers are joined: the stream that starts as the embedding, is read by each layer and at last by the read-out.

- "chain": each layer's output takes the place of the stream, so that a layer reads the one below.
- "residual": each layer adds its output to the stream, and the last takes its place (the paper's released code).
- "full-residual": each layer adds its output to the stream, the last one too (the backbone of S4 and its kin).
- "concat": each layer's output is appended to the stream, so that a layer reads the embedding and all layers below
  (DenseNet's way); the read-out gets all outputs without the embedding, a function of the states.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

CONNECTIONS = ("chain", "residual", "full-residual", "concat")


def connect(connection: str, stream: Tensor, x: Tensor, embedding_dim: int, is_last: bool) -> Tensor:
    """The stream above a layer that read `stream` (…, d) and gave `x` (…, H·b); `is_last`: the read-out comes next."""
    if connection == "concat":
        whole = torch.cat([stream, x], dim=-1)  # (…, d + H·b)
        return whole[..., embedding_dim:] if is_last else whole
    return stream + x if adds(connection, is_last) else x


def stream_widths(connection: str, embedding_dim: int, layer_widths: Sequence[int]) -> list[int]:
    """Widths of the stream before each layer and before the read-out, as `connect` makes them.

    >>> [stream_widths(connection, 8, [8, 3]) for connection in CONNECTIONS]
    [[8, 8, 3], [8, 8, 3], [8, 8, 8], [8, 16, 11]]
    """
    widths = [embedding_dim]
    for i, width in enumerate(layer_widths):
        is_last = i + 1 == len(layer_widths)
        if connection == "concat":
            widths.append(widths[-1] + width - (embedding_dim if is_last else 0))
        else:
            widths.append(widths[-1] if adds(connection, is_last) else width)
    return widths


def adds(connection: str, is_last: bool) -> bool:
    """Whether a layer's output is added to the stream."""
    return connection == "full-residual" or (connection == "residual" and not is_last)
