# SPDX-License-Identifier: Apache-2.0
"""Quantized models as torchao, PT2E and ExecuTorch write them: what they become, and the corners where it could be
silently wrong. test/ops/test_closure.py runs every scheme."""

from __future__ import annotations

import pytest
import torch
from executorch.exir.passes import _quant_patterns_and_replacements  # noqa: F401 (registers embedding_*)
from support.quantized import Apply
from support.schemes import ASYMMETRIC, dynamic, inputs, layers, torchao, weight_only
from torch import nn
from torch.nn import functional as F
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerAxis, PerGroup

import pumice

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed
INT4 = IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(16))
W4A8 = dynamic(torch.int4, PerGroup(16), ASYMMETRIC)


def close(got: torch.Tensor, want: torch.Tensor, rtol: float = 2e-5) -> None:
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    assert (got.double() - want.double()).abs().max() <= rtol * want.double().abs().max()


def runs(module: nn.Module, *args: torch.Tensor, ops: dict[str, int], rtol: float = 2e-5) -> pumice.Program:
    program = pumice.export(module, args)
    assert {name: program.report.operators.get(name, 0) for name in ops} == ops, program.report.operators
    close(pumice.load(bytes(program))(*args), module(*args), rtol)
    return program


class Three(nn.Module):
    """Query, key and value projections: torchao quantizes their input three times."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 32) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([layer(x) for layer in self.layers], -1)


def test_three_projections_quantize_their_input_once() -> None:
    x = torch.randn(70, 64)
    program = runs(W4A8(Three(), x), x, ops={"linear_dq8ca_q4gsw": 3})
    statuses = [row.status for row in program.report.rows if "choose_qparams" in row.target]
    assert statuses.count("removed") == 2 and len(statuses) == 3
    calls = program.ir.methods[0].ops
    assert len({call.args[0].index for call in calls if "dq8ca" in call.op}) == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_after_quantize_is_refused(e2e, dtype) -> None:
    """The bias is converted, the quantized weight stays fp32: eager fails, but torch.export does not."""
    for make in (torchao(INT4), W4A8):
        module = make(layers(), inputs())
        module = module.half() if dtype is torch.float16 else module.bfloat16()
        e2e.refuses(module, *inputs(dtype), match="dequantized weight f32", options={"bf16": "f16"})


def test_tiny_scales_of_fp16() -> None:
    """Scales that are denormal in fp16, or 0. torchao chooses none below fp16's epsilon."""
    for size in (1e-4, 1e-6, 0):
        module = nn.Linear(64, 32, bias=False).half()
        quantize_(module, INT4)
        module.weight.scale.data *= size / module.weight.scale.max()
        x = 1000 * torch.randn(9, 64).half()
        got, want = pumice.load(bytes(pumice.export(module, (x,))))(x), module(x)
        assert (want.abs().max() > size * 1000) if size else (want == 0).all()
        close(got, want, 2e-3)


def test_tokens_of_zeros_and_fp16_denormals() -> None:
    for dtype in (torch.float32, torch.float16):
        x = torch.randn(9, 64).to(dtype)
        x[2], x[3] = 0.0, 1e-7
        module = W4A8(layers(dtype), x)
        got = pumice.load(bytes(pumice.export(module, (x,))))(x)
        assert torch.isfinite(got).all()
        close(got, module(x), 2e-2)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(70, 64), nn.Linear(64, 70, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(index))


@pytest.mark.parametrize("aliased", [True, False], ids=["aliased again", "split"])
def test_tied_weights(aliased) -> None:
    """quantize_ makes two tensors of a tied one; their equal integers are stored once, aliased or not."""
    torch.manual_seed(0)
    module = Tied().eval()
    quantize_(module, INT4, filter_fn=lambda m, _: isinstance(m, nn.Linear | nn.Embedding))
    if aliased:
        module.head.weight = module.embed.weight
    index = torch.randint(0, 70, (2, 5))
    program = runs(module, index, ops={"embedding_q4gsw": 1, "linear_q4gsw": 1})
    assert [constant.key for constant in program.ir.constants] == [
        "embed.weight:i4", "embed.weight:scale 70x4", "embed.weight:zero 70x4"
    ]  # fmt: skip


