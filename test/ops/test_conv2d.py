# SPDX-License-Identifier: Apache-2.0
"""Convolutions of floats, each within the bound of ops/conv2d.cpp, and what is folded into them."""

from __future__ import annotations

import pytest
import torch
from support.budget import MATMUL, NORM, Budget
from support.conv import CASES, MATRIX_CASES, sums_of
from support.many import FLOATS, normal
from support.one_call import OneCall
from support.quantized import check_product
from support.sums import SUM_UNIT
from torch import nn

import pumice

FOLDED = Budget(of_max=2.0**-10, why="NORM, and a weight times a factor is rounded to fp16: 2^-11 of each product")


class Each(nn.Module):
    """Every layer with its own input."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return [layer(x) for layer, x in zip(self.layers, inputs, strict=True)]


def check(layers: list[nn.Module], inputs: list[torch.Tensor], features: tuple = (None,), kernel: str = "") -> None:
    """`kernel`: which all of them run."""
    module = Each(layers).eval()
    program = pumice.export(module, tuple(inputs))
    assert program.report.operators["conv2d"] == len(layers), program.report.operators
    for feature in features:
        session = pumice.load(bytes(program), features=feature)
        results = session(*inputs)
        if kernel:
            ran = [row.kernel for row in session.profile(*inputs)]
            assert len([name for name in ran if name.split("[")[0] == kernel]) == len(layers), ran
        for layer, x, got in zip(layers, inputs, results, strict=True):
            # Matrix units sum in fp32, but may cut off where others round.
            unit = 2 * SUM_UNIT if kernel else SUM_UNIT
            check_product(got, sums_of(layer, x), 4, f"{layer} of {list(x.shape)}, features={feature}", unit=unit)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_conv2d(dtype) -> None:
    torch.manual_seed(1)
    features = (None, "none,like_gpu") if dtype is torch.float32 else (None, "like_gpu,-coopmat")
    check([case.module().to(dtype) for case in CASES], [case.x(dtype) for case in CASES], features)


def test_matrices() -> None:
    torch.manual_seed(7)
    layers = [case.module().half() for case in MATRIX_CASES]
    check(layers, [case.x(torch.float16) for case in MATRIX_CASES], ("kernel=conv32x32",), "conv2d_matrix")


def test_transposed() -> None:
    torch.manual_seed(2)
    layers = [
        nn.ConvTranspose2d(17, 34, 3, 2, 1, 1),
        nn.ConvTranspose2d(8, 36, (2, 4), (2, 3), (0, 1), (1, 2), 2, False, (2, 1)),
        nn.ConvTranspose2d(5, 5, 3, 2, 1, 0, 5),
        nn.ConvTranspose1d(6, 17, 4, 3, 1),
    ]
    shapes = [(1, 17, 5, 7), (3, 8, 4, 5), (1, 5, 6, 4), (3, 6, 9)]
    check(layers, [torch.randn(shape) for shape in shapes])


def test_conv1d() -> None:
    torch.manual_seed(3)
    layers = [
        nn.Conv1d(3, 17, 3, padding=1),
        nn.Conv1d(17, 17, 5, groups=17, padding="same", bias=False),
        nn.Conv1d(4, 4, 2, stride=2, dilation=3),
        nn.Conv1d(1, 1, 3, padding=1),
    ]
    check(layers, [torch.randn(shape) for shape in [(3, 3, 16), (1, 17, 13), (4, 20), (1, 96)]])


def test_padding_before_is_folded() -> None:
    """Zeros only, and not over channels."""
    torch.manual_seed(6)
    layers = [
        nn.Sequential(nn.ZeroPad2d((0, 1, 2, 3)), nn.Conv2d(3, 5, 3, 2, 1)),
        nn.Sequential(nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(3, 5, 3)),
        nn.Sequential(nn.ConstantPad2d(1, 0.5), nn.Conv2d(3, 5, 3)),
        nn.Sequential(nn.ZeroPad2d((0, 0, -1, -1)), nn.Conv2d(3, 5, 3, padding=1)),
        nn.Sequential(nn.ConstantPad3d((0, 0, 0, 0, 1, 1), 0.0), nn.Conv2d(3, 5, 3)),
    ]
    inputs = [torch.randn(shape) for shape in [(2, 3, 5, 6), (2, 3, 7), (2, 3, 5, 6), (2, 3, 5, 6), (2, 1, 5, 6)]]
    module = Each(layers).eval()
    program = pumice.export(module, tuple(inputs))
    assert program.report.operators == {"conv2d": 5, "pad": 3, "view": 2}
    for got, layer, x in zip(pumice.load(bytes(program))(*inputs), layers, inputs, strict=True):
        check_product(got, sums_of(layer[1], layer[0](x)), 4, str(layer))


def test_unbatched(e2e) -> None:
    e2e.check(nn.Conv2d(3, 6, 3), normal(3, 7, 8), budget=MATMUL, expect_ops={"conv2d": 1})


ACTIVATIONS = [nn.ReLU(), nn.ReLU6(), nn.Hardtanh(0, 6), nn.Hardswish(), nn.Hardsigmoid(), nn.SiLU(), nn.GELU()]


def test_activations_are_folded(e2e) -> None:
    """Those in front of which nothing else reads the convolution."""
    torch.manual_seed(4)
    module = Each([nn.Sequential(nn.Conv2d(2, 5, 3), act) for act in ACTIVATIONS])
    inputs = [normal(1, 2, 6, 7, seed=seed) for seed in range(len(ACTIVATIONS))]
    program = e2e.check(module, *inputs, budget=MATMUL, expect_ops={"conv2d": len(ACTIVATIONS)})
    assert program.report.operators == {"conv2d": len(ACTIVATIONS)}

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 5, 3)

        def forward(self, x):
            y = self.conv(x)
            return y, y.relu()

    e2e.check(Shared(), normal(1, 2, 6, 7), budget=MATMUL, expect_ops={"conv2d": 1, "relu": 1})


def trained(module: nn.Module, *shape: int) -> nn.Module:
    """With statistics and factors as training leaves them."""
    norm = next(m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm))
    norm.weight.data, norm.bias.data = normal(norm.num_features).abs() + 0.2, normal(norm.num_features, seed=2)
    module.train()
    module(normal(*shape, seed=3) * 3 + 1)
    return module.eval()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_batch_norm(e2e, dtype) -> None:
    torch.manual_seed(5)
    for module, shape in [
        (nn.Sequential(nn.Conv2d(3, 17, 3, bias=False), nn.BatchNorm2d(17), nn.ReLU6()), (3, 3, 6, 7)),
        (nn.Sequential(nn.Conv2d(6, 6, 3, groups=6), nn.BatchNorm2d(6)), (2, 6, 6, 6)),
        (nn.Sequential(nn.ConvTranspose2d(3, 6, 2, 2), nn.BatchNorm2d(6)), (2, 3, 4, 4)),
        (nn.Sequential(nn.BatchNorm2d(5), nn.Hardswish()), (3, 5, 3, 4)),
        (nn.BatchNorm1d(5), (7, 5)),
        (nn.BatchNorm1d(5), (2, 5, 3)),
        (nn.BatchNorm3d(5), (2, 5, 3, 2, 2)),
    ]:
        x = normal(*shape, dtype=dtype)
        budget = NORM if dtype is torch.float32 else FOLDED
        e2e.check(trained(module, *shape).to(dtype), x, budget=budget, expect_ops={"conv2d": 1}, reference="f64")


def test_a_norm_takes_a_mean_away_that_is_far_larger_than_what_is_left(e2e) -> None:
    """1000.5 - 0.3, which fp16 does not hold."""
    module = nn.Sequential(nn.Conv2d(1, 1, 1, bias=False), nn.BatchNorm2d(1, eps=0))
    nn.init.ones_(module[0].weight)
    nn.init.constant_(module[1].bias, 0.3)
    module[1].running_mean.fill_(1000.5)
    x = 1000 + torch.arange(6).view(1, 1, 2, 3) / 2
    e2e.check(module.half(), x.half(), budget=FOLDED, expect_ops={"conv2d": 1}, reference="f64")


def test_dynamic_sizes(e2e) -> None:
    batch, height, width = (torch.export.Dim(name, min=4, max=40) for name in ("batch", "height", "width"))
    module = nn.Sequential(nn.Conv2d(3, 17, 3, 2, 1), nn.BatchNorm2d(17), nn.ReLU(), nn.Conv2d(17, 4, 1))
    shapes = {"input": {0: batch, 2: height, 3: width}}
    runs = [(normal(4, 3, 40, 5),), (normal(5, 3, 4, 31),)]
    e2e.check(module, normal(6, 3, 8, 9), dynamic_shapes=shapes, runs=runs, budget=MATMUL)


def test_empty(e2e) -> None:
    e2e.check(nn.Conv2d(3, 6, 3), normal(0, 3, 7, 8))


class ComputedBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(normal(3, 2, 3, 3))

    def forward(self, x, bias):
        return torch.nn.functional.conv2d(x, self.weight, bias)


def test_refused(e2e) -> None:
    e2e.refuses(ComputedBias(), normal(1, 2, 5, 5), normal(3), match="bias of the convolution is computed")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kernel": [3]}, "1 numbers for the kernel"),
        ({"kernel": [2, 2]}, "27 columns for a kernel of 2 x 2"),
        ({"stride": [0, 1]}, "the stride has 0"),
        ({"dilation": [1, 1 << 20]}, "the dilation has"),
        ({"pads": [-5, 0, -5, 0]}, "does not fit a size of 8"),
        ({"groups": 5}, "6 output channels in 5 groups"),
        ({"groups": 2}, "x has 3 channels, not 18"),
        ({"act": 8}, "activation 8 is not"),
        ({"bias": 5}, "the bias does not have 6 elements"),
    ],
)
def test_bad_arguments(change, match) -> None:
    given = {"bias": 6, "kernel": [3, 3], "stride": [1, 1], "pads": [0] * 4, "dilation": [1, 1], "groups": 1}
    given = given | {"transposed": False, "act": 0} | change
    if given["groups"] == 2:
        given["kernel"] = [1, 3]
    program = OneCall()
    x, weight = program.input(torch.float32, [1, 3, 8, 8]), program.constant(normal(6, 27))
    bias = program.constant(normal(given.pop("bias")))
    program.call("conv2d", [x, weight, bias, *given.values()], torch.float32, [1, 6, 6, 6])
    with pytest.raises(pumice.Error, match=match):
        pumice.load(program.bytes())
