# SPDX-License-Identifier: Apache-2.0
"""pumice.quantize: torchao's quantize_ in the configurations whose exported form Pumice recognises, layer by layer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from pumice.errors import InvalidInputError, require
from pumice.quantize_summary import INTEGERS, QuantizeSummary, summarize
from pumice.static_quantizer import Calibration, static8

if TYPE_CHECKING:
    from torchao.core.config import AOBaseConfig

SCHEMES = tuple(INTEGERS)
INT4_SCHEMES = tuple(scheme for scheme, integers in INTEGERS.items() if integers == "int4")
EMBEDDINGS = ("int4", "int8", "float")
_CONVOLUTION = "'static8' quantizes convolutions: docs/int8_cnn.md"
_CONVOLUTIONS = nn.modules.conv._ConvNd

Filter = Callable[[nn.Module, str], bool] | str | Sequence[str]


def quantize(
    module: nn.Module,
    scheme: str | Mapping[str, str],
    group_size: int = 32,
    *,
    filter: Filter | None = None,
    embeddings: str | None = None,
    skip_unfit: bool = False,
    summary: Callable[[QuantizeSummary], Any] | None = None,
    calibration: Calibration | None = None,
    dynamic_shapes: Any = None,
) -> nn.Module:
    """Quantizes the linear layers of `module` in place and returns it; static8 makes a new one, of convolutions, too.

    scheme: int4, weights in groups of `group_size` along the input; int8, one scale for each output channel;
    8da4w, 8da8w, the same weights, and activations quantized to int8 per token while running; static8, weights and
    activations of convolutions and linear layers in int8 from end to end, whose ranges come from `calibration`.
    A mapping of patterns of names gives each layer the scheme of the first pattern that fits; the others stay:
    {"*.mlp.*": "int4", "head": "int8"}. It cannot have static8.
    filter: which layers, as torchao's filter_fn (layer, name) -> bool, or as patterns of names: "encoder.*"; with
    "!" in front, such as "!head", those that are left out. Default: all. Call again for the others with another scheme.
    embeddings: int4, int8 or float. Default: an embedding that shares its weight with a quantized layer is quantized
    as that layer, and the file holds both once; all others stay floats.
    skip_unfit: a layer whose inputs the groups do not divide, or that is quantized already, stays as it is.
    summary: called with what became of each layer, and bytes before and after: summary=print.
    calibration, dynamic_shapes: of static8 alone. Batches, each a tensor or a tuple of arguments; the first is the
    example of torch.export, which gets dynamic_shapes.
    Raises InvalidInputError for an unknown scheme, a layer that does not fit, a filter that matches nothing, and a
    module without a layer to quantize. The module is then as it was.
    """
    if not isinstance(module, nn.Module):
        text = f"only a torch.nn.Module can be quantized, not {type(module).__name__}: quantize before torch.export"
        raise InvalidInputError(text, code="InvalidArgument", path="module")
    if scheme == "static8":
        if filter is not None or embeddings is not None or skip_unfit:
            text = "'static8' quantizes the whole model: leave out filter, embeddings and skip_unfit"
            raise InvalidInputError(text, code="InvalidArgument", path="scheme")
        with quiet_torchao():
            return static8(module, calibration, dynamic_shapes, summary)
    if calibration is not None or dynamic_shapes is not None:
        text = f"calibration and dynamic_shapes are for 'static8'; {scheme!r} needs neither"
        raise InvalidInputError(text, code="InvalidArgument", path="calibration")
    if embeddings is not None:
        require(embeddings, EMBEDDINGS, "quantization of embeddings")
    of_name = _schemes(module, scheme, group_size)
    chosen = _choose(module, of_name, group_size, _filter(filter), embeddings, skip_unfit)
    if not any(how for how, _ in chosen.values()):
        raise InvalidInputError(_nothing(module, chosen), code="InvalidArgument", path="module")
    with summarize(module, chosen) as made:
        _apply(module, {name: how for name, (how, _) in chosen.items() if how}, group_size)
    if summary is not None:
        summary(made)
    return module


Chosen = dict[str, tuple[str, str]]  # name of a layer -> (its scheme or "", why it has none)


def _schemes(module: nn.Module, scheme: str | Mapping[str, str], group_size: int) -> Callable[[str], str]:
    """The scheme of a layer by its name, "" for none; checks everything before anything is changed."""
    mixed = isinstance(scheme, Mapping)
    known, patterns = (SCHEMES, dict(scheme)) if mixed else ((*SCHEMES, "static8"), {"*": scheme})
    for pattern, each in patterns.items():
        if not isinstance(pattern, str):
            text = f"a scheme is given to a pattern of names, such as 'encoder.*', not to {pattern!r}"
            raise InvalidInputError(text, code="InvalidArgument", path="scheme")
        require(each, known, f"quantization scheme of '{pattern}'" if pattern != "*" else "quantization scheme")
        scheme_config(each, group_size)
        layers = (name for name, layer in module.named_modules() if isinstance(layer, nn.Linear))
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in layers):
            text = f"no linear layer has a name like '{pattern}': names are those of model.named_modules()"
            raise InvalidInputError(text, code="InvalidArgument", path="scheme")
    return lambda name: next((each for pattern, each in patterns.items() if fnmatchcase(name, pattern)), "")


def _choose(
    module: nn.Module, of_name: Callable[[str], str], group_size: int, wanted: Callable[[nn.Module, str], bool],
    embeddings: str | None, skip_unfit: bool,
) -> Chosen:  # fmt: skip
    chosen: Chosen = {}
    layers = dict(module.named_modules())
    for name, layer in layers.items():
        if isinstance(layer, NonDynamicallyQuantizableLinear):
            chosen[name] = "", "MultiheadAttention reads its weight itself"
        elif isinstance(layer, nn.Linear):
            if not wanted(layer, name):
                chosen[name] = "", _LEFT
            elif how := of_name(name):
                chosen[name] = _fitting(layer, name, how, group_size, skip_unfit)
            else:
                chosen[name] = "", "no pattern of the schemes fits its name"
        elif isinstance(layer, _CONVOLUTIONS):
            chosen[name] = "", _CONVOLUTION
    of_weight = {id(layers[name].weight): how for name, (how, _) in chosen.items() if how}
    for name, layer in layers.items():
        if type(layer) is not nn.Embedding:
            continue
        tied = INTEGERS.get(of_weight.get(id(layer.weight), ""), "")
        how = {None: tied, "float": ""}.get(embeddings, embeddings or "")
        if not how:
            chosen[name] = "", "embeddings='int4' or 'int8' quantizes it" if embeddings is None else ""
        elif wanted(layer, name):
            chosen[name] = _fitting(layer, name, how, group_size, skip_unfit)
        else:
            chosen[name] = "", _LEFT
    return chosen


_LEFT = "left out by filter"


def _filter(given: Filter | None) -> Callable[[nn.Module, str], bool]:
    if given is None or callable(given):
        return given or (lambda _layer, _name: True)
    patterns = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple | set) else [None]
    if not all(isinstance(pattern, str) for pattern in patterns):
        text = f"filter must be a function (layer, name) -> bool or patterns of names, got {given!r}"
        raise InvalidInputError(text, code="InvalidArgument", path="filter")
    without = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    only = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    return lambda _layer, name: (
        any(fnmatchcase(name, p) for p in only) and not any(fnmatchcase(name, p) for p in without)
    )


def _fitting(layer: nn.Module, name: str, how: str, group_size: int, skip_unfit: bool) -> tuple[str, str]:
    """The scheme of a layer; where it does not fit the error, or the reason to leave the layer as it is."""
    columns, why = layer.weight.shape[-1], ""
    if type(layer.weight) not in (torch.Tensor, nn.Parameter):
        why = f"is quantized already ({type(layer.weight).__name__})"
    elif how in INT4_SCHEMES and columns % group_size:
        why = f"has {columns} inputs, which groups of {group_size} do not divide"
    if not why:
        return how, ""
    if skip_unfit:
        return "", why
    what = "quantize a model of floats" if "already" in why else "choose another group_size"
    text = f"layer '{name}' {why}: {what}, or leave the layer as it is with skip_unfit=True or filter='!{name}'"
    raise InvalidInputError(text, code="InvalidArgument", path=name)


def _nothing(module: nn.Module, chosen: Chosen) -> str:
    """Why there is no layer to quantize."""
    reasons = dict.fromkeys(why for _, why in chosen.values() if why)
    why = "; ".join(reasons) if reasons else "it has no torch.nn.Linear, which is what the schemes are for"
    return f"nothing to quantize in {type(module).__name__}: {why}"


def _apply(module: nn.Module, schemes: dict[str, str], group_size: int) -> None:
    with quiet_torchao():
        from torchao.quantization import quantize_

    for how in dict.fromkeys(schemes.values()):
        names = {name for name, each in schemes.items() if each == how}
        quantize_(module, scheme_config(how, group_size), lambda _, name, names=names: name in names)


def scheme_config(scheme: str, group_size: int = 32) -> AOBaseConfig:
    """torchao's configuration of one of SCHEMES."""
    if type(group_size) is not int or group_size < 1:
        text = f"group_size must be a positive integer, got {group_size!r}"
        raise InvalidInputError(text, code="InvalidArgument", path="group_size")
    with quiet_torchao():
        from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig
        from torchao.quantization.granularity import PerAxis, PerGroup

    int4 = scheme in INT4_SCHEMES
    dtype, granularity = (torch.int4, PerGroup(group_size)) if int4 else (torch.int8, PerAxis(0))
    if scheme.startswith("8da"):
        return Int8DynamicActivationIntxWeightConfig(weight_dtype=dtype, weight_granularity=granularity)
    return IntxWeightOnlyConfig(weight_dtype=dtype, granularity=granularity)


def takes_groups(layer: nn.Module, name: str, group_size: int) -> bool:
    """Whether a scheme of INT4_SCHEMES quantizes the layer, as torchao chooses; raises when its groups do not fit."""
    if not isinstance(layer, nn.Linear) or isinstance(layer, NonDynamicallyQuantizableLinear):
        return False
    return bool(_fitting(layer, name, "int4", group_size, skip_unfit=False)[0])


@contextmanager
def quiet_torchao() -> Iterator[None]:
    """Without what the first import of torchao says of kernels that it lacks: none of them matters to an export."""
    loggers = [logging.getLogger(name) for name in ("torchao", "torch.utils._pytree")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
