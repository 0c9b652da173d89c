# SPDX-License-Identifier: Apache-2.0
"""The mixtures of experts of transformers' decoders, as modules of Pumice's own operators."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.initialization import no_init_weights

import pumice.passes.experts  # noqa: F401 (registers the operators)
from pumice.errors import InvalidInputError

# Blocks whose router is softmax over all experts, then the largest: always normalized, or as its configuration says.
_BLOCKS = {"MixtralSparseMoeBlock": True, "Qwen3MoeSparseMoeBlock": None, "OlmoeSparseMoeBlock": None}
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
_MOST = 1024  # experts, ops/expert_linear.cpp


class ExpertLinear(nn.Linear):
    """The linear layers of all experts: weight [E * N, K], their matrices one below the other."""

    def __init__(self, experts: int, act: str, gated: bool, like: Tensor) -> None:
        with no_init_weights():
            super().__init__(like.shape[2], experts * like.shape[1], bias=False, dtype=like.dtype)
        self.requires_grad_(False)
        self.experts, self.act, self.gated = experts, act, gated

    def forward(self, x: Tensor, chosen: Tensor, factors: Tensor | None = None) -> Tensor:
        """As pumice::expert_linear."""
        return torch.ops.pumice.expert_linear(x, self.weight, chosen, factors, self.experts, self.act, self.gated)


class Mixture(nn.Module):
    """Stands for a sparse block; the weights of its router and experts keep transformers' names, but for a ".weight"
    at the end of the latter."""

    def __init__(self, block: nn.Module, act: str, normalize: bool) -> None:
        super().__init__()
        self.gate, self.count, self.normalize = block.gate, block.gate.top_k, normalize
        first, second = block.experts.gate_up_proj, block.experts.down_proj
        self.experts = nn.Module()
        self.experts.gate_up_proj = ExpertLinear(first.shape[0], act, True, first)
        self.experts.down_proj = ExpertLinear(second.shape[0], "none", False, second)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """hidden_states [B, n, K]; returns the same shape."""
        x = hidden_states.flatten(0, 1)
        factors, chosen = torch.ops.pumice.route_experts(F.linear(x, self.gate.weight), self.count, self.normalize)
        inner = self.experts.gate_up_proj(x, chosen)
        return self.experts.down_proj(inner, chosen, factors).view(hidden_states.shape)


def replace_mixtures(model: nn.Module) -> None:
    """Puts a Mixture in the place of every sparse block of `model`.

    Raises InvalidInputError for a router, an activation or a number of experts that is not known.
    """
    for name, block in list(model.named_modules()):
        if hasattr(block, "experts") and hasattr(block, "gate"):
            model.set_submodule(name, _mixture(block, name, model.config))


def _mixture(block: nn.Module, name: str, config: object) -> Mixture:
    kind, act = type(block).__name__, getattr(config, "hidden_act", None)
    if kind not in _BLOCKS:
        raise _bad(f"the router of '{name}' is that of {kind}; known: {', '.join(_BLOCKS)}", name)
    if act not in _ACTIVATIONS:
        raise _bad(f"experts with the activation '{act}'; known: {', '.join(_ACTIVATIONS)}", "hidden_act")
    count = block.gate.weight.shape[0]
    if not 1 <= block.gate.top_k <= count <= _MOST:
        raise _bad(f"{block.gate.top_k} of {count} experts; at least one, of at most {_MOST}", "num_experts_per_tok")
    normalize = _BLOCKS[kind] if _BLOCKS[kind] is not None else bool(block.gate.norm_topk_prob)
    return Mixture(block, _ACTIVATIONS[act], normalize)


def _bad(text: str, path: str) -> InvalidInputError:
    return InvalidInputError(text, code="InvalidArgument", path=path)
