# SPDX-License-Identifier: Apache-2.0
"""pumice.compile and backend="pumice" beside eager PyTorch: what runs where, and what comes out."""

from __future__ import annotations

import copy
import json
import threading
import warnings

import numpy as np
import pytest
import torch
from support.budget import ATTENTION, EXACT, MATMUL, MODEL, NORM, QUANTIZED
from support.compiled import Beside, images, mlp, near, operators, rows
from support.decoder import Decoder
from torch import nn

import pumice
import pumice.dynamo


@pytest.mark.parametrize(
    ("scheme", "operator"), [(None, "linear"), ("int4", "linear_q4gsw"), ("8da4w", "linear_dq8ca_q4gsw")]
)
def test_sizes_change_and_weights_are_quantized(scheme, operator) -> None:
    model = mlp()
    if scheme:
        pumice.quantize(model, scheme, group_size=32)
    beside = Beside(model)
    for count in (3, 5, 7, 64, 2, 3):
        beside.call(rows(count), budget=QUANTIZED if scheme else MATMUL)
    report = beside.compiled.report
    assert report.all_on_device and operator in operators(beside.compiled)
    assert [graph.builds for graph in report.graphs] == [1, 1]  # of 3 rows, and of any number


def test_a_decoder_writes_its_caches() -> None:
    torch.manual_seed(0)
    beside = Beside(Decoder().eval())
    for step in range(4):
        beside.call(torch.tensor([[step + 3]]), torch.tensor([step]), budget=ATTENTION)
    assert beside.compiled.report.all_on_device


