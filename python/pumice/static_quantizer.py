# SPDX-License-Identifier: Apache-2.0
"""pumice.quantize(model, "static8", calibration=...): PT2E in one call, convolutions included."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from pumice.errors import Error, InvalidInputError
from pumice.lowering.capture import capture

Calibration = Iterable[torch.Tensor | tuple[Any, ...]]


def static8(module: nn.Module, calibration: Calibration | None, dynamic_shapes: Any = None) -> nn.Module:
    """A module that computes in int8 from end to end; `module` stays as it is. Weights have a scale for each channel.

    calibration: batches that the model will see, each its tensor or a tuple of its arguments; ranges of activations
    come from them. The first one is the example of torch.export, with its `dynamic_shapes`.
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
    return allow_exported_model_train_eval(converted)


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
