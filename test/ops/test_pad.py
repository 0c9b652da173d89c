# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from support.budget import MATMUL
from support.many import ALL, Many, normal
from support.one_call import OneCall
from torch.nn.functional import pad

import pumice

FUNCTIONS = [
    lambda x: pad(x, (1, 2)), lambda x: pad(x, (0, 0, 1, 1)), lambda x: pad(x, (2, 0, 0, 3, 1, 0)),
    lambda x: pad(x, (-1, 0)), lambda x: pad(x, (-1, 2, 1, -2)), lambda x: pad(x, (1, 1), value=1),
    lambda x: pad(x, (0, 0, 0, 0, 2, 2)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_pad(e2e, dtype) -> None:
    e2e.check(Many(FUNCTIONS), normal(2, 3, 5, dtype=dtype), reference="eager", all_features=dtype is torch.float16)


def test_more(e2e) -> None:
    e2e.check(Many([lambda x: pad(x, (1, 2), value=float("-inf")), lambda x: pad(x, (0, 0))]), normal(3, 4))
    e2e.check(Many([lambda x: pad(x, (1, 2, 1, 0), value=2.5)]), normal(3, 0))
    rows = torch.export.Dim("rows", min=2, max=64)
    functions = [lambda x: pad(x, (0, 1, 2, 0)), lambda x: pad(x, (0, 0, 0, 65 - x.shape[0]))]
    e2e.check(
        Many(functions), normal(5, 3), dynamic_shapes={"inputs": ({0: rows},)}, runs=[(normal(2, 3),), (normal(64, 3),)]
    )


FROM_INSIDE = {
    "reflect": [(2, (1, 3)), (3, (2, 1, 0, 3)), (4, (1, 2, 2, 1, 1, 1)), (3, (-1, 2))],
    "replicate": [(2, (1, 7)), (3, (2, 1, 0, 9)), (4, (1, 2, 5, 1, 3, 1)), (3, (-1, 2)), (3, (-2, -1))],
    "circular": [(2, (1, 3)), (3, (2, 1, 0, 4)), (4, (1, 2, 2, 1, 1, 1)), (3, (5, 0))],
}


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("mode", FROM_INSIDE)
def test_pad_from_inside(e2e, mode, dtype) -> None:
    """One to three dimensions, some without padding, some cut off; numbers as they are, NaN and infinities too."""
    if dtype is torch.bool and mode != "circular":
        pytest.skip("eager PyTorch has none of bool")
    x = normal(3, 2, 4, 5, dtype=dtype)
    if dtype.is_floating_point:
        x[0, 0, 0, :3] = torch.tensor([torch.nan, torch.inf, -0.0])
    pads = [lambda x, rank=rank, by=by: pad(x[0, : 2 if rank > 3 else 1] if rank < 4 else x, by, mode=mode)
            for rank, by in FROM_INSIDE[mode] if rank != 2]  # fmt: skip
    pads += [lambda x, by=by: pad(x[0, 0], by, mode=mode) for rank, by in FROM_INSIDE[mode] if rank == 2]
    e2e.check(Many(pads), x, reference="eager", all_features=dtype is torch.float16)


@pytest.mark.parametrize(
    ("mode", "shape", "by", "out"),
    [
        ("reflect", (2, 3), (3, 0), (2, 6)), ("reflect", (2, 3), (0, 3), (2, 6)), ("reflect", (2, 0), (1, 0), (2, 1)),
        ("replicate", (2, 0), (1, 0), (2, 1)), ("circular", (2, 3), (4, 0), (2, 7)),
        ("circular", (2, 3), (-1, 2), (2, 4)),
    ],
)  # fmt: skip
def test_a_file_with_too_few_elements_is_an_error(mode, shape, by, out) -> None:
    """torch.export does not make one; of another file the sizes are checked."""
    file = OneCall()
    file.call(f"pad_{mode}", [file.input(torch.float32, shape), list(by)], torch.float32, out)
    with pytest.raises(pumice.Error, match=f"pad_{mode}: dimension 1 has the size {shape[1]}, too small"):
        pumice.load(file.bytes())


def test_a_changing_size(e2e) -> None:
    rows = torch.export.Dim("rows", min=4, max=64)
    functions = [lambda x, mode=mode: pad(x, (3, 1), mode=mode) for mode in FROM_INSIDE]
    e2e.check(
        Many(functions), normal(2, 9), dynamic_shapes={"inputs": ({1: rows},)}, runs=[(normal(2, n),) for n in (4, 64)]
    )


def test_modules_of_padding(e2e) -> None:
    """As models have them, decomposed by torch.export or not."""
    import torch.nn as nn

    layers = [nn.ReflectionPad2d((1, 2, 0, 1)), nn.ReplicationPad2d(2), nn.CircularPad2d(1), nn.ZeroPad2d(1)]
    e2e.check(Many(layers), normal(2, 3, 5, 4))
    convolution = nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")
    e2e.check(convolution, normal(2, 3, 5, 4), budget=MATMUL, expect_ops=["pad_reflect", "conv2d"])
    x = normal(2, 3, 5, 4)
    exported = torch.export.export(Many(layers[:2]), (x,)).run_decompositions({})
    got = pumice.load(bytes(pumice.export(exported)))(x)
    assert all(torch.equal(a, layer(x)) for a, layer in zip(got, layers, strict=False))
