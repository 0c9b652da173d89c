# SPDX-License-Identifier: Apache-2.0
"""Test modules that import a package which is not installed: their tests are listed by name and skipped."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch


def missing(path: Path) -> str:
    """The first package of another project that the module imports and that is not here, or empty."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in (name.partition(".")[0] for name in names):
            if importlib.util.find_spec(name) is None:
                return name
            if name == "torchvision":
                _import_torchvision()
    return ""


def _import_torchvision() -> None:
    """PyPI's has its C++ operators for CUDA only; no model of the suite uses one, but its import describes two."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:  # "operator torchvision::nms does not exist"
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


class AbsentTest(pytest.Item):
    package = ""

    def runtest(self) -> None:
        pytest.skip(f"{self.package} is not installed")


class Absent(pytest.File):
    package = ""

    @classmethod
    def from_parent(cls, parent: Any, *, package: str = "", **kwargs: Any) -> Absent:
        file = super().from_parent(parent, **kwargs)
        file.package = package
        return file

    def collect(self) -> Iterator[AbsentTest]:
        for node in ast.parse(self.path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                item = AbsentTest.from_parent(self, name=node.name)
                item.package = self.package
                yield item
