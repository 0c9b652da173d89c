# SPDX-License-Identifier: Apache-2.0
"""Kernels that compute several calls, and products of two inputs, are tested before a model uses them, too: a lie is
planted in each. The calls around them are those of runtime/fused_calls.h."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.int8_chain import Block
from support.int8_chain import File as Convolutions
from support.played_driver import playing
from torch import nn

import pumice


class Mean(nn.Module):
    """A depthwise convolution whose channels are scaled by what becomes of their means."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.scale = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.silu(self.depthwise(x))
        return y * torch.sigmoid(self.scale(y.mean((2, 3), keepdim=True)))


class Norm(nn.Module):
    """A depthwise convolution, and the layer norm of each pixel's channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm, self.linear = nn.LayerNorm(channels), nn.Linear(channels, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))


class Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


CASES = {
    "conv2d_depthwise_mean": (Mean(16), (torch.randn(2, 16, 12, 11),)),
    "conv2d_depthwise_channels_last_norm": (Norm(32), (torch.randn(1, 32, 10, 9),)),
    "matmul": (Product(), (torch.randn(2, 40, 64), torch.randn(2, 64, 48))),
    "matmul_matrix": (Product(), (torch.randn(128, 128).half(), torch.randn(128, 128).half())),
}
FAMILIES = {"matmul_matrix": "matrix"}  # the others: portable


def found(path: Path, kernel: str, features: str) -> list:
    session = pumice.load(path, cache_dir="off", features=f"like_gpu{features}")
    return [each for each in session.device.self_test if each.kernel.partition("[")[0] == kernel]


@pytest.mark.parametrize("kernel", CASES)
def test_a_lie_is_found(kernel: str, tmp_path: Path) -> None:
    module, given = CASES[kernel]
    with torch.no_grad():
        pumice.export(module.eval(), given).save(tmp_path / "m.pumice")
    family = FAMILIES.get(kernel, "portable")
    (wrong,) = found(tmp_path / "m.pumice", kernel, f",lie={family}")  # first: memory may keep what an honest run left
    assert wrong.result == "wrong" and wrong.family == family and "output" in wrong.wrong
    right = found(tmp_path / "m.pumice", kernel, "")
    assert not [each for each in right if each.result != "right"]


def save_chain(path: Path) -> None:
    path.write_bytes(Convolutions(Block(image=(14, 14))).bytes())


def save_product(path: Path) -> None:
    with torch.no_grad():
        pumice.export(Product(), (torch.randn(256, 256), torch.randn(256, 256))).save(path)


# Those of matrices whose elements lie in known places, which no CPU driver has: on the one of
# test/support/fragments_driver.cpp they write nothing.
PLAYED = {"conv2d_chain_fragments_int8": ("fragments", save_chain), "matmul_matrix": ("matrix", save_product)}


@pytest.mark.parametrize("kernel", PLAYED)
def test_a_lie_of_a_played_driver_is_found(kernel: str, tmp_path: Path) -> None:
    family, save = PLAYED[kernel]
    save(tmp_path / "m.pumice")
    code = """if True:
        import json, sys, pumice
        for _ in range(8):  # a load has only so much time for tests
            session = pumice.load(sys.argv[1], features="like_gpu", cache_dir=sys.argv[2])
            (tested,) = (each for each in session.device.self_test if each.kernel.partition("[")[0] == sys.argv[3])
            if tested.result != "untested":
                break
        print(json.dumps([tested.family, tested.result, tested.wrong]))
    """
    words = [sys.executable, "-c", code, tmp_path / "m.pumice", tmp_path / "cache", kernel]
    lying = os.environ | playing("fragments_driver.cpp", tmp_path)
    said = subprocess.run(words, env=lying, capture_output=True, text=True, check=True, timeout=240)
    *tested, wrong = json.loads(said.stdout)
    assert tested == [family, "wrong"] and "output" in wrong, said
