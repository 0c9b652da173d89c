# SPDX-License-Identifier: Apache-2.0
"""Image models of transformers, each whole, in fp32, fp16 and static int8. Small ones on every run, all of them
at 224 x 224 by `./dev test-models`."""

from __future__ import annotations

import copy

import pytest
import torch
from support.follow import WithIntegers, follow
from support.roundings import roundings
from support.schemes import pt2e
from support.vision import NETWORKS, images, network

import pumice

UNITS = {torch.float32: 2.0**-24, torch.float16: 2.0**-11}
INT8 = ["ResNet-18", "ResNet-50", "MobileNetV2"]


def check(name: str, dtype: torch.dtype, size: int) -> None:
    """All operators are in one program. The error against fp64 is at most three times that of random roundings."""
    model, x, other = network(name).to(dtype), images(size).to(dtype), images(size, seed=4)
    got = pumice.load(bytes(pumice.export(model, (x,))))(x)
    exact = copy.deepcopy(model).double()
    want, off = roundings(exact, lambda exact: exact(x.double()), UNITS[dtype])
    error, expected = (float(e.norm() / want.norm()) for e in (got.double() - want, off))
    with torch.no_grad():
        distance = float((model.float()(other) - want).norm() / want.norm())
    errors = f"relative error {error:.3g}, by roundings {expected:.3g}, of another image {distance:.3g}"
    print(f"{name}, {dtype}, {size} x {size}: {errors}")
    assert got.dtype is dtype and got.shape == want.shape
    assert error <= 3 * expected
    assert 6 * expected < distance, "another image would pass, too"


def check_int8(name: str, size: int) -> None:
    """Between the first quantize and the last dequantize only integers, each of them the one that PyTorch's operators
    make of the integers before."""
    model, x = network(name), images(size)
    quantized = pt2e(is_per_channel=True)(model, (images(size, seed=5),))
    program = pumice.export(quantized, (x,))
    ops = pumice.inspect(bytes(program))["methods"][0]["ops"]
    names = [op["name"] for op in ops]
    assert (names.count("quantize"), names.count("dequantize"), names[-1]) == (1, 1, "dequantize")
    inside = ops[names.index("quantize") : -1]
    assert {value["dtype"] for op in inside for value in op["outputs"]} == {"i8"}
    *integers, got = pumice.load(bytes(pumice.export(WithIntegers(quantized), (x,))))(x)
    follow(quantized, x, integers, got)
    assert got.argmax() == quantized(x).argmax()
    assert torch.equal(pumice.load(bytes(program))(x), got), "what is looked at is not what runs"


def test_small_fp32() -> None:
    check("ResNet-18", torch.float32, 64)


def test_small_fp16() -> None:
    check("MobileNetV2", torch.float16, 64)


def test_small_int8() -> None:
    check_int8("MobileNetV2", 64)


@pytest.mark.large
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("name", NETWORKS)
def test_floats(name: str, dtype: torch.dtype) -> None:
    check(name, dtype, 224)


@pytest.mark.large
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", INT8)
def test_int8(name: str) -> None:
    check_int8(name, 224)
