# SPDX-License-Identifier: Apache-2.0
"""pumice.quantize: which layers, what became of each, and the bytes that the file then has."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pumice

IDS = torch.randint(0, 96, (1, 5), generator=torch.Generator().manual_seed(0))


class Model(nn.Module):
    """An embedding with a head of the same weight, and a layer of 100 columns."""

    def __init__(self, tied: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.norm = nn.Embedding(96, 64), nn.LayerNorm(64)
        self.odd, self.back = nn.Linear(64, 100), nn.Linear(100, 64)
        self.head = nn.Linear(64, 96, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.back(self.odd(self.embed(ids)))))


def quantized(model: nn.Module, scheme: str = "int4", **how):
    found: list = []
    assert pumice.quantize(model, scheme, **how, summary=found.append) is model
    (summary,) = found
    return {layer.name: (layer.became, layer.note) for layer in summary.layers}, summary


@pytest.mark.parametrize("scheme", ["int4", "int8", "8da4w", "8da8w"])
@pytest.mark.parametrize("embeddings", [None, "float", "int4", "int8"])
def test_the_bytes_of_the_summary_are_those_of_the_file(scheme, embeddings) -> None:
    model = Model().eval()
    layers, summary = quantized(model, scheme, embeddings=embeddings, skip_unfit=True)
    program = pumice.export(model, (IDS,))
    assert sum(constant.size for constant in program.ir.constants) == summary.bytes_after
    assert summary.bytes_before == sum(4 * p.numel() for p in Model().parameters())
    same = embeddings is None or (embeddings[-1] == "4") == ("4" in scheme)
    shared = embeddings != "float" and same
    assert (layers["embed"][1] == "the weight of 'head'") == shared
    assert layers["embed"][0] == {"float": "float32", None: "int4" if "4" in scheme else "int8"}.get(
        embeddings, embeddings
    )
    torch.testing.assert_close(pumice.load(bytes(program))(IDS), model(IDS), rtol=2e-2, atol=2e-2)


def test_equal_weights_are_stored_once_however_they_were_made() -> None:
    model = Model(tied=False).eval()
    size = len(bytes(pumice.export(model, (IDS,))))
    with torch.no_grad():
        model.head.weight.copy_(model.embed.weight)  # a copy: another tensor
    program = pumice.export(model, (IDS,))
    assert size - len(bytes(program)) >= 4 * 96 * 64
    with torch.no_grad():
        model.head.weight[95, 63] += 1  # the last element decides, too
    assert len(bytes(pumice.export(model, (IDS,)))) == size
    assert torch.equal(pumice.load(bytes(program))(IDS), pumice.load(bytes(pumice.export(Model().eval(), (IDS,))))(IDS))


def test_filters() -> None:
    for wanted in ("head", ["head"], ["!odd", "!back"], lambda layer, name: name == "head"):
        layers, _ = quantized(Model(tied=False), filter=wanted)
        assert layers["head"][0] == "int4" and layers["odd"] == layers["back"] == ("float32", "left out by filter")
    mixed = Model().eval()
    quantized(mixed, "int4", filter="odd", embeddings="float")
    layers, summary = quantized(mixed, "int8", skip_unfit=True)  # the rest, in another scheme
    assert layers["odd"] == ("int4", "is quantized already (IntxUnpackedToInt8Tensor)")
    assert layers["back"][0] == layers["head"][0] == layers["embed"][0] == "int8"
    assert pumice.export(mixed, (IDS,)).report.operators.get("linear_q4gsw") == 1
    assert summary.bytes_after == sum(c.size for c in pumice.export(mixed, (IDS,)).ir.constants)


@pytest.mark.parametrize(
    ("make", "how", "message"),
    [
        (
            Model,
            {},
            r"layer 'back' has 100 inputs, which groups of 32 do not divide: choose another group_size, or leave",
        ),
        (lambda: pumice.quantize(nn.Sequential(nn.Linear(64, 8)), "int4"), {}, "'0' is quantized already"),
        (
            lambda: nn.Sequential(nn.Conv2d(3, 4, 3)),
            {},
            "nothing to quantize in Sequential: 'static8' quantizes convolutions.*int8_cnn",
        ),
        (nn.ReLU, {}, "nothing to quantize in ReLU: it has no torch.nn.Linear"),
        (Model, {"filter": "heda"}, "nothing to quantize in Model: left out by filter"),
        (Model, {"filter": 3}, "filter must be"),
        (Model, {"embeddings": "int44"}, "did you mean 'int4'"),
    ],
)
def test_what_is_refused_changes_nothing(make, how, message) -> None:
    model = make()
    before = {name: id(value) for name, value in model.named_parameters()}
    with pytest.raises(pumice.InvalidInputError, match=message):
        pumice.quantize(model, "int4", **how)
    assert {name: id(value) for name, value in model.named_parameters()} == before


def test_the_table_of_the_summary() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), *(nn.Linear(64, 64) for _ in range(3)), nn.LayerNorm(64))
    text = str(quantized(model)[1])
    rows = [line.split() for line in text.splitlines()]
    assert rows[1][:4] == ["0", "Conv2d", "1", "float32"] and "'static8' quantizes convolutions" in text
    assert rows[2] == ["*", "Linear", "3", "int4", "49.9", "kB", "8.8", "kB"]  # layers that differ by their number
    assert rows[-1][:5] == ["total", "51.3", "kB", "10.2", "kB"]


def test_schemes_by_patterns_of_names() -> None:
    model = Model(tied=False)
    layers, _ = quantized(model, {"head": "int8", "od*": "8da4w"})
    assert (layers["head"][0], layers["odd"][0]) == ("int8", "8da4w")
    assert layers["back"] == ("float32", "no pattern of the schemes fits its name")
    operators = pumice.export(model, (IDS,)).report.operators
    assert {"linear_q8csw", "linear_dq8ca_q4gsw", "linear"} <= set(operators)
    with pytest.raises(pumice.InvalidInputError, match="no linear layer has a name like 'haed'"):
        pumice.quantize(Model(), {"haed": "int8"})
    with pytest.raises(pumice.InvalidInputError, match="quantization scheme of 'head' 'int9'; did you mean"):
        pumice.quantize(Model(), {"head": "int9"})
    with pytest.raises(pumice.InvalidInputError, match="quantization scheme of 'head' 'static8'"):
        pumice.quantize(Model(), {"head": "static8"})
    with pytest.raises(pumice.InvalidInputError, match=r"pattern of names, .*, not to 3"):
        pumice.quantize(Model(), {3: "int4"})


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.out = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.conv(x)).mean((2, 3)))


def test_static8_takes_its_ranges_from_the_calibration() -> None:
    model, image = Small().eval(), torch.rand(1, 3, 8, 8)

    def first_scale(*batches) -> float:
        made = pumice.quantize(model, "static8", calibration=batches)
        assert made is not model and type(model.conv.weight) is nn.Parameter
        return next(node.args[1] for node in made.graph.nodes if "quantize_per_tensor" in str(node.target))

    assert first_scale(image) == pytest.approx(image.max().item() / 255, rel=0.01)
    assert first_scale(image, (4 * image,)) == pytest.approx(4 * image.max().item() / 255, rel=0.01)


def test_static8_says_what_became_of_each_layer_and_the_file_has_its_bytes() -> None:
    made, image = [], torch.rand(1, 3, 8, 8)
    quantized = pumice.quantize(Small().eval(), "static8", calibration=[image], summary=made.append)
    layers = {layer.name: layer for layer in made[0].layers}
    assert [(name, layer.became) for name, layer in layers.items()] == [("conv", "static8"), ("out", "static8")]
    module = Small()
    for name, layer in layers.items():
        assert layer.bytes_before == sum(p.numel() * 4 for p in module.get_submodule(name).parameters())
    constants = pumice.inspect(bytes(pumice.export(quantized, (image,))))["constants"]
    assert made[0].bytes_after == sum(constant["bytes"] for constant in constants)


@pytest.mark.parametrize(
    ("make", "how", "message"),
    [
        (Small, {"calibration": [torch.rand(1, 3, 8, 8)]}, "training mode: call model.eval"),
        (lambda: Small().eval(), {}, "needs calibration="),
        (
            lambda: Small().eval(),
            {"calibration": [torch.rand(1, 3, 8, 8), torch.rand(1, 2, 8, 8)]},
            "batch 1 does not run",
        ),
        (lambda: Small().eval(), {"calibration": [torch.rand(1, 3, 8, 8)], "filter": "conv"}, "leave out filter"),
        (lambda: nn.ReLU().eval(), {"calibration": [torch.rand(3)]}, "nothing to quantize in ReLU"),
        (lambda: Small().eval(), {"calibration": torch.rand(2, 3, 8, 8)}, "batches .* got Tensor"),
        (lambda: Small().eval(), {"calibration": [[torch.rand(1, 3, 8, 8)]]}, "got a batch of type list"),
    ],
    ids=["training", "no calibration", "another shape", "filter", "nothing", "a tensor alone", "a list in a list"],
)
def test_what_static8_refuses(make, how, message) -> None:
    with pytest.raises(pumice.InvalidInputError, match=message):
        pumice.quantize(make(), "static8", **how)


def test_static8_of_a_model_that_cannot_be_captured() -> None:
    class Branches(Small):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.conv(x) if x.sum() > 0 else x

    with pytest.raises(
        pumice.UnsupportedError, match=r"could not capture Branches: .*decides by the value of a tensor"
    ):
        pumice.quantize(Branches().eval(), "static8", calibration=[torch.rand(1, 3, 8, 8)])


def test_calibration_is_for_static8_alone() -> None:
    with pytest.raises(pumice.InvalidInputError, match="'int4' needs neither"):
        pumice.quantize(Model(), "int4", calibration=[IDS])
