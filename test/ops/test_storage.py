# SPDX-License-Identifier: Apache-2.0
"""Values in textures: operators alone and in chains with those that take buffers only, compared with eager PyTorch as
everywhere. Quantization is test_storage_quantize.py, linears of integers test_storage_integers.py, how storage is
chosen test/export/test_storage_choice.py."""

from __future__ import annotations

import pytest
import torch
from support import schemes
from support.budget import ACTIVATION, MATMUL, Budget
from support.dispatches import kernels
from support.quantized import check_linear, quantized
from support.textures import TEXTURE, WEIGHTS, Apply, Mixed, Round, layer
from torch.nn import functional as F

import pumice
from pumice.lowering.optable import op_table

FORCED = "storage=textures"
# Shapes with tails of texels, row panels and tiles; ranks 1 to 5; more than one layer.
SHAPES = [
    ((5, 64), 37),
    ((70,), 16),
    ((3, 65), 129),
    ((2, 3, 33), 5),
    ((2, 1, 3, 96), 66),
    ((2, 1, 2, 3, 7), 3),
    ((130, 32), 34),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("shape", "n"), SHAPES, ids=str)
def test_linear(shape, n, dtype) -> None:
    for kind in ("float", "q4 affine", "q8"):
        module = layer(kind, n, shape[-1], dtype)
        x = torch.randn(shape).to(dtype)
        program = pumice.export(module, (x,), options=TEXTURE)
        session = pumice.load(bytes(program))
        check_linear(session(x), x, module, kind)
        assert torch.equal(session(x), session(x))
        assert any("texture3d,texture2d" in name for name in kernels(session, x))
    check_linear(pumice.load(bytes(program), features="none,like_gpu")(x), x, module, "nothing optional")


@pytest.mark.parametrize("kernel", ["gemv1", "gemv4", "gemv8", "gemv4x2", "tile32x64", "tile64x128", "tile128x128"])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_every_kernel(kind, kernel) -> None:
    for dtype in (torch.float32, torch.float16):
        module = layer(kind, 131, 96, dtype)
        dims = ({0: torch.export.Dim("m", min=0, max=4096)},)
        program = pumice.export(module, (torch.zeros(5, 96, dtype=dtype),), dynamic_shapes=dims)
        session = pumice.load(bytes(program), features=f"{FORCED},kernel={kernel}")
        for rows in (1, 9, 65, 3):
            x = torch.randn(rows, 96).to(dtype)
            check_linear(session(x), x, module, f"{kernel}, {rows} rows")
        assert session(x[:0]).shape == (0, 131)


@pytest.mark.parametrize("kernel", ["matrix64x64", "fragments64x128", "gemvf8"])
def test_a_kernel_without_textures_is_refused(kernel) -> None:
    module, x = layer("q4", 64, 64, torch.float16), torch.randn(2, 64).half()
    data = bytes(pumice.export(module, (x,)))
    with pytest.raises(pumice.Error, match="takes no textures"):
        pumice.load(data, features=f"{FORCED},kernel={kernel}")


class Fused(torch.nn.Module):
    def __init__(self, n: int, act) -> None:
        super().__init__()
        self.layer, self.act = torch.nn.Linear(40, n), act

    def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self.act(self.layer(x)) if self.act else self.layer(x) + other


