# SPDX-License-Identifier: Apache-2.0
"""Writes .pumice files of convolutions with random weights, for measuring: one layer, ResNet-50 or MobileNetV2.

python test/bench/conv_file.py out.pumice resnet50 --batch 32 --dtype f16
python test/bench/conv_file.py out.pumice 256,256,3,56 --batch 32 --dtype i8
pumice-rt profile out.pumice --by call
"""

from __future__ import annotations

import argparse

import numpy as np

from pumice.format import ir
from pumice.format.writer import save

SCALE, RELU, RELU6 = 0.02, 1, 5


class Network:
    """Layers one after another; x is [batch, channels, size, size]. Integers have one scale everywhere."""

    def __init__(self, batch: int, channels: int, size: int, dtype: ir.DType) -> None:
        self.program, self.method, self.dtype = ir.Program(producer="pumice bench"), ir.Method(), dtype
        self.program.methods.append(self.method)
        self.dims: dict[int, list[int]] = {}
        self.x = self.value(ir.ValueKind.input, dtype, [batch, channels, size, size], name="x")
        self.method.inputs.append(self.x)

    @property
    def bytes(self) -> bool:
        return self.dtype is ir.DType.i8

    def value(self, kind: ir.ValueKind, dtype: ir.DType, dims: list[int], ref: int = -1, name: str = "") -> int:
        self.method.values.append(ir.Value(kind, dtype, dims, ref, name))
        self.dims[len(self.method.values) - 1] = dims
        return len(self.method.values) - 1

    def constant(self, data: np.ndarray, dtype: ir.DType) -> ir.ValueId:
        self.program.constants.append(ir.Constant(f"c{len(self.program.constants)}", data.nbytes, data.tobytes))
        return ir.ValueId(self.value(ir.ValueKind.constant, dtype, list(data.shape), len(self.program.constants) - 1))

    def call(self, op: str, arguments: list, dims: list[int]) -> int:
        out = self.value(ir.ValueKind.scratch, self.dtype, dims)
        self.method.ops.append(ir.OpCall(op, 1, arguments, [out], f"{op} {len(self.method.ops)}"))
        return out

    def conv(self, x: int, out: int, kernel: int, stride: int = 1, act: int = 0, groups: int = 1) -> int:
        batch, channels, size, _ = self.dims[x]
        k, pad = channels // groups * kernel**2, kernel // 2
        random = np.random.default_rng(len(self.method.ops))
        geometry = [[kernel] * 2, [stride] * 2, [pad] * 4, [1, 1], groups, False, act]
        dims = [batch, out, *[(size + 2 * pad - kernel) // stride + 1] * 2]
        if not self.bytes:
            weight = self.constant((random.standard_normal((out, k)) * (2 / k) ** 0.5).astype(np.float16), self.dtype)
            bias = self.constant(random.standard_normal(out).astype(np.float32) * np.float32(0.1), ir.DType.f32)
            return self.call("conv2d", [ir.ValueId(x), weight, bias, *geometry], dims)
        weight = self.constant(random.integers(-127, 128, (out, k), np.int8), ir.DType.i8)
        scale = self.constant(np.full((out, 1), (2 / k) ** 0.5 / 73, np.float32), ir.DType.f32)
        bias = self.constant(random.standard_normal(out).astype(np.float32) * np.float32(0.1), ir.DType.f32)
        tail = [SCALE, 0, SCALE, 0, -128, 127]
        return self.call("q8ta_conv2d", [ir.ValueId(x), weight, scale, None, bias, *geometry, *tail], dims)

    def add(self, a: int, b: int, act: int = 0) -> int:
        pair = [ir.ValueId(a), ir.ValueId(b)]
        if self.bytes:
            return self.call("q8ta_add", [*pair, SCALE, 0, SCALE, 0, act, SCALE, 0, -128, 127], self.dims[a])
        return self.call("add_relu" if act else "add", pair if act else [*pair, 1.0], self.dims[a])

    def max_pool(self, x: int) -> int:
        dims = [*self.dims[x][:2], self.dims[x][2] // 2, self.dims[x][3] // 2]
        return self.call("max_pool", [ir.ValueId(x), [3, 3], [2, 2], [1] * 4, [1, 1], False], dims)

    def head(self, x: int, classes: int) -> int:
        dims, tail = [*self.dims[x][:2], 1, 1], [SCALE, 0, SCALE, 0, -128, 127] if self.bytes else []
        pooled = self.call(("q8ta_" if self.bytes else "") + "adaptive_avg_pool", [ir.ValueId(x), [1, 1], *tail], dims)
        return self.conv(pooled, classes, 1)

    def finish(self, x: int) -> ir.Program:
        self.method.values[x].kind, self.method.values[x].name = ir.ValueKind.output, "out"
        self.method.outputs.append(x)
        return self.program


def resnet50(net: Network) -> int:
    x = net.max_pool(net.conv(net.x, 64, 7, 2, RELU))
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            y = net.conv(net.conv(x, width, 1, 1, RELU), width, 3, step, RELU)
            short = net.conv(x, 4 * width, 1, step) if block == 0 else x
            x = net.add(net.conv(y, 4 * width, 1), short, RELU)
    return net.head(x, 1000)


def mobilenet_v2(net: Network) -> int:
    x = net.conv(net.x, 32, 3, 2, RELU6)
    for expand, out, blocks, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for block in range(blocks):
            wide, step = net.dims[x][1] * expand, stride if block == 0 else 1
            y = net.conv(x, wide, 1, 1, RELU6) if expand > 1 else x
            y = net.conv(net.conv(y, wide, 3, step, RELU6, wide), out, 1)
            x = net.add(x, y) if step == 1 and net.dims[x][1] == out else y
    return net.head(net.conv(x, 1280, 1, 1, RELU6), 1000)


NETWORKS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("what", help="resnet50, mobilenet_v2, or IN,OUT,KERNEL,SIZE[,STRIDE[,GROUPS]] of one layer")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--dtype", choices=["f16", "i8"], default="f16")
    options = parser.parse_args()
    dtype = ir.DType[options.dtype]
    if options.what in NETWORKS:
        net = Network(options.batch, 3, 224, dtype)
        save(net.finish(NETWORKS[options.what](net)), options.output)
        return
    channels, out, kernel, size, *rest = map(int, options.what.split(","))
    net = Network(options.batch, channels, size, dtype)
    stride, groups = [*rest, 1, 1][:2] if len(rest) < 2 else rest
    save(net.finish(net.conv(net.x, out, kernel, stride, RELU, groups)), options.output)


if __name__ == "__main__":
    main()
