# SPDX-License-Identifier: Apache-2.0
"""pumice.quantize: a thin call into torchao, in the configurations whose exported form Pumice recognises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from pumice.errors import InvalidInputError, require

if TYPE_CHECKING:
    from torchao.core.config import AOBaseConfig

SCHEMES = ("int4", "int8", "8da4w", "8da8w")
INT4_SCHEMES = ("int4", "8da4w")


def quantize(module: torch.nn.Module, scheme: str, group_size: int = 32) -> torch.nn.Module:
    """Quantizes the linear layers of `module` in place and returns it.

    int4: weights in groups of `group_size` along the input. int8: one scale for each output channel.
    8da4w, 8da8w: the same weights, and activations quantized to int8 per token while running.
    Raises InvalidInputError for an unknown scheme, and where groups do not divide the inputs of a layer.
    """
    if not isinstance(module, torch.nn.Module):
        text = f"only a torch.nn.Module can be quantized, not {type(module).__name__}: quantize before torch.export"
        raise InvalidInputError(text, code="InvalidArgument", path="module")
    require(scheme, SCHEMES, "quantization scheme")
    from torchao.quantization import quantize_

    config = scheme_config(scheme, group_size)
    if scheme in INT4_SCHEMES:
        for name, layer in module.named_modules():
            takes_groups(layer, name, group_size)
    quantize_(module, config)
    return module


def scheme_config(scheme: str, group_size: int = 32) -> AOBaseConfig:
    """torchao's configuration of one of SCHEMES."""
    if type(group_size) is not int or group_size < 1:
        text = f"group_size must be a positive integer, got {group_size!r}"
        raise InvalidInputError(text, code="InvalidArgument", path="group_size")
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerAxis, PerGroup

    int4 = scheme in INT4_SCHEMES
    dtype, granularity = (torch.int4, PerGroup(group_size)) if int4 else (torch.int8, PerAxis(0))
    if scheme.startswith("8da"):
        return Int8DynamicActivationIntxWeightConfig(weight_dtype=dtype, weight_granularity=granularity)
    return IntxWeightOnlyConfig(weight_dtype=dtype, granularity=granularity)


def takes_groups(layer: torch.nn.Module, name: str, group_size: int) -> bool:
    """Whether a scheme of INT4_SCHEMES quantizes the layer, as torchao chooses; raises when its groups do not fit."""
    if not isinstance(layer, torch.nn.Linear) or isinstance(layer, NonDynamicallyQuantizableLinear):
        return False
    if layer.in_features % group_size:
        text = f"layer '{name}' has {layer.in_features} inputs, which groups of {group_size} do not divide"
        raise InvalidInputError(text, code="InvalidArgument", path=name)
    return True