@pytest.mark.parametrize("n", [52, 37])
@pytest.mark.parametrize("act", [None, F.relu, F.gelu, F.silu])
def test_epilogues(e2e, n, act) -> None:
    fused = Budget(ACTIVATION.atol + 1e-6, ACTIVATION.rtol, MATMUL.of_max, why="MATMUL, then ACTIVATION")
    for rows in (3, 70):
        x, other = torch.randn(2, rows, 40), torch.randn(2, rows, n)
        e2e.check(Fused(n, act), x, other, budget=fused, expect_ops={"linear": 1}, options=TEXTURE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_mixed_graph(e2e, dtype) -> None:
    x = torch.randn(5, 33).to(dtype)
    budget = Budget(2.0**-7 if dtype is torch.float16 else 1e-6, 2e-3, MATMUL.of_max, why="three operators in a row")
    program = e2e.check(Mixed().to(dtype), x, budget=budget, options=TEXTURE, all_features=True)
    names = kernels(pumice.load(bytes(program)), x)
    assert any("texture_copy" in name and "buffer" in name for name in names)
    assert any("texture_copy" in name and "texture3d" in name for name in names)
    e2e.check(Mixed().to(dtype), x, budget=budget)  # the same budget holds in buffers


class Chain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for each in self.layers:
            x = torch.abs(each(x))
        return x


def test_a_chain_stays_in_textures_that_share_images(e2e) -> None:
    dims = ({0: torch.export.Dim("m", min=1, max=64)},)
    module, x = Chain().eval(), torch.randn(6, 32)
    program = e2e.check(
        module,
        x,
        budget=MATMUL,
        options=TEXTURE,
        dynamic_shapes=dims,
        runs=[torch.randn(64, 32), torch.randn(1, 32), x],
    )
    session = pumice.load(bytes(program))
    copies = [name for name in kernels(session, x) if "texture_copy" in name]
    assert len(copies) == 2  # in and out
    session(torch.randn(64, 32))
    assert (
        session.memory["arena"] + session.memory["textures"] < 6 * 64 * 32 * 4 + 4 * 65536
    )  # of 9 values few live at once


class State(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
        self.register_buffer("total", torch.zeros(3, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.copy_(self.layer(x))
        return self.total + 1


def test_a_texture_becomes_a_state() -> None:
    module, x = State().eval(), torch.randn(3, 8)
    session = pumice.load(bytes(pumice.export(module, (x,), options=TEXTURE)))
    for _ in range(2):
        torch.testing.assert_close(session(x), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("columns", [64, 30])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_tied_head_shares_the_texture(bits, columns) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(70, columns), torch.nn.Linear(columns, 70, bias=False)

        def forward(self, index: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(index))

    module = quantized(Tied(), bits, 32 if columns % 32 == 0 else None)
    module.head.weight = module.embed.weight
    index = torch.randint(0, 70, (2, 5))
    program = pumice.export(module, (index,), options=TEXTURE)
    session, plain = pumice.load(bytes(program)), pumice.load(bytes(program), features="storage=buffers")
    torch.testing.assert_close(session(index), plain(index), rtol=1e-5, atol=1e-5)
    assert session.memory["textures"] > 0 and plain.memory["textures"] == 0
    assert session.memory["weights"] + session.memory["textures"] <= plain.memory["weights"] + 2 * 65536


def test_a_texture_of_a_weight_has_several_rows() -> None:
    """More than 4096 vectors, and a weight that is packed in ranges, and one that is read in ranges."""
    module, x = layer("q4 affine", 1300, 512), torch.randn(3, 512)
    data = bytes(pumice.export(module, (x,), options=TEXTURE))
    for features in ("", "max_storage=40000"):
        check_linear(pumice.load(data, features=features)(x), x, module, features)


UNARY = {
    torch.float32: torch.abs, torch.float16: torch.abs, torch.int32: torch.abs, torch.int64: torch.abs,
    torch.int8: torch.square, torch.uint8: torch.square, torch.bool: torch.logical_not,
}  # fmt: skip


@pytest.mark.parametrize("dtype", UNARY, ids=str)
@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (3, 5), (2, 3, 8), (2, 3, 1, 9), (2, 1, 2, 3, 2), (0, 3), (3, 0)], ids=str
)
def test_every_dtype_and_rank_is_copied_there_and_back(e2e, shape, dtype) -> None:
    torch.manual_seed(len(shape))
    x = (torch.randn(shape) * 90).to(dtype) if dtype is not torch.uint8 else torch.randint(0, 255, shape, dtype=dtype)
    if dtype.is_floating_point and x.numel() > 2:
        x.view(-1)[:3] = torch.tensor([float("nan"), float("inf"), -0.0]).to(dtype)
    e2e.check(Apply(UNARY[dtype]), x, reference="eager", options=TEXTURE)


def test_every_half_survives() -> None:
    x = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16).reshape(16, 4096)
    want = torch.neg(x)
    got = pumice.load(bytes(pumice.export(Apply(torch.neg), (x,), options=TEXTURE)))(x)
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got.view(torch.int16)[~want.isnan()], want.view(torch.int16)[~want.isnan()])


# ---- accepted means runnable -----------------------------------------------------------------------------------------


def scheme(op: str) -> tuple[torch.nn.Module, torch.Tensor]:
    found, inputs = next(each for each in schemes.SCHEMES if op in each.ops), schemes.inputs()
    return found.quantize(schemes.layers(), inputs), *inputs


# A model for every operator that has a storage axis; unary ones are in test_unary.py and share a shader.
CASES = {
    "linear": lambda: (layer("float", 20, 24), torch.randn(3, 24)),
    "linear_q4gsw": lambda: (layer("q4", 20, 64), torch.randn(3, 64)),
    "linear_q8csw": lambda: (layer("q8", 20, 64), torch.randn(3, 64)),
    "linear_q8gsw": lambda: (layer("q8 g32", 20, 64), torch.randn(3, 64)),
    "embedding_q4gsw": lambda: (quantized(torch.nn.Embedding(20, 64), 4, 32), torch.randint(0, 20, (3,))),
    "embedding_q8gsw": lambda: (quantized(torch.nn.Embedding(20, 64), 8, 32), torch.randint(0, 20, (3,))),
    "quantize": lambda: (Round([1, 32], torch.int8, -128, 127).eval(), torch.randn(3, 32)),
    "dequantize": lambda: (Round([1, 32], torch.int8, -128, 127).eval(), torch.randn(3, 32)),
    "choose_qparams": lambda: (Round([1, 32], torch.int8, -128, 127).eval(), torch.randn(3, 32)),
    "relu": lambda: (Apply(torch.relu), torch.randn(3, 7)),
    **{
        op: lambda op=op: scheme(op)
        for op in ("linear_dq8ca_q4gsw", "linear_dq8ca_q8gsw", "linear_dq8ca_q8csw", "q8ta_linear")
    },
}
# Made by hand in test_storage_integers.py and test/cli/test_kernel.py: no model of PyTorch gives them.
BY_HAND = {"linear_q8ta_q8csw", "linear_qta8a_qga4w_qta8o"}
# Of every scheme in test_storage_conv2d.py.
CONVOLUTIONS = {"conv2d", "conv2d_q8csw", "conv2d_q8ta_q8csw", "q8ta_conv2d"}


def test_every_operator_with_a_storage_axis_has_a_case() -> None:
    has = {
        name: len(signature.parameters)
        for (name, _), signature in op_table().items()
        if len(signature.accepts["storage"]) > 1 or "weight_storage" in signature.accepts
    }
    found = {name for name, parameters in has.items() if parameters > 1}
    assert "relu" in has and found == set(CASES) - {"relu"} | BY_HAND | CONVOLUTIONS


@pytest.mark.parametrize("name", CASES)
def test_accepted_means_runnable(name) -> None:
    module, x = CASES[name]()
    program = pumice.export(module, (x,), options=TEXTURE)
    assert name in program.report.operators
    got = pumice.load(bytes(program))(x)
    for a, b in zip(*((t,) if isinstance(t, torch.Tensor) else t for t in (got, module(x))), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
