# SPDX-License-Identifier: Apache-2.0
"""Values larger than one storage buffer of the device: split by rows, or refused by name (ids D02, D03, D04,
W10). `max_storage` makes a device
of the CPU driver whose buffers are so small that small values show it."""

from __future__ import annotations

import pytest
import torch
from support.conv import sums_of
from support.device import is_llvmpipe
from support.int8 import Layer, Weight
from support.quantized import check_linear, check_product, quantized

import pumice

KINDS = {
    "f32": None,
    "q4": (4, 32, False),
    "q4 affine": (4, 32, True),
    "q8": (8, None, False),
    "q8 affine": (8, 32, True),
}
KERNELS = ["gemv1", "gemv4x2", "gemvr4", "tile32x64"]


def layer(kind: str, n: int, k: int, dtype: torch.dtype = torch.float32, bias: bool = True) -> torch.nn.Linear:
    torch.manual_seed(n + k)
    module = torch.nn.Linear(k, n, bias=bias).to(dtype).eval()
    return module if KINDS[kind] is None else quantized(module, *KINDS[kind])


def load(program: pumice.Program, limit: int, more: str = "") -> pumice.Session:
    return pumice.load(bytes(program), features=f"max_storage={limit}{more}")


@pytest.mark.parametrize(
    ("dtype", "more"), [(torch.float32, ""), (torch.float16, ",alignment=256")], ids=["f32", "f16"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_linear(monkeypatch, kind, dtype, more) -> None:
    """Weights of 3 to 17 blocks, with a tail that is neither a row panel nor a vec4 group."""
    module = layer(kind, 4113, 64, dtype)
    dims = ({0: torch.export.Dim("m", min=1, max=4096)},)
    program = pumice.export(module, (torch.zeros(5, 64, dtype=dtype),), dynamic_shapes=dims)
    for kernel in KERNELS:
        monkeypatch.setenv("PUMICE_KERNEL", kernel)
        session = load(program, 1 << 16, more)
        for rows in (1, 3):
            x = torch.randn(rows, 64).to(dtype)
            got = session(x)
            check_linear(got, x, module, f"{kernel} with {rows} rows")
            assert torch.equal(got, session(x))


@pytest.mark.parametrize(
    ("dtype", "more"), [(torch.float32, ""), (torch.float16, ",alignment=256")], ids=["f32", "f16"]
)
@pytest.mark.parametrize(("n", "k"), [(70, 128), (129, 33), (130, 30)])
def test_linear_of_many_rows(n, k, dtype, more) -> None:
    """Here x and out are larger than a binding, and the weight, too."""
    module = layer("f32", n, k, dtype)
    x = torch.randn(3, 1000, k).to(dtype)
    program = pumice.export(module, (x,))
    check_linear(load(program, 100_000 if more else 20_000, more + ",none,like_gpu")(x), x, module)


@pytest.mark.parametrize("more", ["", ",alignment=256"])
@pytest.mark.parametrize(("bits", "group"), [(4, 32), (8, None)])
def test_linear_of_integers(monkeypatch, bits, group, more) -> None:
    module = Layer(Weight.random(4113, 64, group, bits, zero=True), torch.randn(4113))
    kernels = ["gemv1", "dot1", "dotw4", "dot_tile32x64"]
    module.check_rows(monkeypatch, kernels, (1, 3), features=f"max_storage={1 << 16}{more}")


class Fused(torch.nn.Module):
    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + other


@pytest.mark.parametrize("n", [2052, 2050, 2049])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_bias_and_residual(n, dtype) -> None:
    module = Fused(layer("q4", n, 64, dtype))
    x, other = torch.randn(4, 64).to(dtype), torch.randn(4, n).to(dtype)
    program = pumice.export(module, (x, other))
    assert program.report.operators == {"linear_q4gsw": 1}
    whole = pumice.load(bytes(program))(x, other)
    torch.testing.assert_close(load(program, 40_000)(x, other), whole, rtol=2e-3, atol=2e-3)


class Lookup(torch.nn.Module):
    def __init__(self, table: torch.nn.Embedding) -> None:
        super().__init__()
        self.table = table

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.table(index)


@pytest.mark.parametrize(
    ("dtype", "more"), [(torch.float32, ""), (torch.float16, ",alignment=256")], ids=["f32", "f16"]
)
@pytest.mark.parametrize(("bits", "columns"), [(None, 64), (None, 33), (None, 6), (4, 64), (4, 30), (8, 33), (8, 64)])
def test_embedding(bits, columns, dtype, more) -> None:
    torch.manual_seed(columns)
    module = torch.nn.Embedding(4001, columns).to(dtype).eval()
    if bits:
        module = quantized(module, bits, 32 if columns % 32 == 0 else None, affine=True)
    index = torch.randint(0, 4001, (7, 101))
    index[0, :2] = torch.tensor([0, 4000])
    program = pumice.export(Lookup(module), (index,))
    session = load(program, (1 << 17 if more else 1 << 14), more)
    assert torch.equal(session(index), pumice.load(bytes(program))(index))
    torch.testing.assert_close(session(index), module(index), rtol=1e-3, atol=1e-5)
    index[5, 3] = 4001
    with pytest.raises(pumice.Error, match=f"index 4001 at position {5 * 101 + 3} is outside 0..4000"):
        session(index)


class Tied(torch.nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(1500, 64).to(dtype)
        self.head = torch.nn.Linear(64, 1500, bias=False).to(dtype)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(index))


@pytest.mark.parametrize("bits", [4, 8, None])
def test_a_tied_head_shares_the_blocks(bits) -> None:
    module = Tied(torch.float16 if bits is None else torch.float32).eval()
    if bits:
        module = quantized(module, bits, 32)
    module.head.weight = module.embed.weight
    index = torch.randint(0, 1500, (2,))
    program = pumice.export(module, (index,))
    whole, split = pumice.load(bytes(program)), load(program, 1 << 14)
    assert split.memory["weights"] == whole.memory["weights"]
    torch.testing.assert_close(split(index), whole(index), rtol=2e-3, atol=2e-3)


class Mixed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, 0)


@pytest.mark.parametrize("more", ["", ",alignment=256"])
def test_convolutions(more) -> None:
    """By output channels where the weight is too large, by images where values are; depthwise ones, too."""
    torch.manual_seed(8)
    layers = [
        (torch.nn.Conv2d(64, 300, 3, padding=1), (1, 64, 3, 7)),
        (torch.nn.Conv2d(3, 17, 3, padding=1), (80, 3, 9, 7)),
        (torch.nn.Conv2d(64, 330, 1, bias=False).half(), (300, 64, 3, 1)),
        (torch.nn.Conv2d(6, 6, 3, padding=1, groups=6), (800, 6, 5, 4)),
    ]
    for module, shape in layers[bool(more) :]:
        x = torch.randn(shape).to(module.weight.dtype)
        features = f"{more},none,like_gpu" if more else ""
        session = load(pumice.export(module.eval(), (x,)), 300_000 if more else 40_000, features)
        check_product(session(x), sums_of(module, x), 4, str(module))


def test_an_image_larger_than_a_binding_is_named() -> None:
    program = pumice.export(torch.nn.Conv2d(3, 17, 3), (torch.zeros(2, 3, 40, 40),))
    refused(program, "[2, 17, 38, 38]", "196384 bytes", "at most 65536", "conv2d", features="max_storage=65536")


def refused(program: pumice.Program, *texts: str, features: str) -> None:
    with pytest.raises(pumice.Error) as caught:
        pumice.load(bytes(program), features=features)
    assert caught.value.code == "DeviceUnsupported"
    for text in texts:
        assert text in str(caught.value)


def test_what_is_not_split_is_named_with_bytes_and_limit() -> None:
    program = pumice.export(Mixed(), (torch.zeros(64, 100),))
    refused(program, "'output' f32[64, 100]", "25600 bytes", "at most 20000", "scan", features="max_storage=20000")
    # One row panel of 16 rows is larger than a binding.
    program = pumice.export(layer("q8", 32, 4096), (torch.zeros(1, 4096),))
    refused(program, "weight", "at most 65535", features="max_storage=65535")
    assert load(program, 65536)(torch.zeros(1, 4096)).shape == (1, 32)


def test_dynamic_values_are_refused_when_they_come() -> None:
    dims = ({0: torch.export.Dim("m", min=1, max=4096)},)
    program = pumice.export(Mixed(), (torch.zeros(64, 100),), dynamic_shapes=dims)
    session = load(program, 20000)
    assert session(torch.zeros(50, 100)).shape == (50, 100)
    with pytest.raises(pumice.Error, match="20400 bytes; one storage buffer of this device has at most 20000"):
        session(torch.zeros(51, 100))
    assert session(torch.zeros(50, 100)).shape == (50, 100)  # the session goes on


class Outer(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x[:, None] * y


def test_more_elements_than_32_bits_count_are_refused() -> None:
    """D04: 50,000 x 50,000; an index would wrap."""
    dims = ({0: torch.export.Dim("m", min=1, max=1 << 20)}, {0: torch.export.Dim("n", min=1, max=1 << 20)})
    session = pumice.load(bytes(pumice.export(Outer(), (torch.ones(4), torch.ones(5)), dynamic_shapes=dims)))
    with pytest.raises(pumice.Error, match="the limit is 2\\^31") as caught:
        session(torch.ones(50_000), torch.ones(50_000))
    assert caught.value.code == "LimitExceeded"
    assert torch.equal(session(torch.ones(3), torch.ones(2)), torch.ones(3, 2))


def test_a_weight_larger_than_an_allocation_is_refused() -> None:
    program = pumice.export(layer("f32", 300, 64), (torch.zeros(1, 64),))
    refused(program, "weight", "77824 bytes", "at most 70000", features="max_allocation=70000")


@pytest.mark.parametrize("groups", [1, *([10] * is_llvmpipe()), 65535])  # 10 x 10 hold all of what runs there
def test_few_workgroups_along_an_axis(groups) -> None:
    """D03: more than an axis takes go over two; more than two take is refused."""
    module, x = layer("f32", 300, 64), torch.randn(40, 64)
    program = pumice.export(module, (x,))
    if groups == 1:
        with pytest.raises(pumice.Error, match="more than one dispatch takes") as caught:
            pumice.load(bytes(program), features="max_groups=1")
        assert caught.value.code == "LimitExceeded"
        return
    check_linear(pumice.load(bytes(program), features=f"max_groups={groups}")(x), x, module)
