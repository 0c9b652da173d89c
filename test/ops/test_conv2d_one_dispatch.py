# SPDX-License-Identifier: Apache-2.0
"""Three convolutions of 8-bit integers that are one dispatch (ops/conv/chain.h), where matrices of bytes have their
elements in known places. Which ones are, by the plan for such a GPU; and `./dev test-gpu` runs them on NVIDIA's: bit
for bit what three dispatches give, which are compared with fp64 elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from support.command_line import BIN, ROOT
from support.command_line import run as run_command
from support.device import device
from support.one_call import OneCall

import pumice

CHAIN = "conv2d_chain_fragments_int8"
SINGLE = "kernel=conv8_gemvf8x2"
on_gpu = pytest.mark.skipif("fragments_int8" not in device().features, reason="no kernel of that kind runs here")
LEAST, MOST = -128, 127


@dataclass(frozen=True)
class Block:
    """A window, a convolution of pixels that may add a tensor, one more, and a window that reads it."""

    channels: tuple[int, int, int, int] = (64, 64, 256, 64)
    image: tuple[int, int] = (13, 11)
    batch: int = 1
    kernel: int = 3
    stride: int = 1
    pad: int = 1
    dilation: int = 1
    adds: int | None = 1  # which operand of the sum the other tensor is
    relus: tuple[bool, bool, bool] = (True, True, True)  # of the window, the sum and the last one
    biases: tuple[bool, bool, bool] = (True, True, True)
    zero: int = -7
    pixels_kernel: int = 1  # of the second convolution
    second_reader: bool = False  # of the window's output
    any_batch: bool = False

    def out(self) -> tuple[int, int]:
        reach = self.dilation * (self.kernel - 1) + 1
        return tuple((size + 2 * self.pad - reach) // self.stride + 1 for size in self.image)


class File:
    def __init__(self, block: Block) -> None:
        torch.manual_seed(5)
        self.block, self.program, self.batch = block, OneCall(), "n" if block.any_batch else block.batch

    def conv(self, x, sizes: tuple[int, int], window: list, dims: list, zeros: tuple[int, int], **more) -> object:
        """x's scale is 0.04; the results fill their range."""
        columns, relu, bias = sizes[0] * window[0][0] * window[0][1], more.pop("relu", False), more.pop("bias", True)
        weight = torch.randint(-127, 128, (sizes[1], columns)).to(torch.int8)
        scale = (torch.rand(sizes[1], 1) + 0.5) / (50 * columns**0.5)
        constant = self.program.constant
        args = [x, constant(weight), constant(scale), None, constant(torch.randn(sizes[1])) if bias else None, *window]
        args += [1, False, int(relu), 0.04, zeros[0], 0.04, zeros[1], LEAST + 1, MOST - 2]
        return self.program.call("q8ta_conv2d", args, torch.int8, [self.batch, sizes[1], *dims], **more)

    def bytes(self) -> bytes:
        b, (c0, c1, c2, c3), dims = self.block, self.block.channels, self.block.out()
        x = self.program.input(torch.int8, [self.batch, c0, *b.image])
        # Channels-last, as a convolution leaves it.
        x = self.conv(x, (c0, c0), pixel(1), [*b.image], (3, b.zero), inner=True)
        window = [[b.kernel] * 2, [b.stride] * 2, [b.pad] * 4, [b.dilation] * 2]
        one = [*b.relus, *b.biases]
        y = self.conv(x, (c0, c1), window, [*dims], (b.zero, 5), relu=one[0], bias=one[3], inner=not b.second_reader)
        sum_is_last = b.adds is not None
        z = self.conv(y, (c1, c2), pixel(b.pixels_kernel), [*dims], (5, -9), bias=one[4], inner=sum_is_last)
        if sum_is_last:
            other = self.program.input(torch.int8, [self.batch, c2, *dims])
            pair = [(z, -9, 0.04), (other, 17, 0.05)]
            (first, first_zero, first_scale), (second, second_zero, second_scale) = pair if b.adds == 1 else pair[::-1]
            args = [first, second, first_scale, first_zero, second_scale, second_zero]
            args += [int(one[1]), 0.043, -20, LEAST, MOST - 1]
            z = self.program.call("q8ta_add", args, torch.int8, [self.batch, c2, *dims])
        z = self.conv(z, (c2, c3), pixel(1), [*dims], (-20, 2), relu=one[2], bias=one[5])
        self.conv(z, (c3, 32), [[3, 3], [1, 1], [1] * 4, [1, 1]], [*dims], (2, 0))
        return self.program.bytes()


