# SPDX-License-Identifier: Apache-2.0
"""Every quantization scheme that a model may come in, and the operators it is expected to become."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.pt2e import allow_exported_model_train_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.quant_primitives import MappingType

SYMMETRIC, ASYMMETRIC = MappingType.SYMMETRIC, MappingType.ASYMMETRIC
NO_CLIPPING = MappingType.SYMMETRIC_NO_CLIPPING_ERR
WIDTH = 64


@dataclass(frozen=True)
class Scheme:
    """`quantize` takes a float module and its inputs and returns the quantized module; `ops` of a model of layers() in
    any order."""

    name: str
    quantize: Callable[[nn.Module, tuple[torch.Tensor, ...]], nn.Module]
    ops: dict[str, int]
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.float16)

    def __str__(self) -> str:
        return self.name


def layers(dtype: torch.dtype = torch.float32) -> nn.Module:
    """Two linear layers and what is fused into the first."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, 48), nn.ReLU(), nn.Linear(48, 20, bias=False)).to(dtype).eval()


def inputs(dtype: torch.dtype = torch.float32, rows: int = 5) -> tuple[torch.Tensor]:
    return (torch.randn(2, rows, WIDTH, generator=torch.Generator().manual_seed(rows)).to(dtype),)


def torchao(config: Any) -> Callable[..., nn.Module]:
    def quantize(module: nn.Module, _: Any) -> nn.Module:
        quantize_(module, config)
        return module.eval()

    return quantize


def pt2e(**options: Any) -> Callable[..., nn.Module]:
    """ExecuTorch's XNNPACKQuantizer, calibrated with the inputs."""

    def quantize(module: nn.Module, args: tuple[torch.Tensor, ...]) -> nn.Module:
        from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
            XNNPACKQuantizer,
            get_symmetric_quantization_config,
        )

        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options))
        prepared = prepare_pt2e(torch.export.export(module, args).module(), quantizer)
        prepared(*args)
        return allow_exported_model_train_eval(convert_pt2e(prepared))

    return quantize


def weight_only(bits: torch.dtype, granularity: Any, mapping: MappingType) -> Callable[..., nn.Module]:
    return torchao(IntxWeightOnlyConfig(weight_dtype=bits, granularity=granularity, mapping_type=mapping))


def dynamic(bits: torch.dtype, granularity: Any, mapping: MappingType) -> Callable[..., nn.Module]:
    return torchao(
        Int8DynamicActivationIntxWeightConfig(
            weight_dtype=bits, weight_granularity=granularity, weight_mapping_type=mapping
        )
    )


_MAPPINGS = {"symmetric": SYMMETRIC, "asymmetric": ASYMMETRIC, "no clipping": NO_CLIPPING}
_FLOAT32 = (torch.float32,)
SCHEMES = [
    *(
        Scheme(f"int{bits} {kind} {name}", make(dtype, granularity, mapping), {f"linear_{prefix}{op}": 2})
        for kind, make, prefix in (("weights", weight_only, ""), ("weights, int8 activations", dynamic, "dq8ca_"))
        for name, mapping in _MAPPINGS.items()
        for bits, dtype, granularity, op in (
            (4, torch.int4, PerGroup(16), "q4gsw"),
            (4, torch.int4, PerAxis(0), "q4gsw"),
            (8, torch.int8, PerAxis(0), "q8csw"),
            (8, torch.int8, PerGroup(16), "q8gsw"),
        )
    ),
    Scheme("int3 by group", weight_only(torch.int3, PerGroup(16), SYMMETRIC), {"linear_q4gsw": 2}),
    Scheme("int6 by group", weight_only(torch.int6, PerGroup(16), ASYMMETRIC), {"linear_q8gsw": 2}),
    Scheme("torchao Int8 weights", torchao(Int8WeightOnlyConfig()), {"linear_q8csw": 2}),
    Scheme(
        "torchao Int8 weights by group",
        torchao(Int8WeightOnlyConfig(granularity=PerGroup(16))),
        {"linear_q8gsw": 2},
    ),
    Scheme(
        "torchao Int8 weights and activations",
        torchao(Int8DynamicActivationInt8WeightConfig()),
        {"linear_dq8ca_q8csw": 2},
    ),
    Scheme(
        "torchao Int8 weights, asymmetric activations",
        torchao(Int8DynamicActivationInt8WeightConfig(act_mapping_type=ASYMMETRIC)),
        {"linear_dq8ca_q8csw": 2},
        _FLOAT32,
    ),
    Scheme("PT2E static", pt2e(), {"quantize": 1, "q8ta_linear": 2, "dequantize": 1}, _FLOAT32),
    Scheme(
        "PT2E static by channel",
        pt2e(is_per_channel=True),
        {"quantize": 1, "q8ta_linear": 2, "dequantize": 1},
        _FLOAT32,
    ),
    Scheme("PT2E dynamic", pt2e(is_dynamic=True), {"linear_dq8ca_q8csw": 2}, _FLOAT32),
    Scheme("PT2E dynamic by channel", pt2e(is_dynamic=True, is_per_channel=True), {"linear_dq8ca_q8csw": 2}, _FLOAT32),
]


def cases() -> list[tuple[Scheme, torch.dtype]]:
    return [(scheme, dtype) for scheme in SCHEMES for dtype in scheme.dtypes]
