# SPDX-License-Identifier: Apache-2.0
"""Models through ExecuTorch with Pumice as the backend, compared with eager PyTorch."""

from __future__ import annotations

import threading

import psutil
import pytest
import torch
import xxhash
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.runtime import Runtime
from support.lowered import WIDTH, Cache, Lowered, mlp, noise
from support.missing import ON_CPU, OnCpu, lacking, on_cpu
from torch import nn
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig, quantize_
from torchao.quantization.granularity import PerGroup

import pumice
from pumice.executorch import PumicePartitioner
from pumice.executorch.options import least_sizes


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Lowered:
    return Lowered(tmp_path_factory.mktemp("plain"), mlp(), (noise(2, WIDTH),))


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> Lowered:
    return Lowered(tmp_path_factory.mktemp("interrupted"), Interrupted(), (noise(2, 4, 16),))


def test_one_partition_keeps_layers_whole(plain) -> None:
    lowered = plain
    assert lowered.report.operators == {"linear": 2, "layer_norm": 1, "softmax": 1}
    assert not lowered.report.reasons and len(lowered.report.partitions) == 1
    method = lowered.load()
    lowered.check(method, noise(2, WIDTH))


@pytest.mark.parametrize(
    ("config", "operator"),
    [
        (IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)), "linear_q4gsw"),
        (
            Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)),
            "linear_dq8ca_q4gsw",
        ),
    ],
    ids=["int4", "8da4w"],
)
def test_quantized_linears(tmp_path, config, operator) -> None:
    module = mlp().eval()
    quantize_(module, config)
    lowered = Lowered(tmp_path, module, (noise(2, 3, WIDTH),))
    assert lowered.report.operators[operator] == 2 and not lowered.report.reasons
    lowered.check(lowered.load(), noise(2, 3, WIDTH))