def pixel(kernel: int) -> list:
    return [[kernel] * 2, [1, 1], [kernel // 2] * 4, [1, 1]]


def run(block: Block) -> list[str]:
    """The kernels that ran, whose results are those of single dispatches."""
    file = File(block).bytes()
    chained, single = pumice.load(file), pumice.load(file, features=SINGLE)
    c2, dims = block.channels[2], block.out()
    for seed in (1, 2):
        torch.manual_seed(seed)
        inputs = [torch.randint(LEAST, MOST + 1, (block.batch, block.channels[0], *block.image)).to(torch.int8)]
        if block.adds is not None:
            inputs.append(torch.randint(LEAST, MOST + 1, (block.batch, c2, *dims)).to(torch.int8))
        for got, want in zip(chained(*inputs), single(*inputs), strict=True):
            assert torch.equal(got, want)
            assert want.unique().numel() > 60, "the results say little"
    return [row.kernel for row in chained.profile(*inputs)]


CASES = {
    "a block of ResNet-50": Block(image=(14, 14)),
    "odd sizes": Block(),
    "a wide one": Block((128, 128, 512, 128), (10, 9)),
    "panels that share no tiles evenly": Block((48, 80, 144, 240), (9, 7)),
    "few channels": Block((16, 16, 16, 16), (5, 7)),
    "another width after it": Block((64, 64, 256, 128), (6, 5)),
    "less than eight pixels": Block(image=(2, 3)),
    "two images": Block(image=(9, 5), batch=2),
    "16 pixels at once": Block(image=(33, 37)),
    "24 pixels at once": Block(image=(56, 55)),
    "steps": Block((32, 64, 128, 64), (21, 17), stride=2),
    "holes": Block((32, 32, 64, 32), (15, 12), dilation=2, pad=2),
    "5x5, no padding": Block((32, 32, 64, 32), (15, 12), kernel=5, pad=0),
    "a window of one": Block((64, 32, 128, 64), kernel=1, pad=0),
    "nothing is added": Block(adds=None),
    "added in front": Block(adds=0),
    "no relus": Block(relus=(False, False, False)),
    "no biases": Block(biases=(False, True, False)),
    "zero points": Block(zero=127),
}


OTHERS = {
    "a second reader of what stays in the kernel": Block(second_reader=True),
    "weights that a workgroup reads too slowly": Block((256, 256, 1024, 256), (7, 6)),
    "channels that are no panel": Block((64, 64, 248, 64)),
    "a second window": Block(pixels_kernel=3),
    "any number of images": Block(image=(5, 4), any_batch=True),
    "too many pixels": Block((16, 16, 32, 16), (80, 80)),
}


ALL = CASES | OTHERS


@pytest.fixture(scope="module")
def gpus(tmp_path_factory) -> tuple[Path, Path]:
    """Profiles of a GPU, and of one whose shaders bind fewer buffers than the kernel needs."""
    profile = json.loads((ROOT / "test/profiles/h100.json").read_text())
    paths = tuple(tmp_path_factory.mktemp("profiles") / f"{name}.json" for name in ("right", "few"))
    for path, buffers in zip(paths, (profile["max_storage_buffers"], 15), strict=True):
        path.write_text(json.dumps(profile | {"max_storage_buffers": buffers}))
    return paths


def dispatches(file: Path, gpu: Path) -> int:
    facts = json.loads(run_command(BIN / "pumice-rt", "inspect", file, "--json", "--profile", gpu).stdout)
    return facts["methods"][0]["run"]["dispatches"]


@pytest.mark.parametrize("name", ALL)
def test_which_are_one_dispatch(name, gpus, tmp_path) -> None:
    file = tmp_path / "block.pumice"
    file.write_bytes(File(ALL[name]).bytes())
    one, three = (dispatches(file, gpu) for gpu in gpus)
    assert three - one == (2 if name in CASES else 0)


@on_gpu
@pytest.mark.parametrize("name", ALL)
def test_same_bits(name) -> None:
    ran = run(ALL[name])
    assert sum(CHAIN in kernel for kernel in ran) == (name in CASES), ran
