# SPDX-License-Identifier: Apache-2.0
"""The flows of the suite that quantize: PT2E as its own flows for XNNPACK do it, and torchao's quantize_ of linear
layers. Each has the test modules in which there is something to quantize."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from executorch.backends.test.harness.stages import Quantize
from executorch.backends.test.harness.stages.quantize import Quantize_
from executorch.backends.test.suite.flow import TestFlow
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)

from pumice.quantizer import INT4_SCHEMES, scheme_config

GROUP = 32
_LAYERS = "linear conv1d conv2d conv3d convtranspose1d convtranspose2d convtranspose3d"
STATIC = {f"test_{name}" for name in f"{_LAYERS} adaptive_avgpool2d add mul cat".split()}
DYNAMIC = {f"test_{name}" for name in _LAYERS.split()}
LINEAR = {"test_linear"}
MODELS = {"pumice_static8": ("test_mobilenet_v2", "test_resnet50"), "pumice_8da4w": ("test_alexnet",)}


class Torchao(Quantize_):
    """A copy of the module: the suite compares with what it was given again."""

    def run(self, artifact: torch.nn.Module, inputs: Any) -> None:
        super().run(copy.deepcopy(artifact), inputs)


def pt2e(**options: bool) -> Callable[[], Quantize]:
    return lambda: Quantize(XNNPACKQuantizer(), get_symmetric_quantization_config(**options))


def torchao(scheme: str) -> Callable[[], Torchao]:
    def fits(layer: torch.nn.Module, name: str) -> bool:
        return isinstance(layer, torch.nn.Linear) and (scheme not in INT4_SCHEMES or layer.in_features % GROUP == 0)

    return lambda: Torchao(scheme_config(scheme, GROUP), fits)


@dataclass(frozen=True)
class Quantized:
    """`files`: of the operators."""

    stage: Callable[[], Any]
    files: set[str]


FLOWS = {
    "pumice_static8": Quantized(pt2e(is_per_channel=True), STATIC),
    "pumice_static8_tensor": Quantized(pt2e(is_per_channel=False), STATIC),
    "pumice_dynamic8": Quantized(pt2e(is_per_channel=True, is_dynamic=True), DYNAMIC),
    **{f"pumice_{scheme}": Quantized(torchao(scheme), LINEAR) for scheme in ("int4", "int8", "8da4w", "8da8w")},
}


def flows(floats: TestFlow) -> dict[str, TestFlow]:
    """The one for floats, with a stage that quantizes before it."""
    made = {
        name: replace(floats, name=name, quantize=True, quantize_stage_factory=q.stage) for name, q in FLOWS.items()
    }
    return {floats.name: floats, **made}


def belongs(flow: str, file: str, test: str) -> bool:
    """Whether a flow runs a test: without quantization all."""
    if flow not in FLOWS:
        return True
    models = [test.startswith(f"{name}[") and "static_shapes" in test for name in MODELS.get(flow, ())]
    return file in FLOWS[flow].files or any(models)


def quantizes(graph: torch.fx.Graph) -> bool:
    """Whether an exported program has something quantized."""
    return any(getattr(node.target, "namespace", "") in ("quantized_decomposed", "torchao") for node in graph.nodes)
