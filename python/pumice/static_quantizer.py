# SPDX-License-Identifier: Apache-2.0
"""pumice.quantize(model, "static8", calibration=...): PT2E in one call, convolutions included."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from pumice.errors import Error, InvalidInputError
from pumice.lowering.capture import capture
from pumice.quantize_summary import QuantizedLayer, QuantizeSummary

Calibration = Iterable[torch.Tensor | tuple[Any, ...]]


def static8(
    module: nn.Module,
    calibration: Calibration | None,
    dynamic_shapes: Any = None,
    summary: Callable[[QuantizeSummary], Any] | None = None,
) -> nn.Module:
    """A module that computes in int8 from end to end; `module` stays as it is. Weights have a scale for each channel.

    calibration: batches that the model will see, each its tensor or a tuple of its arguments; ranges of activations
    come from them. The first one is the example of torch.export, with its `dynamic_shapes`.
    summary: called with what became of each layer.
    Raises InvalidInputError for calibration that is missing or does not fit, UnsupportedError for a module that
    torch.export cannot capture.
    """
    try:
        from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
            XNNPACKQuantizer,
            get_symmetric_quantization_config,
        )
    except ModuleNotFoundError as error:
        what = "its quantizer of convolutions and linear layers is the one that 'static8' uses"
        raise Error(
            f"'static8' needs {error.name}: pip install 'pumice[executorch]' ({what})", code="MissingPackage"
        ) from None
    from torchao.quantization.pt2e import allow_exported_model_train_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    batches = _batches(calibration)
    if module.training:
        text = "the model is in training mode: call model.eval() before it is quantized"
        raise InvalidInputError(text, code="InvalidArgument", path="module")
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of torchao's own parts, which it has replaced
        captured = capture(module, batches[0], {}, dynamic_shapes, strict=False)
        prepared = prepare_pt2e(captured.module(), quantizer)
        for number, batch in enumerate(batches):
            try:
                prepared(*batch)
            except Exception as error:
                text = f"calibration batch {number} does not run; where sizes differ, give dynamic_shapes: {error}"
                raise InvalidInputError(text, code="InvalidArgument", path="calibration") from error
        converted = convert_pt2e(prepared)
    if not any("quantize_per" in str(node.target) for node in converted.graph.nodes):
        text = f"nothing to quantize in {type(module).__name__}: it has no convolution, linear layer or sum"
        raise InvalidInputError(text, code="InvalidArgument", path="module")
    if summary is not None:
        summary(_summary(module, converted))
    return allow_exported_model_train_eval(converted)


def _summary(module: nn.Module, converted: torch.fx.GraphModule) -> QuantizeSummary:
    """What became of each convolution and linear layer. A layer of int8 has a scale (f32) and a zero point
    (int8) for each channel."""
    scales: dict[str, int] = {}  # how many
    for node in converted.graph.nodes:
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        weights = [each for each in node.all_input_nodes if "dequantize_per_channel" in str(each.target)]
        if stack and weights:
            scales[stack[-1][0]] = operator.attrgetter(weights[0].args[1].target)(converted).numel()
    made, counted = QuantizeSummary(), set[int]()
    for name, layer in module.named_modules():
        if not isinstance(layer, nn.Linear | nn.modules.conv._ConvNd):
            continue
        counted.update(map(id, layer.parameters(recurse=False)))
        bias = 0 if layer.bias is None else layer.bias.numel() * layer.bias.element_size()
        before = layer.weight.numel() * layer.weight.element_size() + bias
        if name in scales:
            became, note, after = "static8", "", layer.weight.numel() + 5 * scales[name] + bias
        else:
            became, note, after = _dtype(layer), "the quantizer leaves it in floats", before
        made.layers.append(QuantizedLayer(name, type(layer).__name__, became, before, after, note))
    rest = [tensor for tensor in [*module.parameters(), *module.buffers()] if id(tensor) not in counted]
    if size := sum(tensor.numel() * tensor.element_size() for tensor in rest):
        made.layers.append(QuantizedLayer("everything else", "", "", size, size, "less what is folded: batch norms"))
    return made


def _dtype(layer: nn.Module) -> str:
    return str(layer.weight.dtype).removeprefix("torch.")


def _batches(calibration: Calibration | None) -> list[tuple[Any, ...]]:
    """The arguments of each call. A tensor alone is no list of batches: its rows would be taken for them."""
    if (
        calibration is not None
        and not isinstance(calibration, torch.Tensor | str)
        and isinstance(calibration, Iterable)
    ):
        batches = [batch if isinstance(batch, tuple) else (batch,) for batch in calibration]
        wrong = [type(batch[0]).__name__ for batch in batches if len(batch) == 1 and isinstance(batch[0], list | str)]
        if batches and not wrong:
            return batches
        given = f"a batch of type {wrong[0]}" if wrong else "no batch"
    else:
        given = type(calibration).__name__
    text = "'static8' needs calibration=[...]: batches of what the model will see, tensors or tuples of arguments"
    raise InvalidInputError(f"{text}; got {given}", code="InvalidArgument", path="calibration")
