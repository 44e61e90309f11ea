"""The arrays of a fixture, and what every check does with them."""

import torch
from torch.func import functional_call

from . import official

TOLERANCE = 1e-6


def doubled(x):
    return x.double() if x.is_floating_point() else x.to(torch.complex128) if x.is_complex() else x


class Numbers(dict):
    """The arrays of a fixture, those of a small set fewer than of a large one."""

    def weights(self, prefix="param."):
        """Parameters as leaves, so that gradients can be asked for."""
        found = {**official.part(self, prefix), **{name: x for name, x in self.items() if name.startswith("frozen.")}}
        return {name: x.double().requires_grad_() if x.is_floating_point() else x for name, x in found.items()}

    def check(self, name, found, scale=None):
        """`found` against the array of that name, if it is there."""
        if name in self:
            assert_close(found, self[name], name, scale)

    def check_gradients(self, output, inputs, weights, grad_input="grad_input"):
        """Those of sum(output ⊙ loss_weight)."""
        named = {name: x for name, x in weights.items() if f"grad.{name}" in self}
        assert named or "loss_weight" not in self
        leaves = [inputs, *named.values()] if inputs is not None else list(named.values())
        found = torch.autograd.grad((output * self["loss_weight"]).sum(), leaves, retain_graph=True)
        if inputs is not None:
            self.check(grad_input, found[0])
        for name, gradient in zip(named, found[len(leaves) - len(named) :], strict=True):
            self.check(f"grad.{name}", gradient)


def assert_close(found, wanted, name="", scale=None):
    found, wanted = found.detach(), wanted.detach()
    assert found.shape == wanted.shape, name
    if wanted.numel():
        allowed = TOLERANCE * (float(wanted.abs().max()) if scale is None else scale)
        assert float((found - wanted).abs().max()) <= allowed, name


def run(layer, weights, u, state=None, method="auto"):
    """Outputs and last state with those weights."""
    state = layer.initial_state(len(u)) if state is None else state
    return functional_call(layer, weights, (u, state, method))


def loaded(layer, weights):
    layer.load_state_dict({name: x.detach() for name, x in weights.items()})
    return layer
