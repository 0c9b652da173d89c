# SPDX-License-Identifier: Apache-2.0
"""The one view of dequantize nodes, on what torchao writes."""

from __future__ import annotations

import pytest
import torch
from support.graphs import decomposed, selection
from torch import nn

import pumice
from pumice.format.ir import DType
from pumice.lowering.call import Call
from pumice.lowering.quantized import QuantizedTensor
from pumice.lowering.quantized import view as view_of
from pumice.lowering.quantized_names import is_dequantize

WIDTH = 64


def view(module: nn.Module, dtype: torch.dtype = torch.float32) -> tuple[QuantizedTensor, object]:
    program = decomposed(module, torch.randn(2, WIDTH, dtype=dtype))
    chosen = selection(program)
    node = next(n for n in program.graph.nodes if is_dequantize(n.target))
    return view_of(Call(chosen, node)), chosen


def dequantized(q: QuantizedTensor, chosen) -> torch.Tensor:
    data, scale = chosen.constant_value(q.data).float(), chosen.constant_value(q.scale).float()
    zero = chosen.constant_value(q.zero).float()
    groups = [size // block for size, block in zip(data.shape, q.block, strict=True)]
    assert list(scale.shape) == groups
    spread = lambda t: t.repeat_interleave(q.block[0], 0).repeat_interleave(q.block[1], 1)  # noqa: E731
    return (data - spread(zero)) * spread(scale)


@pytest.mark.parametrize(
    ("scheme", "group", "block", "limits"),
    [("int4", 32, [1, 32], (-8, 7)), ("int4", 64, [1, 64], (-8, 7)), ("int8", 32, [1, WIDTH], (-128, 127))],
)
def test_schemes_of_pumice_quantize(scheme, group, block, limits) -> None:
    module = pumice.quantize(nn.Linear(WIDTH, 5), scheme, group_size=group)
    q, chosen = view(module)
    assert (q.kind, q.block, (q.qmin, q.qmax), q.out_dtype) == ("block", block, limits, DType.f32)
    assert (q.data.dtype, q.data.shape, q.zero.dtype) == (DType.i8, (5, WIDTH), DType.i8)
    assert q.data.is_constant and q.scale.is_constant and q.data.key.endswith("original0")
    torch.testing.assert_close(dequantized(q, chosen), module.weight.dequantize())


def test_zero_points_are_not_assumed_to_be_zero() -> None:
    from torchao.quantization import IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerGroup
    from torchao.quantization.quant_primitives import MappingType

    torch.manual_seed(0)
    module = nn.Linear(WIDTH, 5)
    module.weight.data += 0.05
    quantize_(
        module,
        IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32), mapping_type=MappingType.ASYMMETRIC),
    )
    q, chosen = view(module)
    assert torch.count_nonzero(chosen.constant_value(q.zero)) > 0
    torch.testing.assert_close(dequantized(q, chosen), module.weight.dequantize())


@pytest.mark.parametrize(("dtype", "ours"), [(torch.float16, DType.f16), (torch.bfloat16, DType.f32)])
def test_the_result_has_the_dtype_of_the_model(dtype, ours) -> None:
    q, _ = view(pumice.quantize(nn.Linear(WIDTH, 5).to(dtype), "int4"), dtype)
    assert q.out_dtype is ours


@pytest.mark.parametrize(("scheme", "group"), [("int5", 32), ("int4", 0), ("int4", "32"), ("int4", 48)])
def test_bad_arguments_of_quantize(scheme, group) -> None:
    with pytest.raises(pumice.InvalidInputError):
        pumice.quantize(nn.Linear(WIDTH, 5), scheme, group_size=group)
