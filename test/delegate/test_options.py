# SPDX-License-Identifier: Apache-2.0
"""Options of the process (set_option, get_option) and of one load, as a C++ host gives them."""

from __future__ import annotations

import pytest
from support.cpp_host import driver, needs_driver
from support.lowered import Lowered, noise
from torch import nn

OK, INVALID, NOT_FOUND, NOT_SUPPORTED = "0x0", "0x12", "0x20", "0x10"
pytestmark = needs_driver


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory) -> Lowered:
    """A program whose compile spec names a device that is not there."""
    return Lowered(tmp_path_factory.mktemp("nowhere"), nn.ReLU(), (noise(2, 3),), {"device": "no such device"})


def codes(lowered: Lowered, *steps: str) -> list[str]:
    return driver("options", lowered.path, *steps).splitlines()


def test_what_is_said_later_wins(nowhere) -> None:
    here, there = "device=text:llvmpipe", "device=text:nothing of that name"
    assert codes(nowhere, "load:", f"load:{here}") == [NOT_SUPPORTED, OK]
    assert codes(nowhere, f"set:{here}", "load:", f"load:{there}") == [OK, OK, NOT_SUPPORTED]
    assert codes(nowhere, f"set:{there}", "load:", f"load:{here}") == [OK, NOT_SUPPORTED, OK]


def test_options_are_read_back(nowhere) -> None:
    steps = ["get:profile", "get:device", "set:profile=false,cache_dir=text:off", "get:profile", "get:cache_dir"]
    assert codes(nowhere, *steps) == [f"{OK} true", f"{OK} text:", OK, f"{OK} false", f"{OK} text:off"]


@pytest.mark.parametrize(
    "bad", ["devise=text:x", "device=1", "device=true", "profile=1", "profile=text:yes", f"cache_dir=text:{'x' * 255}"]
)
def test_unknown_keys_and_wrong_types_are_refused(nowhere, bad) -> None:
    """A call with one bad option sets none of its options."""
    want = [INVALID, INVALID, f"{OK} text:"]
    assert codes(nowhere, f"set:features=text:none,{bad}", f"load:device=text:llvmpipe,{bad}", "get:features") == want


def test_features_are_those_of_the_device(nowhere) -> None:
    here = "load:device=text:llvmpipe,features=text:"
    assert codes(nowhere, f"{here}none", f"{here}+wings", "get:wings") == [OK, INVALID, NOT_FOUND]
