# SPDX-License-Identifier: Apache-2.0
"""The same results with each optional feature off in turn, with all of them off (D05), with the least limits of Vulkan
(D02), and with subgroups of another size. The features are those that the device itself lists."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest
import torch
from support import schemes
from support.device import device, is_llvmpipe
from support.quantized import quantized
from support.textures import Round
from torch.nn import functional as F

import pumice
from pumice import _pumice

POOR = "max_invocations=128,max_shared=16384,max_groups=65535,alignment=256,max_storage=128m,max_image_3d=256"


class Attention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Rows(torch.nn.Module):
    """What a block has around its linears."""

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = F.layer_norm(x, x.shape[-1:]) @ w
        norm = F.rms_norm(F.silu(x), x.shape[-1:])
        return torch.softmax(y, -1), y.sum(0), norm, y.argmax(-1), y.to(torch.float32) + 1


def linear(bits: int, group: int | None, n: int, k: int, affine: bool = False) -> torch.nn.Module:
    torch.manual_seed(n)
    return quantized(torch.nn.Linear(k, n).half().eval(), bits, group, affine)


def scheme(op: str) -> torch.nn.Module:
    found = next(each for each in schemes.SCHEMES if op in each.ops)
    return found.quantize(schemes.layers(), schemes.inputs())


def halves(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(len(shapes))
    return tuple(torch.randn(shape).half() for shape in shapes)


CASES = {
    "q4, one row": lambda: (linear(4, 32, 70, 96), halves((1, 96))),
    "q4, rows": lambda: (linear(4, 32, 70, 96, affine=True), halves((33, 96))),
    "float": lambda: (torch.nn.Linear(40, 33).half(), halves((20, 40))),
    "dq8ca": lambda: (scheme("linear_dq8ca_q4gsw"), schemes.inputs(rows=20)),
    "static": lambda: (scheme("q8ta_linear"), schemes.inputs()),
    "quantize": lambda: (Round([1, 33], torch.int8, -128, 127), halves((5, 33))),
    "rows": lambda: (Rows(), halves((5, 66), (66, 130))),
    "attention": lambda: (Attention(), halves(*[(1, 2, 33, 16)] * 3)),
}


@functools.cache
def needs() -> dict[str, list[str]]:
    """What each shader of the product needs."""
    shaders = json.loads(_pumice.kernel_list())["shaders"]
    return {row["variant"]: row["needs"] for shader in shaders for row in shader["variants"]}


def check(name: str, lists: list[str]) -> set[str]:
    """Right with each list of features; the kernels that ran."""
    module, inputs = CASES[name]()
    data, want = bytes(pumice.export(module, inputs)), module(*inputs)
    seen = set()
    for features in lists:
        session = pumice.load(data, features=features)
        got = session(*inputs)
        for a, b in zip(*((t,) if isinstance(t, torch.Tensor) else t for t in (got, want)), strict=True):
            torch.testing.assert_close(a, b, rtol=4e-3, atol=4e-3, msg=lambda text: f"{features}: {text}")  # noqa: B023
        off = {word[1:] for word in features.split(",") if word.startswith("-")}
        for row in session.profile(*inputs):
            needed = {each for part in row.kernel.split(" + ") for each in needs().get(part, ())}
            lacks = needed if features.startswith("none") else off & needed
            assert not lacks, f"{row.kernel} needs {lacks}, which {features} takes away"
            seen.add(row.kernel)
    return seen


@pytest.mark.parametrize("name", CASES)
def test_each_feature_off(name) -> None:
    features = [f"-{feature},like_gpu" for feature in device().features]
    kernels = check(name, ["", "none", "none,like_gpu", f"none,like_gpu,{POOR}", f"like_gpu,{POOR}", *features])
    if "attention" not in name and name not in ("quantize", "rows"):
        assert len(kernels) > 1, f"whatever is switched off, the same kernels run: {kernels}"


def test_subgroups_of_four() -> None:
    if not is_llvmpipe():
        pytest.skip("another device is under test")
    cases = ["q4, one row", "dq8ca", "quantize", "rows"]
    more = {"LP_NATIVE_VECTOR_WIDTH": "128", "PUMICE_CACHE_DIR": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__, *cases]
    done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "4 cases are right" in done.stdout and "subgroups of 4" in done.stdout


if __name__ == "__main__":  # on the driver that the environment names
    for case in sys.argv[1:]:
        check(case, ["", "none", "like_gpu"])
    size = device().limits["subgroup_size"]
    print(f"{len(sys.argv) - 1} cases are right on {device().name}, {device().driver} {device().driver_version}, "
          f"subgroups of {size}")  # fmt: skip
