# SPDX-License-Identifier: Apache-2.0
"""Recipes for executorch.export: quantize, partition and lower for Pumice in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.export import (
    AOQuantizationConfig,
    BackendRecipeProvider,
    ExportRecipe,
    LoweringRecipe,
    QuantizationRecipe,
    RecipeType,
    recipe_registry,
)
from torch.export import ExportedProgram

from pumice.errors import InvalidInputError, require
from pumice.executorch.partitioner import PumicePartitioner
from pumice.quantizer import INT4_SCHEMES, scheme_config, takes_groups


class PumiceRecipeType(RecipeType):
    """`executorch.export.export(model, [args], ExportRecipe.get_recipe(PumiceRecipeType.X, **options))`.

    Options of all: `options`, those of PumicePartitioner; of the int4 ones also `group_size` (32).
    """

    FP32 = "pumice_fp32"  # the model as it is
    FP16 = "pumice_fp16"  # a model after .half(): parameters in fp32 are refused
    INT4_WEIGHT_ONLY = "pumice_int4"  # pumice.quantize(model, "int4")
    INT8_DYNAMIC_INT4_WEIGHT = "pumice_8da4w"  # pumice.quantize(model, "8da4w")
    INT8_STATIC = "pumice_int8_static"  # PT2E, weights by channel, calibrated with the example inputs

    @classmethod
    def get_backend_name(cls) -> str:
        return "pumice"


_SCHEMES = {PumiceRecipeType.INT4_WEIGHT_ONLY: "int4", PumiceRecipeType.INT8_DYNAMIC_INT4_WEIGHT: "8da4w"}


class PumiceRecipeProvider(BackendRecipeProvider):
    """What ExportRecipe.get_recipe finds under the name "pumice"."""

    @property
    def backend_name(self) -> str:
        return PumiceRecipeType.get_backend_name()

    def get_supported_recipes(self) -> Sequence[RecipeType]:
        return list(PumiceRecipeType)

    def create_recipe(self, recipe_type: RecipeType, **kwargs: Any) -> ExportRecipe | None:
        if recipe_type not in self.get_supported_recipes():
            return None
        scheme = _SCHEMES.get(recipe_type, "")
        for name in kwargs:
            require(name, ("options", "group_size") if scheme in INT4_SCHEMES else ("options",), "recipe option")
        return ExportRecipe(
            name=recipe_type.value,
            quantization_recipe=_quantization(recipe_type, scheme, kwargs.get("group_size", 32)),
            aten_transform_passes=[_refuse_fp32] if recipe_type is PumiceRecipeType.FP16 else None,
            lowering_recipe=LoweringRecipe(partitioners=[PumicePartitioner(kwargs.get("options"))]),
        )


def _quantization(recipe: RecipeType, scheme: str, group_size: int) -> QuantizationRecipe | None:
    if scheme:
        config = AOQuantizationConfig(
            scheme_config(scheme, group_size), lambda layer, name: takes_groups(layer, name, group_size)
        )
        return QuantizationRecipe(ao_quantization_configs=[config])
    if recipe is PumiceRecipeType.INT8_STATIC:
        config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=False)
        return QuantizationRecipe(quantizers=[XNNPACKQuantizer().set_global(config)])
    return None


def _refuse_fp32(method: str, program: ExportedProgram) -> ExportedProgram:
    for name, value in program.state_dict.items():
        if value.dtype == torch.float32:
            text = f"{name} of {method} is float32: call .half() on the model, or take PumiceRecipeType.FP32"
            raise InvalidInputError(text, code="InvalidArgument", stage="export", path=name)
    return program


recipe_registry.register_backend_recipe_provider(PumiceRecipeProvider())
