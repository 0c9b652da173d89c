# SPDX-License-Identifier: Apache-2.0
"""Image models of transformers, compiled: all of them on the device, in one graph."""

from __future__ import annotations

import pytest
from support.budget import MODEL
from support.compiled import Beside
from support.vision import images, network


@pytest.mark.parametrize("name", ["ResNet-18", "ConvNeXt-tiny"])
def test_an_image_model(name) -> None:
    beside = Beside(network(name))
    beside.call(images(64), budget=MODEL)
    assert beside.compiled.report.all_on_device, str(beside.compiled.report)