def test_one_layer_called_twice_is_stored_once() -> None:
    layer = nn.Linear(64, 64, bias=False)
    quantize_(layer, INT4)
    program = runs(nn.Sequential(layer, nn.GELU(), layer), torch.randn(3, 64), ops={"linear_q4gsw": 2})
    assert len(program.ir.constants) == 3


def test_views_between_a_dequantize_node_and_the_layer() -> None:
    layer = torchao(INT4)(nn.Linear(64, 20), None)

    def function(x: torch.Tensor) -> torch.Tensor:
        scale, zero = ao.choose_qparams_affine(
            x, "ASYMMETRIC", [1, 1, 64], torch.int8, -128, 127, None, None, torch.int8
        )
        q = ao.quantize_affine(x, [1, 1, 64], scale, zero, torch.int8, -128, 127)
        real = ao.dequantize_affine(q, [1, 1, 64], scale, zero, torch.int8, -128, 127)
        return F.linear(real.view(-1, 64), layer.weight.dequantize(), layer.bias)

    x = torch.randn(2, 5, 64)
    runs(Apply(function), x, ops={"linear_dq8ca_q4gsw": 1, "quantize": 0, "dequantize": 0})


class Static(nn.Module):
    """A layer whose activations have numbers, 0-dim constants or int8 inputs as parameters."""

    def __init__(self, case: str) -> None:
        super().__init__()
        self.case, self.weight = case, nn.Buffer(torch.randint(-128, 128, (20, 64), dtype=torch.int8))
        self.scale, self.point = nn.Buffer(torch.rand(20) * 0.01), nn.Buffer(torch.arange(20) - 9)
        self.one, self.zero = nn.Buffer(torch.tensor(0.02)), nn.Buffer(torch.tensor(7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        limits = (-128, 127, torch.int8)
        if self.case == "numbers":
            q = qd.quantize_per_tensor(x, 0.02, 7, *limits)
            x = qd.dequantize_per_tensor(q, 0.02, 7, *limits)
        elif self.case == "0-dim constants":
            q = qd.quantize_per_tensor.tensor(x, self.one, self.zero, *limits)
            x = qd.dequantize_per_tensor.tensor(q, self.one, self.zero, *limits)
        else:
            x = qd.dequantize_per_tensor(x, 0.02, 7, *limits)
        return F.linear(x, qd.dequantize_per_channel(self.weight, self.scale, self.point, 0, *limits))


@pytest.mark.parametrize(
    ("case", "ops"),
    [
        ("numbers", {"linear_q8ta_q8csw": 1, "quantize": 0}),
        ("0-dim constants", {"quantize": 1, "dequantize": 1, "linear_q8csw": 1}),
        ("int8 inputs", {"dequantize": 1, "linear_q8csw": 1}),
    ],
)
def test_static_activations(case, ops) -> None:
    torch.manual_seed(1)
    x = torch.randint(-128, 128, (5, 64), dtype=torch.int8) if case == "int8 inputs" else torch.randn(5, 64)
    runs(Static(case), x, ops=ops)


class Integers(nn.Module):
    """Two static layers; the result of the second stays a float."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Static("numbers"), nn.Buffer(torch.randint(-128, 128, (8, 20), dtype=torch.int8))
        self.scale = nn.Buffer(torch.rand(8) * 0.01)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        limits = (-128, 127, torch.int8)
        q = qd.quantize_per_tensor(self.first(x).relu(), 0.5, -128, *limits)
        y = qd.dequantize_per_tensor(q, 0.5, -128, *limits)
        return F.linear(y, qd.dequantize_per_channel(self.second, self.scale, None, 0, *limits))


def test_integers_from_layer_to_layer() -> None:
    """The last layer takes the integers that the one before it made, and no float is between."""
    torch.manual_seed(2)
    runs(Integers(), torch.randn(5, 64), ops={"quantize": 1, "q8ta_linear": 1, "linear_q8ta_q8csw": 1, "dequantize": 0})


@pytest.mark.parametrize("form", ["torchao", "quantized_decomposed"])
def test_int8_in_and_out_with_a_scale_for_each_token(form) -> None:
    """linear_qta8a_qga4w_qta8o; a result on a tie may round the other way."""
    torch.manual_seed(0)
    weight = torch.randint(-8, 8, (20, 64), dtype=torch.int8)
    scale, point = torch.rand(20, 4) * 0.1, torch.randint(-8, 8, (20, 4), dtype=torch.int8)

    def function(q, s, z, s_out, z_out, weight, scale, point):
        w = ao.dequantize_affine(weight, [1, 16], scale, point, torch.int8, -8, 7)
        if form == "torchao":
            y = F.linear(ao.dequantize_affine(q, [1, 64], s, z, torch.int8, -128, 127), w)
            return ao.quantize_affine(y, [1, 20], s_out, z_out, torch.int8, -128, 127)
        y = F.linear(qd.dequantize_per_token(q, s, z, -128, 127, torch.int8, torch.float32), w)
        return qd.quantize_per_token(y, s_out, z_out, -128, 127, torch.int8)

    rows, kind = ((9, 1), torch.int32) if form == "quantized_decomposed" else ((9,), torch.int8)
    args = (
        torch.randint(-128, 128, (9, 64), dtype=torch.int8), torch.rand(rows) * 0.1,
        torch.randint(-9, 9, rows, dtype=kind), torch.rand(rows) + 0.5, torch.randint(-9, 9, rows, dtype=kind),
    )  # fmt: skip
    module = Apply(function, weight, scale, point)
    program = pumice.export(module, args)
    assert program.report.operators == {"linear_qta8a_qga4w_qta8o": 1}
    got, want = pumice.load(bytes(program))(*args), module(*args)
    assert got.dtype == want.dtype and (got.int() - want.int()).abs().max() <= 1 and (got != want).sum() <= 1


def test_int8_zero_points_that_would_wrap_are_refused(e2e) -> None:
    def function(q, s, z, weight):
        return F.linear(qd.dequantize_per_token(q, s, z, -128, 127, torch.int8, torch.float32), weight)

    q, s, z = torch.zeros(9, 64, dtype=torch.int8), torch.rand(9, 1), torch.zeros(9, 1, dtype=torch.int8)
    e2e.refuses(Apply(function, torch.randn(20, 64)), q, s, z, match="subtracts them in 8 bits")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_integers_that_are_only_moved(dtype) -> None:
    """dequantize, view, permute, quantize with the same numbers: no arithmetic is left."""

    def function(x: torch.Tensor) -> torch.Tensor:
        limits = (-128, 127, torch.int8)
        real = qd.dequantize_per_tensor(x, 0.02, 7, *limits, out_dtype=dtype)
        return qd.quantize_per_tensor(real.view(4, 10).permute(1, 0), 0.02, 7, *limits)

    x = torch.randint(-128, 128, (8, 5), dtype=torch.int8)
    program = pumice.export(Apply(function), (x,))
    assert not {"quantize", "dequantize"} & set(program.report.operators)
    assert torch.equal(pumice.load(bytes(program))(x), function(x))


def packed(values: torch.Tensor, bits: int) -> torch.Tensor:
    """As ExecuTorch packs embeddings: the first column in the high bits of 4, in the low ones of 2."""
    each = 8 // bits
    parts = (values.int() + (1 << (bits - 1))).unflatten(1, (-1, each))
    shifts = [bits * i for i in range(each)]
    return sum(parts[..., i] << s for i, s in enumerate(reversed(shifts) if bits == 4 else shifts)).to(torch.uint8)


@pytest.mark.parametrize("groups", [None, 4])
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_embeddings_of_executorch(bits, groups) -> None:
    torch.manual_seed(bits)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    values = torch.randint(low, high + 1, (30, 64), dtype=torch.int8)
    scale = torch.rand(30, groups) if groups else torch.rand(30)
    stored = values if bits == 8 else packed(values, bits)
    operator = getattr(qd, f"embedding_{'byte' if bits == 8 else f'{bits}bit'}")
    index = torch.randint(0, 30, (2, 7))
    for zero in (None, torch.randint(-1, 2, scale.shape).float()):
        module = Apply(lambda i, w, s, *z: operator.dtype(w, s, z[0] if z else None, low, high, i, dtype=torch.float32),
                       stored, scale, *(() if zero is None else (zero,)))  # fmt: skip
        runs(module, index, ops={f"embedding_q{8 if bits == 8 else 4}gsw": 1}, rtol=0.0)


def test_packed_int4_weights_of_executorch() -> None:
    from executorch.extension.llm.export.int4 import ExportableInt4Tensor

    torch.manual_seed(0)
    for mapping in ("symmetric", "affine"):
        layer = weight_only(torch.int4, PerGroup(16), ASYMMETRIC)(nn.Linear(64, 20), None)
        layer.weight = nn.Parameter(ExportableInt4Tensor.from_intx_unpacked_to_int8_tensor(layer.weight), False)
        runs(layer, torch.randn(3, 64), ops={"linear_q4gsw": 1}), mapping


def test_unsigned_weights() -> None:
    """uint8 with zero points up to 255, 4 bits of it with 0..15: stored signed."""
    torch.manual_seed(0)
    x = torch.randn(4, 64)
    for high, op in ((255, "linear_q8csw"), (15, "linear_q4gsw")):
        weight, scale = torch.randint(0, high + 1, (20, 64), dtype=torch.uint8), torch.rand(20) * 0.1
        for point in (torch.randint(0, high + 1, (20,)), torch.randint(0, high + 1, (20,)).float()):
            module = Apply(
                lambda x, w, s, z, h=high: F.linear(x, qd.dequantize_per_channel(w, s, z, 0, 0, h, torch.uint8)),
                weight, scale, point,
            )  # fmt: skip
            runs(module, x, ops={op: 1})


def test_bf16_becomes_fp32_or_fp16_with_a_note() -> None:
    for bf16, dtype, rtol in (("f32", torch.float32, 0.03), ("f16", torch.float16, 0.03)):
        for make in (torchao(INT4), W4A8):
            module = make(layers(torch.bfloat16), None)
            args = inputs(torch.bfloat16)
            program = pumice.export(module, args, options={"bf16": bf16})
            assert any("bfloat16" in note for note in program.report.notes)
            got = pumice.load(bytes(program))(args[0].to(dtype))
            close(got.float(), module(*args).float(), rtol)


def test_zero_points_are_executed() -> None:
    module = weight_only(torch.int4, PerGroup(16), ASYMMETRIC)(nn.Linear(64, 20), None)
    module.weight.zero_point.copy_(torch.arange(80).reshape(20, 4) % 16 - 8)
    runs(module, torch.randn(3, 64), ops={"linear_q4gsw": 1})


def test_dynamic_rows() -> None:
    rows = torch.export.Dim("rows", min=1, max=512)
    for make in (W4A8, torchao(Int8DynamicActivationInt8WeightConfig())):
        module = make(layers(), None)
        program = pumice.export(module, inputs(), dynamic_shapes=({1: rows},))
        session = pumice.load(bytes(program))
        for count in (1, 2, 9, 65):
            (x,) = inputs(rows=count)
            close(session(x), module(x), 2e-2)


def test_refused(e2e) -> None:
    x = torch.randn(2, 30)
    six = torchao(IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(6)))(nn.Linear(30, 8), None)
    e2e.refuses(six, x, match="groups of 6 of 30 columns.*the nearest is 30")
    half = torchao(Int8DynamicActivationInt8WeightConfig(act_mapping_type=ASYMMETRIC))(layers(torch.float16), None)
    e2e.refuses(half, *inputs(torch.float16), match="act_mapping_type")
    weight, scale = torch.randint(-8, 8, (8, 32), dtype=torch.int8), torch.rand(4, 32)
    columns = Apply(
        lambda x, w, s: F.linear(x, ao.dequantize_affine(w, [2, 1], s, torch.zeros_like(s).to(torch.int8), torch.int8)),
        weight,
        scale,
    )
    e2e.refuses(columns, torch.randn(2, 32), match=r"in blocks of \[2, 1\]")


def test_axis_of_columns_is_refused(e2e) -> None:
    weight, scale = torch.randint(-8, 8, (8, 32), dtype=torch.int8), torch.rand(32)
    module = Apply(
        lambda x, w, s: F.linear(x, qd.dequantize_per_channel(w, s, None, 1, -128, 127, torch.int8)), weight, scale
    )
    e2e.refuses(module, torch.randn(2, 32), match="by channel of axis 1")


def test_per_axis_weights_of_convolutions_are_not_per_channel() -> None:
    """PerAxis(0) of a Conv2d has a scale for each tap: no operator takes it packed."""
    module = nn.Sequential(nn.Conv2d(4, 6, 3)).eval()
    config = IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0))
    quantize_(module, config, filter_fn=lambda m, _: isinstance(m, nn.Conv2d))
    with pytest.raises(pumice.UnsupportedError, match=r"blocks of \[1, 4, 1, 1\]; supported: a scale for each output"):
        pumice.export(module, (torch.randn(1, 4, 8, 8),))
