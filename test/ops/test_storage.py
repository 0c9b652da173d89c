# SPDX-License-Identifier: Apache-2.0
"""Values in textures: chosen at export or forced, alone and in chains with operators that take buffers only, compared
with eager PyTorch as everywhere; limits and choices that cannot be are refused by name."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed
import torchao.quantization.quant_primitives  # noqa: F401 (registers torchao's operators)
from budget import ACTIVATION, MATMUL, Budget
from quantized import check_linear, quantized
from torch.nn import functional as F

import pumice
from pumice import ir
from pumice.optable import op_table

TEXTURE = {"storage": "texture"}
FORCED = "storage=textures"
WEIGHTS = {
    "float": None,
    "q4": (4, 32, False),
    "q4 affine": (4, 32, True),
    "q8": (8, None, False),
    "q8 g32": (8, 32, True),
}


def layer(kind: str, n: int, k: int, dtype: torch.dtype = torch.float32, bias: bool = True) -> torch.nn.Linear:
    torch.manual_seed(n + k)
    module = torch.nn.Linear(k, n, bias=bias).to(dtype).eval()
    if WEIGHTS[kind] is None:
        return module
    bits, group, affine = WEIGHTS[kind]
    return quantized(module, bits, None if group and k % group else group, affine)


def kernels(session: pumice.Session, *inputs: torch.Tensor) -> list[str]:
    return [row.kernel for row in session.profile(*inputs)]


# Shapes with tails of texels, strips and tiles; ranks 1 to 5; more than one layer.
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
def test_epilogues(road, n, act) -> None:
    fused = Budget(ACTIVATION.atol + 1e-6, ACTIVATION.rtol, MATMUL.of_max, why="MATMUL, then ACTIVATION")
    for rows in (3, 70):
        x, other = torch.randn(2, rows, 40), torch.randn(2, rows, n)
        road.check(Fused(n, act), x, other, budget=fused, expect_ops={"linear": 1}, options=TEXTURE)


class Mixed(torch.nn.Module):
    """Textures, then an operator that has none, then textures again, and a value that both kinds read."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(33, 70), torch.nn.Linear(70, 21)

    def forward(self, x: torch.Tensor):
        hidden = self.first(x)
        return self.second(torch.softmax(hidden, -1)), torch.tanh(hidden) + hidden, hidden.transpose(0, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_mixed_graph(road, dtype, monkeypatch) -> None:
    monkeypatch.setenv("PUMICE_CHECK_HAZARDS", "1")
    x = torch.randn(5, 33).to(dtype)
    budget = Budget(2.0**-7 if dtype is torch.float16 else 1e-6, 2e-3, MATMUL.of_max, why="three operators in a row")
    program = road.check(Mixed().to(dtype), x, budget=budget, options=TEXTURE, all_features=True)
    names = kernels(pumice.load(bytes(program)), x)
    assert any("texture_copy" in name and "buffer" in name for name in names)
    assert any("texture_copy" in name and "texture3d" in name for name in names)
    road.check(Mixed().to(dtype), x, budget=budget)  # the same budget holds in buffers


class Chain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.abs(layer(x))
        return x


def test_a_chain_stays_in_textures_that_share_images(road) -> None:
    dims = ({0: torch.export.Dim("m", min=1, max=64)},)
    module, x = Chain().eval(), torch.randn(6, 32)
    program = road.check(
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
    """More than 4096 vectors, and a weight that is packed in parts, and one that is taken in parts."""
    module, x = layer("q4 affine", 1300, 512), torch.randn(3, 512)
    data = bytes(pumice.export(module, (x,), options=TEXTURE))
    for features in ("", "max_storage=40000"):
        check_linear(pumice.load(data, features=features)(x), x, module, features)


UNARY = {
    torch.float32: torch.abs, torch.float16: torch.abs, torch.int32: torch.abs, torch.int64: torch.abs,
    torch.int8: torch.square, torch.uint8: torch.square, torch.bool: torch.logical_not,
}  # fmt: skip


class Apply(torch.nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize("dtype", UNARY, ids=str)
@pytest.mark.parametrize(
    "shape", [(), (1,), (7,), (3, 5), (2, 3, 8), (2, 3, 1, 9), (2, 1, 2, 3, 2), (0, 3), (3, 0)], ids=str
)
def test_every_dtype_and_rank_is_copied_there_and_back(road, shape, dtype) -> None:
    torch.manual_seed(len(shape))
    x = (torch.randn(shape) * 90).to(dtype) if dtype is not torch.uint8 else torch.randint(0, 255, shape, dtype=dtype)
    if dtype.is_floating_point and x.numel() > 2:
        x.view(-1)[:3] = torch.tensor([float("nan"), float("inf"), -0.0]).to(dtype)
    road.check(Apply(UNARY[dtype]), x, reference="eager", options=TEXTURE)


def test_every_half_survives() -> None:
    x = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16).reshape(16, 4096)
    want = torch.neg(x)
    got = pumice.load(bytes(pumice.export(Apply(torch.neg), (x,), options=TEXTURE)))(x)
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got.view(torch.int16)[~want.isnan()], want.view(torch.int16)[~want.isnan()])


# ---- quantize, dequantize, choose_qparams: bit for bit ---------------------------------------------------------------

ao, qd = torch.ops.torchao, torch.ops.quantized_decomposed
BLOCKS = [
    ((7,), [7]),
    ((5, 33), [1, 33]),
    ((5, 33), [5, 1]),
    ((2, 6, 5), [2, 1, 5]),
    ((3, 64), [1, 32]),
    ((2, 3, 4, 10), [1, 1, 2, 5]),
]


class Round(torch.nn.Module):
    """Chosen parameters, to integers and back."""

    def __init__(self, block: list[int], dtype: torch.dtype, low: int, high: int) -> None:
        super().__init__()
        self.block, self.dtype, self.low, self.high = block, dtype, low, high

    def forward(self, x: torch.Tensor):
        how = ("ASYMMETRIC", self.block, self.dtype, self.low, self.high, 1e-5, torch.float32, torch.int32)
        scale, zero = ao.choose_qparams_affine(x, *how)
        q = ao.quantize_affine(x, self.block, scale, zero, self.dtype, self.low, self.high)
        return (
            q,
            ao.dequantize_affine(q, self.block, scale, zero, self.dtype, self.low, self.high, output_dtype=x.dtype),
            scale,
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("to", [torch.int8, torch.uint8, torch.int32], ids=str)
@pytest.mark.parametrize(("shape", "block"), BLOCKS, ids=str)
def test_quantized_values(shape, block, to, dtype) -> None:
    torch.manual_seed(sum(shape))
    low, high = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int32: (-1000, 1000)}[to]
    module, x = Round(block, to, low, high).eval(), (torch.randn(shape) * 3).to(dtype)
    program = pumice.export(module, (x,), options=TEXTURE)
    assert set(program.report.operators) >= {"quantize", "dequantize", "choose_qparams"}
    session = pumice.load(bytes(program))
    for got, want in zip(session(x), module(x), strict=True):
        assert got.dtype == want.dtype and torch.equal(got, want)
    for got, want in zip(pumice.load(bytes(program), features="none,like_gpu")(x), module(x), strict=True):
        assert torch.equal(got, want)
    names = kernels(session, x)
    assert all(any(name.startswith(op + "[") and "texture3d" in name for name in names)
               for op in ("quantize", "dequantize", "choose_qparams_range"))  # fmt: skip


def test_every_half_is_quantized() -> None:
    x = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16).reshape(16, 4096)
    scale, zero = torch.tensor([0.0235]), torch.tensor([-7], dtype=torch.int32)

    def function(x: torch.Tensor) -> torch.Tensor:
        return ao.quantize_affine(x, [16, 4096], scale, zero, torch.int8, -128, 127)

    class Quantize(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", scale)
            self.register_buffer("zero", zero)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ao.quantize_affine(x, [16, 4096], self.scale, self.zero, torch.int8, -128, 127)

    assert torch.equal(pumice.load(bytes(pumice.export(Quantize(), (x,), options=TEXTURE)))(x), function(x))


class Tokens(torch.nn.Module):
    """Scales of each token in fp64, as PyTorch makes them."""

    def forward(self, x: torch.Tensor):
        scale, zero = qd.choose_qparams_per_token_asymmetric(x, torch.int8)
        return qd.quantize_per_token(x, scale, zero, -128, 127, torch.int8)


@pytest.mark.parametrize("shape", [(5, 33), (2, 3, 6)], ids=str)
def test_fp64_scales(shape) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape) * 3
    program = pumice.export(Tokens(), (x,), options=TEXTURE)
    for features in ("", "none,like_gpu"):
        session = pumice.load(bytes(program), features=features)
        assert torch.equal(session(x), Tokens()(x))
    assert any(name.startswith("quantize_f64[") and "texture3d" in name for name in kernels(session, x))


