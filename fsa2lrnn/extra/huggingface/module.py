"""Adapt external models to `fsa2lrnn.wrap`, and hence to `falsify`, `extract_learned` and `compare`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fsa2lrnn.extra.huggingface.folder import ExportedModel, run

Parts = tuple[Tensor, ...]


class SteppedModule(nn.Module):
    """A module that maps letters, int64 (B, T), to the one-hot outputs of an external model, float32 (B, T, |Γ|).

    If the model outputs a letter or a padding token, the result is NaN. Words of a batch are read one after the other,
    by the model's own calls. A state is the state of the model's `Code`, after a flag that is 0 before a word and 1
    after a letter.
    """

    def __init__(self, exported: ExportedModel) -> None:
        super().__init__()
        self._exported = exported
        code, model = exported.code, exported.model
        code.check(model)
        _, cache = code.read(model, torch.tensor([0]), None)
        self._like = code.state(model, cache)

    @torch.no_grad()
    def forward(self, tokens: Tensor) -> Tensor:
        """Return the outputs of whole words: int64 (B, T) -> float32 (B, T, |Γ|)."""
        return self._logits(torch.stack([run(self._exported, word)[0] for word in tokens]) if len(tokens) else tokens)

    def initial_state(self, batch: int) -> Parts:
        """Return the state before a word: the flag 0, (B,), and zeros in the shapes of the model's state, (B, …)."""
        return torch.zeros(batch), *(torch.zeros(batch, *part.shape) for part in self._like)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: Parts) -> tuple[Tensor, Parts]:
        """Return the outputs and the state after one letter: int64 (B,) -> float32 (B, |Γ|)."""
        code, model = self._exported.code, self._exported.model
        logits, after = list[Tensor](), list[Parts]()
        for row, token in enumerate(tokens):
            parts = tuple(part[row].to(like.dtype) for part, like in zip(state[1:], self._like, strict=True))
            put_out, cache = code.read(model, token[None], code.cache(model, parts) if state[0][row] else None)
            logits.append(self._logits(put_out)[0])
            after.append((torch.ones(()), *(part.float() for part in code.state(model, cache))))
        return torch.stack(logits), tuple(torch.stack(parts) for parts in zip(*after, strict=True))

    def _logits(self, tokens: Tensor) -> Tensor:
        n, n_outputs = len(self._exported.machine.alphabet), len(self._exported.outputs)
        is_output = (tokens >= n) & (tokens < n + n_outputs)
        encoded = nn.functional.one_hot((tokens - n).clamp(0, n_outputs - 1), n_outputs).float()
        return torch.where(is_output[..., None], encoded, torch.nan)