class Breaks(nn.Module):
    """Three graphs: TorchDynamo ends one where a value decides, and where a shape depends on values."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.first(x).relu()
        if x.sum() > 0:
            x = x + 1
        found = torch.nonzero(x[0] > 0)
        return self.second(x), found


def test_several_graphs() -> None:
    beside = Beside(Breaks().eval())
    for count in (3, 4, 5):
        beside.call(rows(count, 8), budget=MATMUL)
    report = beside.compiled.report
    assert report.all_on_device and len(report.graphs) >= 3
    assert all("test_compile.py:" in graph.where for graph in report.graphs)


class Svd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(3, 4)

    def forward(self, x):
        return self.second(torch.linalg.svd(self.first(x))[1].unsqueeze(0)).softmax(-1)


def test_what_has_no_operator_runs_in_eager_between_two_partitions() -> None:
    beside = Beside(Svd().eval())
    beside.call(rows(3, 8), budget=MODEL)
    (program,) = beside.compiled.report.graphs[0].programs
    (reason,) = program.reasons
    assert len(program.partitions) == 2 and "svd" in reason.target and "leave this step to the host" in reason.reason
    assert reason.source.code.startswith("return self.second(torch.linalg.svd")
    said = str(beside.compiled.report)
    assert "in eager, 1 node of aten." in said and "svd" in said and not beside.compiled.report.all_on_device
    assert json.loads(beside.compiled.report.to_json())["graphs"][0]["programs"][0]["partitions"] == program.partitions
    with pytest.raises(pumice.UnsupportedError, match="svd"):
        pumice.compile(Svd().eval(), strict=True)(rows(3, 8))
    few = Beside(Svd().eval(), min_operators=2)
    few.call(rows(3, 8), budget=MODEL)
    assert any("min_operators=2" in reason.reason for reason in few.compiled.report.graphs[0].programs[0].reasons)


# ---- training, gradients, random numbers -----------------------------------------------------------------------------


def test_gradients_are_for_eager() -> None:
    model, x = mlp(), rows(4)
    compiled = torch.compile(model, backend="pumice")
    with pytest.warns(UserWarning, match="no_grad"):
        compiled(x).sum().backward()
    want = copy.deepcopy(model)
    want.zero_grad()
    want(x).sum().backward()
    near(model[0].weight.grad, want[0].weight.grad, EXACT)
    graphs = pumice.dynamo.report().graphs[-1]
    assert sum(graphs.in_eager.values()) == 1 and "gradients" in str(graphs)
    with torch.no_grad():
        near(compiled(x), model(x), MATMUL)
    assert "linear" in {name for g in pumice.dynamo.report().graphs for p in g.programs for name in p.operators}


def test_an_argument_that_requires_a_gradient_is_refused() -> None:
    with pytest.raises(pumice.InvalidInputError, match=r"x\.detach\(\)"):
        pumice.compile(mlp())(rows(4).requires_grad_())


def test_a_model_in_training() -> None:
    torch.manual_seed(3)
    beside = Beside(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 3)).train())
    for seed in range(3):  # running statistics and the number of batches are compared, too
        beside.call(images(12, 2, seed), budget=NORM)
    assert beside.compiled.report.all_on_device


def test_random_numbers_are_those_of_pytorch() -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5), nn.Linear(64, 4)).train()
    compiled, x = pumice.compile(model), rows(3, 8)
    torch.manual_seed(7)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(7)
    assert torch.equal(first, compiled(x)) and not torch.equal(first, second)
    (program,) = compiled.report.graphs[0].programs
    assert len(program.partitions) == 2 and any("PyTorch's generator" in reason.reason for reason in program.reasons)


# ---- what is not for the device --------------------------------------------------------------------------------------


def test_numbers_beyond_the_device_are_for_eager() -> None:
    compiled = pumice.compile(lambda x: x + 1)
    assert torch.equal(compiled(torch.tensor([5])), torch.tensor([6]))
    assert torch.equal(compiled(torch.tensor([2**40])), torch.tensor([2**40 + 1]))
    assert sum(compiled.report.graphs[0].in_eager.values()) == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64])
def test_dtypes_of_eager(dtype) -> None:
    compiled, x = pumice.compile(lambda x: x * 2 + 1), rows(3).to(dtype)
    assert torch.equal(compiled(x), x * 2 + 1)
    assert compiled.report.graphs[0].programs[0].reasons


def test_autocast_is_for_eager() -> None:
    model, x = mlp(), rows(3)
    compiled = pumice.compile(model)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled(x), model(x).detach())
    assert any("autocast" in reason for reason in compiled.report.graphs[0].in_eager)
    near(compiled(x), model(x).detach(), MATMUL)


def test_a_number_of_python_that_changes() -> None:
    beside = Beside(type("Cut", (nn.Module,), {"forward": lambda self, x, count: x[:, :count] * count})())
    for count in (1, 2, 3, 5, 3):
        beside.call(rows(4), count, budget=EXACT)
    assert beside.compiled.report.all_on_device


# ---- options, names, threads -----------------------------------------------------------------------------------------


def test_options() -> None:
    for given, match in (({"divice": "x"}, "device"), ({"weights": "never"}, "hashed"), ({"strict": 1}, "strict")):
        with pytest.raises(pumice.InvalidInputError, match=match):
            pumice.compile(mlp(), **given)
    with pytest.raises(pumice.InvalidInputError, match="by name"):
        pumice.compile(mlp(), options={"device": "llvmpipe"}, device="llvmpipe")
    with pytest.raises(pumice.InvalidInputError, match="int"):
        pumice.compile(3)
    with pytest.raises(pumice.DeviceError, match="no such one"):
        pumice.compile(mlp(), device="no such one")(rows(3))
    with pytest.raises(Exception, match="did you mean 'device'"):
        torch.compile(mlp(), backend="pumice", options={"devise": ""})(rows(3))


def test_many_compiled_models_of_one_class() -> None:
    """TorchDynamo has one code object for all modules of torch.nn, and gives up after 8 graphs of one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for width in range(8, 30):
            beside = Beside(nn.Linear(width, 4).eval())
            beside.call(rows(3, width), budget=MATMUL)
            assert beside.compiled.report.all_on_device


def test_calls_that_dynamo_leaves_to_eager_are_counted() -> None:
    compiled = pumice.compile(torch._dynamo.disable(lambda x: x + 1))
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
    assert compiled.report.without == 1 and not compiled.report.all_on_device
    assert "1 call ran no graph" in str(compiled.report)


def test_threads() -> None:
    model, failed = mlp(), []
    compiled = pumice.compile(model)
    wants = {count: model(rows(count)).detach() for count in range(2, 10)}

    def work(first: int) -> None:
        try:
            for count in [*range(first, 10), *range(2, first)]:
                near(compiled(rows(count)), wants[count], MATMUL)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in (2, 5, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def test_inference_mode_and_numpy_memory() -> None:
    model, compiled = mlp(), None
    compiled = pumice.compile(model)
    with torch.inference_mode():
        near(compiled(torch.from_numpy(np.ones((3, 96), np.float32))), model(torch.ones(3, 96)), MATMUL)
    assert compiled.report.all_on_device
