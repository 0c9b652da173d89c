# SPDX-License-Identifier: Apache-2.0
"""How the operators of torchao, PT2E and ExecuTorch that quantize are named: their libraries may not be imported."""

from __future__ import annotations

from typing import Any

QUANTIZE_AFFINE = "torchao.quantize_affine.default"
QUANTIZE_NUMBERS = "quantized_decomposed.quantize_per_tensor.default"  # scale and zero point are numbers
QUANTIZE_TENSOR = "quantized_decomposed.quantize_per_tensor.tensor"  # ... are tensors
QUANTIZE_TOKEN = "quantized_decomposed.quantize_per_token.default"
CHOOSE_AFFINE = "torchao.choose_qparams_affine.default"
CHOOSE_TENSOR = ("quantized_decomposed.choose_qparams.tensor", "quantized_decomposed.choose_qparams_symmetric.tensor")
DEQUANTIZE_NIBBLES = "torchao.dequantize_int4_tensor.default"  # of weights only
DEQUANTIZE = (
    "torchao.dequantize_affine.default",
    "quantized_decomposed.dequantize_per_channel.default",
    "quantized_decomposed.dequantize_per_tensor.default",
    "quantized_decomposed.dequantize_per_tensor.tensor",
    "quantized_decomposed.dequantize_per_channel_group.default",
    "quantized_decomposed.dequantize_per_token.default",
)


def is_dequantize(target: Any) -> bool:
    """Whether an operator makes real numbers of integers, a scale and a zero point."""
    return str(target) in DEQUANTIZE or str(target) == DEQUANTIZE_NIBBLES


def is_choose_qparams(target: Any) -> bool:
    """Whether an operator computes a scale and a zero point."""
    return "choose_qparams" in str(target)
