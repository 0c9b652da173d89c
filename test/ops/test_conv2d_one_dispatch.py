# SPDX-License-Identifier: Apache-2.0
"""Three convolutions of 8-bit integers that are one dispatch (ops/conv/chain.h), where matrices of bytes have their
elements in known places. Which ones are, by the plan for such a GPU; and `./dev test-gpu` runs them on NVIDIA's: bit
for bit what three dispatches give, which are compared with fp64 elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.device import device
from support.dispatches import all_dispatches, profiles_by_buffers
from support.int8_chain import LEAST, MOST, Block, File

import pumice

CHAIN = "conv2d_chain_fragments_int8"
SINGLE = "kernel=conv8_gemvf8x2"
on_gpu = pytest.mark.skipif("fragments_int8" not in device().features, reason="no kernel of that kind runs here")


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
    return profiles_by_buffers(tmp_path_factory.mktemp("profiles"), few=15)


@pytest.mark.parametrize("name", ALL)
def test_which_are_one_dispatch(name, gpus, tmp_path) -> None:
    file = tmp_path / "block.pumice"
    file.write_bytes(File(ALL[name]).bytes())
    one, three = (all_dispatches(file, gpu) for gpu in gpus)
    assert three - one == (2 if name in CASES else 0)


@on_gpu
@pytest.mark.parametrize("name", ALL)
def test_same_bits(name) -> None:
    ran = run(ALL[name])
    assert sum(CHAIN in kernel for kernel in ran) == (name in CASES), ran
