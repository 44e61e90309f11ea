"""An exported model as a module from letters to logits of outputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from fsa2lrnn.extra.huggingface.folder import ExportedModel, run


class ExportedNetwork(nn.Module):
    """A module from letters, int64 (B, T), to one-hot logits of the model's output tokens, (B, T, |Γ|)."""

    def __init__(self, exported: ExportedModel) -> None:
        super().__init__()
        self.exported = exported

    def forward(self, tokens: Tensor) -> Tensor:
        """Run the package's own code on each word of the batch, from its beginning."""
        n, answers = len(self.exported.machine.alphabet), [run(self.exported, word)[0] for word in tokens]
        outputs = (torch.stack(answers) - n).clamp(0, len(self.exported.outputs) - 1) if tokens.numel() else tokens
        return one_hot(outputs, len(self.exported.outputs)).float()
