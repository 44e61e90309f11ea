"""Connection of layers by a stream that starts as the embedding and is read by each layer and by the read-out.

- "chain": each output replaces the stream, so each layer reads the one below.
- "residual": each output is added to the stream, but the last one replaces it (the paper's code).
- "full-residual": each output is added to the stream, including the last one (the backbone of S4 and related models).
- "concat": each output is appended to the stream, so each layer reads the embedding and all layers below, as in
  DenseNet; the read-out gets all outputs without the embedding, a function of the states.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

CONNECTIONS = ("chain", "residual", "full-residual", "concat")


def connect(connection: str, stream: Tensor, x: Tensor, embedding_dim: int, is_last: bool) -> Tensor:
    """Return the stream after a layer with input `stream` (…, d) and output `x` (…, H·b); `is_last`: the last layer."""
    if connection == "concat":
        whole = torch.cat([stream, x], dim=-1)  # (…, d + H·b)
        return whole[..., embedding_dim:] if is_last else whole
    return stream + x if adds(connection, is_last) else x


def stream_widths(connection: str, embedding_dim: int, layer_widths: Sequence[int]) -> list[int]:
    """Return the widths of the stream before each layer and before the read-out under `connect`.

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
    """Return whether outputs are added to the stream."""
    return connection == "full-residual" or (connection == "residual" and not is_last)