class Interrupted(nn.Module):
    """An operator that Pumice lacks between two that it has. One partition of both would be a cycle. Two results."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        h = torch.relu(self.first(x))
        return self.last(on_cpu(h) + h), h.sum(-1)


def test_a_refused_operator_falls_back(interrupted) -> None:
    lowered = interrupted
    assert [reason.target for reason in lowered.report.reasons] == [str(ON_CPU)]
    assert str(ON_CPU) in str(lowered.report) and len(lowered.report.partitions) == 2
    lowered.check(lowered.load(), noise(2, 4, 16))
    lowered.check_host(noise(2, 4, 16))


def test_strict_names_what_would_fall_back(tmp_path) -> None:
    with pytest.raises(pumice.UnsupportedError, match=str(ON_CPU)):
        Lowered(tmp_path, Interrupted(), (noise(2, 4, 16),), {"strict": True})


def test_small_partitions_can_be_left_out(tmp_path) -> None:
    lowered = Lowered(tmp_path, nn.Sequential(nn.ReLU(), OnCpu(), nn.Sigmoid()), (noise(2, 4, 16),))
    assert len(lowered.report.partitions) == 2
    lowered = Lowered(tmp_path, lowered.module, (noise(2, 4, 16),), {"min_operators": 2})
    assert not lowered.report.partitions
    assert "fewer than min_operators=2" in str(lowered.report)
    lowered.check(lowered.load(), noise(2, 4, 16))


def test_a_mutated_buffer_stays_on_the_device(tmp_path) -> None:
    lowered = Lowered(tmp_path, Cache(), (noise(1, 1, 8), torch.tensor([0])))
    assert not lowered.report.reasons
    assert not any("keys" in node.name for node in lowered.graph.graph.nodes if node.op == "placeholder")
    (tmp_path / "other").mkdir()
    other = Lowered(tmp_path / "other", lowered.module, (noise(1, 1, 8), torch.tensor([0])))
    method, second = lowered.load(), other.load()
    for step in range(6):
        lowered.check(method, noise(1, 1, 8) * (step + 1), torch.tensor([step]))
    other.check(second, noise(1, 1, 8), torch.tensor([3]))  # has seen none of the steps


def test_dynamic_shapes(tmp_path) -> None:
    rows = torch.export.Dim("rows", min=1, max=32)
    lowered = Lowered(tmp_path, mlp(), (noise(4, WIDTH),), dynamic_shapes=({0: rows},))
    method = lowered.load()
    for count in (1, 32, 7, 1, 4):
        lowered.check(method, noise(count, WIDTH))


def test_a_wrong_shape_then_a_right_one(tmp_path, capfd) -> None:
    rows = torch.export.Dim("rows", min=2, max=8)
    lowered = Lowered(tmp_path, mlp(), (noise(4, WIDTH),), dynamic_shapes=({0: rows},))
    method = lowered.load()
    for wrong in (noise(9, WIDTH), noise(1, WIDTH), noise(4, WIDTH - 1), noise(4, WIDTH).half()):
        with pytest.raises(RuntimeError):
            method.execute((wrong,))
        lowered.check(method, noise(4, WIDTH))
    assert "allowed are 2 to 8" in capfd.readouterr().err


def test_dtypes_cross_as_executorch_stores_them(tmp_path) -> None:
    class Mixed(nn.Module):
        def forward(self, ids, mask, half):
            return ids * 2, ~mask, half + 1, (ids > 1) & mask

    args = (torch.tensor([1, -5, 2**29]), torch.tensor([True, False, True]), torch.ones(3).half())
    lowered = Lowered(tmp_path, Mixed(), args)
    assert not lowered.report.reasons
    lowered.check(lowered.load(), *args)


def test_two_programs_at_once(plain, interrupted) -> None:
    failures = []

    def work(lowered: Lowered, *args: torch.Tensor) -> None:
        try:
            method = lowered.load()
            for _ in range(20):
                lowered.check(method, *args)
        except BaseException as error:
            failures.append(error)

    jobs = ((plain, noise(2, WIDTH)), (interrupted, noise(2, 4, 16)))
    threads = [threading.Thread(target=work, args=a) for a in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_with_xnnpack_in_one_program(tmp_path) -> None:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    class Small(nn.Module):
        """A partition too small for Pumice, between operators that no backend runs; the other backend takes it."""

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32))
            self.last = nn.Sequential(nn.Linear(32, 8), nn.Softmax(-1))

        def forward(self, x):
            return self.last(on_cpu(torch.sigmoid(on_cpu(self.first(x)))))

    lowered = Lowered(tmp_path, Small(), (noise(2, 16),), {"min_operators": 2}, others=[XnnpackPartitioner()])
    assert len(lowered.blobs()) == 2 and len(lowered.blobs("XnnpackBackend")) == 1
    lowered.check(lowered.load(), noise(2, 16))
    ours = PumicePartitioner()
    exported = torch.export.export(lowered.module, (noise(2, 16),))
    with lacking():
        to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner(), ours])
    assert {reason.reason.partition("; ")[0] for reason in ours.report.reasons} == {
        "no operator computes this",
        "XnnpackBackend has it: an earlier partitioner of the list",
    }


def test_load_and_unload(plain) -> None:
    """Opens a new device at each load, since no program keeps it; a thousand loads on one device: test_memory.py."""
    process = psutil.Process()
    for count in range(60):
        plain.check(plain.load(), noise(2, WIDTH))
        if count == 20:
            before = process.memory_info().rss
    assert process.memory_info().rss < before + (8 << 20)


def sealed(blob: bytes) -> bytes:
    """The blob with the right hash of its header."""
    return blob[:56] + xxhash.xxh3_64_intdigest(blob[:56]).to_bytes(8, "little") + blob[64:]


@pytest.mark.parametrize("damage", ["cut", "flipped", "newer", "empty"])
def test_a_damaged_blob_is_refused(plain, tmp_path, capfd, damage) -> None:
    (blob,) = plain.blobs()
    file = plain.path.read_bytes()
    at = file.index(blob)
    bad = {
        "cut": blob[: len(blob) // 2] + bytes(len(blob) - len(blob) // 2),
        "flipped": blob[:-1000] + bytes([blob[-1000] ^ 1]) + blob[-999:],
        "newer": sealed(blob[:8] + (99).to_bytes(4, "little") + blob[12:]),
        "empty": bytes(len(blob)),
    }[damage]
    path = tmp_path / "bad.pte"
    path.write_bytes(file[:at] + bad + file[at + len(blob) :])
    code = "30" if damage in ("newer", "empty") else "23"  # DelegateInvalidCompatibility, InvalidProgram
    with pytest.raises(RuntimeError, match=f"0x:?{code}"):
        Runtime.get().load_program(path).load_method("forward")
    assert "PumiceBackend: cannot load" in capfd.readouterr().err
    plain.check(plain.load(), noise(2, WIDTH))


def test_a_device_that_is_not_there(tmp_path, capfd) -> None:
    lowered = Lowered(tmp_path, nn.ReLU(), (noise(2, 3),), {"device": "no such device"})
    with pytest.raises(RuntimeError, match="0x"):
        lowered.load()
    assert "no such device" in capfd.readouterr().err


def test_options_are_typed() -> None:
    with pytest.raises(pumice.InvalidInputError, match="did you mean 'device'"):
        PumicePartitioner({"devise": "x"})
    with pytest.raises(pumice.InvalidInputError, match="must be int"):
        PumicePartitioner({"min_operators": "2"})
    with pytest.raises(pumice.InvalidInputError, match="a dict or PartitionOptions, got 'llvmpipe'"):
        PumicePartitioner("llvmpipe")
    with pytest.raises(pumice.InvalidInputError, match="unknown compile spec"):
        least_sizes([CompileSpec("speed", b"1")])
