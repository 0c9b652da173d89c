# SPDX-License-Identifier: Apache-2.0
"""Three convolutions of 8-bit integers that may be one dispatch (ops/conv/chain.h)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from support.one_call import OneCall

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
