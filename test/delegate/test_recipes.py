# SPDX-License-Identifier: Apache-2.0
"""executorch.export with the recipes of Pumice, run by ExecuTorch's Python runtime."""

from __future__ import annotations

import pytest
import torch
from executorch.export import ExportRecipe, export
from executorch.runtime import Runtime
from support import cpp_host
from torch import nn

import pumice
from pumice.executorch import PumiceRecipeType

DTYPES = {PumiceRecipeType.FP16: torch.float16}
# Of the largest output. fp16: two layers of 2^-11. Quantized activations: an integer may round the other way (1 / 255).
TOLERANCE = {
    PumiceRecipeType.FP16: 2e-3,
    PumiceRecipeType.INT8_DYNAMIC_INT4_WEIGHT: 1e-2,
    PumiceRecipeType.INT8_STATIC: 1e-2,
}


def model(recipe: PumiceRecipeType) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10)).eval().to(DTYPES.get(recipe, torch.float32))


@pytest.mark.parametrize("recipe", list(PumiceRecipeType), ids=lambda recipe: recipe.value)
def test_recipes(tmp_path, recipe) -> None:
    x = torch.randn(5, 64).to(DTYPES.get(recipe, torch.float32))
    session = export(model(recipe), [(x,)], ExportRecipe.get_recipe(recipe, options={"strict": True}))
    path = tmp_path / "m.pte"
    session.save_to_pte(str(path))
    program = Runtime.get().load_program(path)
    got = program.load_method("forward").execute([x])[0]
    want = session.get_exported_program().module()(x)
    limit = TOLERANCE.get(recipe, 1e-5) * want.abs().max()
    assert (got - want).abs().max() <= limit
    ((other,),) = cpp_host.run(path, [(x,)], [x.dtype])
    assert torch.equal(other, got)


def test_group_size() -> None:
    x = torch.randn(5, 64)
    recipe = ExportRecipe.get_recipe(PumiceRecipeType.INT4_WEIGHT_ONLY, group_size=16)
    got = export(model(PumiceRecipeType.FP32), [(x,)], recipe).get_exported_program().module()(x)
    want = [pumice.quantize(model(PumiceRecipeType.FP32), "int4", size)(x) for size in (16, 32)]
    assert torch.equal(got, want[0]) and not torch.equal(got, want[1])


def test_bad_options() -> None:
    with pytest.raises(pumice.Error, match="group_siz") as caught:
        ExportRecipe.get_recipe(PumiceRecipeType.INT4_WEIGHT_ONLY, group_siz=16)
    assert "group_size" in str(caught.value)
    for bad in (0, "32", True):
        with pytest.raises(pumice.Error, match="group_size must be a positive integer"):
            ExportRecipe.get_recipe(PumiceRecipeType.INT4_WEIGHT_ONLY, group_size=bad)
    with pytest.raises(pumice.Error, match="layer '0' has 64 inputs, which groups of 48 do not divide"):
        recipe = ExportRecipe.get_recipe(PumiceRecipeType.INT8_DYNAMIC_INT4_WEIGHT, group_size=48)
        export(model(PumiceRecipeType.FP32), [(torch.randn(5, 64),)], recipe)
    with pytest.raises(pumice.Error, match=r"float32: call \.half"):
        export(model(PumiceRecipeType.FP32), [(torch.randn(5, 64),)], ExportRecipe.get_recipe(PumiceRecipeType.FP16))
