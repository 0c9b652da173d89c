# SPDX-License-Identifier: Apache-2.0
"""ExportOptions(storage=...): what may be chosen, what the report and the memory plan say, and refusals by name."""

from __future__ import annotations

import pytest
import torch
from support.quantized import check_linear
from support.textures import TEXTURE, Apply, Mixed, layer

import pumice
from pumice.format import ir

ao = torch.ops.torchao


def storages(program: pumice.Program) -> dict[str, str]:
    values = pumice.inspect(bytes(program))["methods"][0]["plan"]["values"]
    return {value["name"] or str(index): value["storage"] for index, value in enumerate(values)}


def storable(program: pumice.Program) -> set[str]:
    """Names of what is in a texture, as a choice may name them."""
    values = pumice.inspect(bytes(program))["methods"][0]["plan"]["values"]
    given = {v["name"] for v in values if v["kind"] in ("input", "constant") and v["storage"] != "buffer"}
    return given | {row.node for row in program.report.rows if row.storage}


def test_chosen_for_each_value() -> None:
    module, x = Mixed().eval(), torch.randn(5, 33)
    want = pumice.load(bytes(pumice.export(module, (x,))))(x)
    for storage in (
        {"linear": "texture"},
        {"first.weight": "texture"},
        {"x": "texture", "linear_1": "texture", "second.weight": "texture"},
        lambda value: "texture" if value.kind == "weight" and value.shape[0] == 70 else "buffer",
    ):
        program = pumice.export(module, (x,), options={"storage": storage})
        assert "texture" in " ".join(storages(program).values()) and "buffer" in storages(program).values()
        assert any("textures" in note for note in program.report.notes)
        for got, expected in zip(pumice.load(bytes(program))(x), want, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    program = pumice.export(module, (x,), options={"storage": {"x": "texture", "linear": "texture"}})
    assert pumice.load(bytes(program)).inputs[0].storage == "texture3d"
    assert "texture3d" in str(pumice.load(bytes(program)).inputs[0])
    row = next(row for row in program.report.rows if row.node == "linear")
    assert row.storage == "texture3d" and "texture3d" in str(program.report)
    assert storages(pumice.export(module, (x,)))["x"] == "buffer"


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("textures", "did you mean 'texture'"),
        ({"linaer": "texture"}, "did you mean 'linear'"),
        ({"linear": "image"}, "unknown storage of 'linear'"),
        ({"transpose": "texture"}, "no operator that reads or writes 'transpose' takes a texture"),
        pytest.param(lambda value: "image", "unknown storage of", id="a function"),
        (7, "a word, a mapping or a function"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(storage, message) -> None:
    with pytest.raises(pumice.Error, match=message):
        pumice.export(Mixed().eval(), (torch.randn(5, 33),), options={"storage": storage})


class Several(torch.nn.Module):
    """Inputs, results between and at the end, a residual, weights: each of them in a texture alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(9, 7), torch.nn.Linear(7, 7)

    def forward(self, x: torch.Tensor, other: torch.Tensor):
        hidden = torch.abs(self.first(x))
        scale, zero = ao.choose_qparams_affine(hidden, *HOW)
        q = ao.quantize_affine(hidden, [1, 7], scale, zero, torch.int8, -128, 127)
        return ao.dequantize_affine(q, [1, 7], scale, zero, torch.int8, -128, 127), self.second(hidden) + other


HOW = ("ASYMMETRIC", [1, 7], torch.int8, -128, 127, 1e-5, torch.float32, torch.int32)


def test_any_one_value() -> None:
    """What the exporter takes as a choice, the runtime takes, too."""
    torch.manual_seed(0)
    module, inputs = Several().eval(), (torch.randn(3, 9), torch.randn(3, 7))
    names = storable(pumice.export(module, inputs, options=TEXTURE))
    assert names >= {"x", "other", "first.weight", "second.weight", "abs_1", "quantize_affine"}
    for name in names:
        program = pumice.export(module, inputs, options={"storage": {name: "texture"}})
        assert name in storable(program)
        for got, want in zip(pumice.load(bytes(program))(*inputs), module(*inputs), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_the_report_says_what_stays_a_buffer() -> None:
    module, x = Mixed().eval(), torch.randn(5, 33)
    notes = "\n".join(pumice.export(module, (x,), options=TEXTURE).report.notes)
    assert "values and 2 weights are textures" in notes
    assert "stay buffers, no operator that reads or writes them takes textures" in notes and "transpose" in notes
    assert "storage" not in "\n".join(pumice.export(module, (x,)).report.notes)
    tall = torch.randn(2049, 4)
    program = pumice.export(Apply(torch.abs), (tall,), options=TEXTURE)
    assert any("2 stay buffers, larger than textures of many devices: x, abs" in note for note in program.report.notes)
    assert set(storages(program).values()) == {"buffer"}
    assert torch.equal(pumice.load(bytes(program))(tall), tall.abs())
    wide = torch.randn(2048, 3)
    program = pumice.export(Apply(torch.abs), (wide,), options=TEXTURE)
    assert set(storages(program).values()) == {"texture3d"} and torch.equal(
        pumice.load(bytes(program))(wide), wide.abs()
    )


def changed(program: pumice.Program, find, storage: ir.Storage) -> bytes:
    method = program.ir.methods[0]
    (value,) = [value for index, value in enumerate(method.values) if find(method, index)]
    value.storage = storage
    return bytes(program)


NO_TEXTURE = {
    "input": (lambda method, index: index == method.inputs[0], ir.Storage.texture3d),
    "output": (lambda method, index: index == method.outputs[0], ir.Storage.texture3d),
    "between": (lambda method, index: method.values[index].kind is ir.ValueKind.scratch, ir.Storage.texture3d),
    "constant": (lambda method, index: method.values[index].kind is ir.ValueKind.constant, ir.Storage.texture2d),
}


@pytest.mark.parametrize("where", NO_TEXTURE)
def test_a_file_that_asks_for_what_no_operator_has_is_refused(where) -> None:
    class Softmax(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("add", torch.randn(7))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x, -1) + self.add

    program = pumice.export(Softmax(), (torch.randn(3, 7),))
    find, storage = NO_TEXTURE[where]
    data = changed(program, find, storage)
    for refuse in (lambda: pumice.load(data), lambda: pumice.inspect(data)):
        with pytest.raises(pumice.InvalidFileError, match=f"no operator .* takes a {storage.name}") as caught:
            refuse()
        assert caught.value.code == "BadSchema" and ".storage" in caught.value.path


def test_the_memory_plan_shows_images() -> None:
    program = pumice.export(Apply(torch.abs), (torch.randn(5, 7),), options=TEXTURE)
    plan = pumice.inspect(bytes(program))["methods"][0]["plan"]
    assert plan["images"] == [{"width": 2, "height": 5, "depth": 1, "bytes": 160}] * 2
    assert [value["image"] for value in plan["values"]] == [0, 1]
    session = pumice.load(bytes(program))
    session(torch.randn(5, 7))
    assert session.memory["textures"] >= 320


def test_limits_are_named() -> None:
    module, x = layer("q4", 64, 64), torch.randn(40, 64)
    data = bytes(pumice.export(module, (x,), options=TEXTURE))
    for features, texts in {
        "max_image_3d=39": ("f32[40, 64]", "16 x 40 x 1 texels", "at most 39", "maxImageDimension3D"),
        "max_image_2d=127": ("weight", "texture2d of 128 x 1", "at most 127", "maxImageDimension2D"),
    }.items():
        with pytest.raises(pumice.DeviceError) as caught:
            pumice.load(data, features=features)
        assert caught.value.code == "DeviceUnsupported"
        assert all(text in str(caught.value) for text in texts), str(caught.value)
        check_linear(pumice.load(data, features=f"{features},storage=buffers")(x), x, module)


def test_dynamic_sizes_are_refused_when_they_come() -> None:
    dims = ({0: torch.export.Dim("m", min=1, max=64)},)
    module = layer("float", 8, 8)
    session = pumice.load(
        bytes(pumice.export(module, (torch.zeros(3, 8),), dynamic_shapes=dims, options=TEXTURE)),
        features="max_image_3d=20",
    )
    with pytest.raises(pumice.Error, match="2 x 21 x 1 texels; this device has at most 20"):
        session(torch.zeros(21, 8))
    assert session(torch.zeros(20, 8)).shape == (20, 8)
