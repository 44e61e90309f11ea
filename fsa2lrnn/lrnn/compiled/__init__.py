"""What compiled kernels on the CPU share: vector instructions, torch's threads, and memory for their results."""

import torch

DTYPES = (torch.float32, torch.float64)  # that kernels compute in as they are