# ---- choices ---------------------------------------------------------------------------------------------------------


def storages(program: pumice.Program) -> dict[str, str]:
    values = pumice.inspect(bytes(program))["methods"][0]["plan"]["values"]
    return {value["name"] or str(index): value["storage"] for index, value in enumerate(values)}


def storable(program: pumice.Program) -> set[str]:
    """Names of what is in a texture, as a choice may name them."""
    values = pumice.inspect(bytes(program))["methods"][0]["plan"]["values"]
    given = {v["name"] for v in values if v["kind"] in ("input", "constant") and v["storage"] != "buffer"}
    return given | {row.node for row in program.report.rows if row.storage}


def test_chosen_for_each_value() -> None:
    module, x = Mixed().eval(), torch.randn(5, 33)
    want = pumice.load(bytes(pumice.export(module, (x,))))(x)
    for storage in (
        {"linear": "texture"},
        {"first.weight": "texture"},
        {"x": "texture", "linear_1": "texture", "second.weight": "texture"},
        lambda value: "texture" if value.kind == "weight" and value.shape[0] == 70 else "buffer",
    ):
        program = pumice.export(module, (x,), options={"storage": storage})
        assert "texture" in " ".join(storages(program).values()) and "buffer" in storages(program).values()
        assert any("textures" in note for note in program.report.notes)
        for got, expected in zip(pumice.load(bytes(program))(x), want, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    program = pumice.export(module, (x,), options={"storage": {"x": "texture", "linear": "texture"}})
    assert pumice.load(bytes(program)).inputs[0].storage == "texture3d"
    assert "texture3d" in str(pumice.load(bytes(program)).inputs[0])
    row = next(row for row in program.report.rows if row.node == "linear")
    assert row.storage == "texture3d" and "texture3d" in str(program.report)
    assert storages(pumice.export(module, (x,)))["x"] == "buffer"


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("textures", "did you mean 'texture'"),
        ({"linaer": "texture"}, "did you mean 'linear'"),
        ({"linear": "image"}, "unknown storage of 'linear'"),
        ({"transpose": "texture"}, "no operator that reads or writes 'transpose' takes a texture"),
        pytest.param(lambda value: "image", "unknown storage of", id="a function"),
        (7, "a word, a mapping or a function"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(storage, message) -> None:
    with pytest.raises(pumice.Error, match=message):
        pumice.export(Mixed().eval(), (torch.randn(5, 33),), options={"storage": storage})


class Several(torch.nn.Module):
    """Inputs, results between and at the end, a residual, weights: each of them in a texture alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(9, 7), torch.nn.Linear(7, 7)

    def forward(self, x: torch.Tensor, other: torch.Tensor):
        hidden = torch.abs(self.first(x))
        scale, zero = ao.choose_qparams_affine(hidden, *HOW)
        q = ao.quantize_affine(hidden, [1, 7], scale, zero, torch.int8, -128, 127)
        return ao.dequantize_affine(q, [1, 7], scale, zero, torch.int8, -128, 127), self.second(hidden) + other


HOW = ("ASYMMETRIC", [1, 7], torch.int8, -128, 127, 1e-5, torch.float32, torch.int32)


def test_any_one_value() -> None:
    """What the exporter takes as a choice, the runtime takes, too."""
    torch.manual_seed(0)
    module, inputs = Several().eval(), (torch.randn(3, 9), torch.randn(3, 7))
    names = storable(pumice.export(module, inputs, options=TEXTURE))
    assert names >= {"x", "other", "first.weight", "second.weight", "abs_1", "quantize_affine"}
    for name in names:
        program = pumice.export(module, inputs, options={"storage": {name: "texture"}})
        assert name in storable(program)
        for got, want in zip(pumice.load(bytes(program))(*inputs), module(*inputs), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_the_report_says_what_stays_a_buffer() -> None:
    module, x = Mixed().eval(), torch.randn(5, 33)
    notes = "\n".join(pumice.export(module, (x,), options=TEXTURE).report.notes)
    assert "values and 2 weights are textures" in notes
    assert "stay buffers, no operator that reads or writes them takes textures" in notes and "transpose" in notes
    assert "storage" not in "\n".join(pumice.export(module, (x,)).report.notes)
    tall = torch.randn(2049, 4)
    program = pumice.export(Apply(torch.abs), (tall,), options=TEXTURE)
    assert any("2 stay buffers, larger than textures of many devices: x, abs" in note for note in program.report.notes)
    assert set(storages(program).values()) == {"buffer"}
    assert torch.equal(pumice.load(bytes(program))(tall), tall.abs())
    wide = torch.randn(2048, 3)
    program = pumice.export(Apply(torch.abs), (wide,), options=TEXTURE)
    assert set(storages(program).values()) == {"texture3d"} and torch.equal(
        pumice.load(bytes(program))(wide), wide.abs()
    )


def changed(program: pumice.Program, find, storage: ir.Storage) -> bytes:
    method = program.ir.methods[0]
    (value,) = [value for index, value in enumerate(method.values) if find(method, index)]
    value.storage = storage
    return bytes(program)


NO_TEXTURE = {
    "input": (lambda method, index: index == method.inputs[0], ir.Storage.texture3d),
    "output": (lambda method, index: index == method.outputs[0], ir.Storage.texture3d),
    "between": (lambda method, index: method.values[index].kind is ir.ValueKind.scratch, ir.Storage.texture3d),
    "constant": (lambda method, index: method.values[index].kind is ir.ValueKind.constant, ir.Storage.texture2d),
}


@pytest.mark.parametrize("where", NO_TEXTURE)
def test_a_file_that_asks_for_what_no_operator_has_is_refused(where) -> None:
    class Softmax(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("add", torch.randn(7))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, -1) + self.add

    program = pumice.export(Softmax(), (torch.randn(3, 7),))
    find, storage = NO_TEXTURE[where]
    data = changed(program, find, storage)
    for refuse in (lambda: pumice.load(data), lambda: pumice.inspect(data)):
        with pytest.raises(pumice.InvalidFileError, match=f"no operator .* takes a {storage.name}") as caught:
            refuse()
        assert caught.value.code == "BadSchema" and ".storage" in caught.value.path


def test_the_memory_plan_shows_images() -> None:
    program = pumice.export(Apply(torch.abs), (torch.randn(5, 7),), options=TEXTURE)
    plan = pumice.inspect(bytes(program))["methods"][0]["plan"]
    assert plan["images"] == [{"width": 2, "height": 5, "depth": 1, "bytes": 160}] * 2
    assert [value["image"] for value in plan["values"]] == [0, 1]
    session = pumice.load(bytes(program))
    session(torch.randn(5, 7))
    assert session.memory["textures"] >= 320


def test_limits_are_named() -> None:
    module, x = layer("q4", 64, 64), torch.randn(40, 64)
    data = bytes(pumice.export(module, (x,), options=TEXTURE))
    for features, texts in {
        "max_image_3d=39": ("f32[40, 64]", "16 x 40 x 1 texels", "at most 39", "maxImageDimension3D"),
        "max_image_2d=127": ("weight", "texture2d of 128 x 1", "at most 127", "maxImageDimension2D"),
    }.items():
        with pytest.raises(pumice.DeviceError) as caught:
            pumice.load(data, features=features)
        assert caught.value.code == "DeviceUnsupported"
        assert all(text in str(caught.value) for text in texts), str(caught.value)
        check_linear(pumice.load(data, features=f"{features},storage=buffers")(x), x, module)


def test_dynamic_sizes_are_refused_when_they_come() -> None:
    dims = ({0: torch.export.Dim("m", min=1, max=64)},)
    module = layer("float", 8, 8)
    session = pumice.load(
        bytes(pumice.export(module, (torch.zeros(3, 8),), dynamic_shapes=dims, options=TEXTURE)),
        features="max_image_3d=20",
    )
    with pytest.raises(pumice.Error, match="2 x 21 x 1 texels; this device has at most 20"):
        session(torch.zeros(21, 8))
    assert session(torch.zeros(20, 8)).shape == (20, 8)


# ---- accepted means runnable -----------------------------------------------------------------------------------------

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
}
AXES = ("STORAGE", "X_STORAGE", "WEIGHT_STORAGE")


def test_every_operator_with_a_storage_axis_has_a_case() -> None:
    relu = op_table()["relu", 1].axes.get("STORAGE")
    found = {
        name for (name, _), s in op_table().items() if any(axis in s.axes for axis in AXES) and len(s.parameters) > 1
    }
    assert relu and found == set(CASES) - {"relu"}


@pytest.mark.parametrize("name", CASES)
def test_accepted_means_runnable(name) -> None:
    module, x = CASES[name]()
    program = pumice.export(module, (x,), options=TEXTURE)
    assert name in program.report.operators
    got = pumice.load(bytes(program))(x)
    for a, b in zip(*((t,) if isinstance(t, torch.Tensor) else t for t in (got, module(x))), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
