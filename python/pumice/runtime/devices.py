# SPDX-License-Identifier: Apache-2.0
"""The Vulkan devices of this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pumice import _pumice


@dataclass(frozen=True)
class KernelTest:
    """What the self test found of a kernel: `result` is "right", "wrong" or "untested"; `wrong` says what."""

    kernel: str
    family: str  # "portable", "subgroups", "dot", "matrix", "fragments"
    result: str
    wrong: str


@dataclass(frozen=True)
class Device:
    """A Vulkan device. `features`: optional ones it has, but for those that a known bug of its driver switches off
    (`driver_bugs`: what is off, why, and the report); `kernels`: the kernel families they enable.

    Of a session, `features` are without those that the self test switched off, and `self_test` has what it found.
    """

    index: int
    name: str
    driver: str
    driver_version: str
    kind: str  # "discrete", "integrated", "virtual", "cpu", "other"
    api_version: str
    uuid: str
    memory_bytes: int
    features: tuple[str, ...]
    limits: dict[str, int]
    kernels: tuple[str, ...]
    driver_bugs: tuple[dict[str, str], ...]
    self_test: tuple[KernelTest, ...]

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dict, for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Device:
        """A device from what the runtime says about it."""
        lists = {name: tuple(facts[name]) for name in ("features", "kernels", "driver_bugs")}
        lists["self_test"] = tuple(KernelTest(**each) for each in facts["self_test"])
        return cls(**{name: facts[name] for name in cls.__dataclass_fields__ if name not in lists}, **lists)


def devices() -> list[Device]:
    """Every Vulkan device, CPU drivers included. See why_no_devices() when the list is empty."""
    return [Device.of(facts) for facts in json.loads(_pumice.devices())["devices"]]


def why_no_devices() -> str:
    """What was looked for when devices() is empty."""
    return json.loads(_pumice.devices())["why"]
