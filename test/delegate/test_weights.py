# SPDX-License-Identifier: Apache-2.0
"""Weights are outside of the blobs, in ExecuTorch's named data: once for all methods, or in a .ptd file."""

from __future__ import annotations

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime
from support.lowered import Lowered
from torch import nn

import pumice
from pumice.executorch import PumicePartitioner


class Twice(nn.Module):
    """Two methods with the same large layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(256, 512)

    def forward(self, x):
        return self.layer(x).relu()

    def other(self, x):
        return self.layer(x * 2.0) - 1.0


WEIGHT = 256 * 512 * 4
X = torch.randn(3, 256, generator=torch.Generator().manual_seed(0))


def exported(model: Twice, names=("forward", "other")) -> dict[str, torch.export.ExportedProgram]:
    programs = {}
    for name in names:
        wrapper = Twice()
        wrapper.load_state_dict(model.state_dict())
        wrapper.forward = getattr(wrapper, name)
        programs[name] = torch.export.export(wrapper.eval(), (X,))
    return programs


def lowered(model: Twice, names=("forward", "other"), **options):
    programs = exported(model, names)
    partitioners = {name: [PumicePartitioner({"strict": True, **options})] for name in programs}
    return to_edge_transform_and_lower(programs, partitioner=partitioners)


def test_methods_share_weights(tmp_path) -> None:
    model = Twice().eval()
    path = tmp_path / "m.pte"
    lowered(model).to_executorch().save(str(path))
    assert WEIGHT < path.stat().st_size < 1.2 * WEIGHT
    program = Runtime.get().load_program(path)
    methods = [program.load_method(name) for name in ("forward", "other")]
    for method, want in zip(methods, (model(X), model.other(X)), strict=True):
        torch.testing.assert_close(method.execute([X])[0], want)


def test_the_blob_and_its_weights_are_a_file_of_ours() -> None:
    model = Twice().eval()
    graph = lowered(model, ["forward"]).exported_program("forward").graph_module
    (module,) = [getattr(graph, node.target) for node in graph.graph.nodes if node.op == "get_attr"]
    store = module._named_data_store_output
    weights = {key: store.buffers[entry.buffer_index] for key, entry in store.pte_data.items()}
    assert len(module.processed_bytes) < 16_384
    torch.testing.assert_close(pumice.load(module.processed_bytes, external=weights)(X), model(X))
    with pytest.raises(pumice.InvalidFileError):
        pumice.load(module.processed_bytes)


def test_weights_in_a_file_of_their_own(tmp_path, capfd) -> None:
    model = Twice().eval()
    program = lowered(model, external_data="weights").to_executorch()
    path, data = tmp_path / "m.pte", tmp_path / "weights.ptd"
    program.save(str(path))
    program.write_tensor_data_to_file(str(tmp_path))
    assert path.stat().st_size < 40_000 and WEIGHT < data.stat().st_size < 1.2 * WEIGHT
    loaded = Runtime.get().load_program(path, data_path=data)
    torch.testing.assert_close(loaded.load_method("other").execute([X])[0], model.other(X))
    with pytest.raises(RuntimeError):
        Runtime.get().load_program(path).load_method("forward")
    assert "PumiceBackend: cannot load" in capfd.readouterr().err
    changed = bytearray(data.read_bytes())
    changed[-WEIGHT // 2] ^= 1
    data.write_bytes(changed)
    with pytest.raises(RuntimeError):
        Runtime.get().load_program(path, data_path=data).load_method("forward")
    assert "hash" in capfd.readouterr().err


def test_equal_weights_of_two_layers_are_one(tmp_path) -> None:
    """Two equal tensors that are not tied, and a buffer that begins with the same bytes."""

    class Alike(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(256, 256, bias=False), nn.Linear(256, 256, bias=False)
            self.second.load_state_dict(self.first.state_dict())
            self.register_buffer("seen", self.first.weight.detach().clone())

        def forward(self, x):
            self.seen += 1.0
            return self.second(self.first(x).relu()) + self.seen[0]

    lowered = Lowered(tmp_path, Alike(), (X,), {"strict": True})
    assert lowered.path.stat().st_size < 1.2 * 4 * 256**2
    session = pumice.load(lowered.blobs()[0], external=lowered.weights())
    assert session.memory["weights"] < 2.2 * 4 * 256**2  # packed for the layers, and raw for reset()
    method = lowered.load()
    for _ in range(2):
        lowered.check(method, X)
