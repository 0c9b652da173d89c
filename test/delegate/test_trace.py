# SPDX-License-Identifier: Apache-2.0
"""ETDump has every dispatch with its time, and ExecuTorch's Inspector shows it with the line of the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from executorch.devtools import Inspector
from support.cpp_host import driver, needs_driver
from support.lowered import WIDTH, Cache, Lowered, mlp, noise
from support.missing import OnCpu
from torch import nn

import pumice


def events(lowered: Lowered) -> list[Any]:
    """The events of the delegate in the dump of the program, in the order of their times."""
    dump = lowered.path.with_suffix(".etdp")
    inspector = Inspector(etdump_path=str(dump), etrecord=str(lowered.path.with_suffix(".etrecord")))
    blocks = [block for block in inspector.event_blocks if block.name == "Execute"]
    found = [event for block in blocks for event in block.events if event.is_delegated_op]
    return sorted(found, key=lambda event: event._start_time[0])


def write(lowered: Lowered) -> None:
    lowered.program.write_etdump_result_to_file(*(str(lowered.path.with_suffix(s)) for s in (".etdp", ".debug")))


@pytest.fixture(scope="module")
def quantized(tmp_path_factory) -> Lowered:
    module = pumice.quantize(mlp().eval(), "8da4w", group_size=32)
    return Lowered(tmp_path_factory.mktemp("quantized"), module, (noise(2, WIDTH),), etrecord=True)


def test_every_dispatch_is_beside_the_line_of_the_model(quantized) -> None:
    method = quantized.load(enable_etdump=True)
    for _ in range(2):
        quantized.check(method, noise(2, WIDTH))
    write(quantized)
    got = events(quantized)
    (blob,) = quantized.blobs()
    rows = pumice.load(blob, external=quantized.weights()).profile(noise(2, WIDTH))
    metadata = [json.loads(event.raw_delegate_debug_metadatas[0]) for event in got]
    assert [(m["kernel"], m["shapes"]) for m in metadata] == [(row.kernel, row.shape) for row in rows]
    kernels = [event for event in got if not event.name.startswith("copy")]
    assert [event.name.split()[1] for event in kernels] == [row.operator for row in rows if row.kernel != "copy"]
    names = set()
    for event in kernels:
        assert event.delegate_backend_name == "PumiceBackend" and len(event.perf_data.raw) == 2
        assert "lowered.py" in "".join(map(str, event.stack_traces.values())) or event.module_hierarchy
        modules = "".join(str(hierarchy) for hierarchy in event.module_hierarchy.values())
        names |= {kind for kind in ("Linear", "GELU", "LayerNorm", "Softmax") if kind in modules}
    assert names == {"Linear", "GELU", "LayerNorm", "Softmax"}
    assert sum(event.perf_data.avg for event in kernels) > 0


def test_a_traced_run_moves_state_once(tmp_path) -> None:
    lowered = Lowered(tmp_path, Cache(), (noise(1, 1, 8), torch.tensor([0])), etrecord=True)
    method = lowered.load(enable_etdump=True)
    for step in range(4):
        lowered.check(method, noise(1, 1, 8) * (step + 1), torch.tensor([step]))
    write(lowered)
    assert all(event.debug_handles for event in events(lowered) if event.name.startswith("#"))


@needs_driver
@pytest.mark.parametrize("profile", ["true", "false"])
def test_the_option_profile_leaves_the_delegate_call_alone(quantized, profile) -> None:
    driver("trace", quantized.path, quantized.path.with_suffix(".etdp"), f"profile={profile}")
    assert bool(events(quantized)) == (profile == "true")


def test_two_partitions(tmp_path) -> None:
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), OnCpu(), nn.Linear(32, 8))
    lowered = Lowered(tmp_path, module, (noise(2, 4, 16),), etrecord=True)
    lowered.check(lowered.load(enable_etdump=True), noise(2, 4, 16))
    write(lowered)
    linears = [event for event in events(lowered) if "linear" in event.name]
    modules = ["".join(map(str, event.module_hierarchy.values())) for event in linears]
    assert len(linears) == 2 and modules[0] != modules[1]
