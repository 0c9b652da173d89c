# SPDX-License-Identifier: Apache-2.0
"""A module from end to end: to_edge_transform_and_lower, to_executorch, a .pte file, ExecuTorch's Python runtime."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Method, Runtime
from torch import nn

from pumice.executorch import PumicePartitioner
from support import cpp_host, missing


class Lowered:
    """`report` of the partitioner, `path` of the .pte, `graph` of the program that ExecuTorch runs."""

    def __init__(self, folder: Path, module: torch.nn.Module, args: Any, options: Any = None, **more: Any) -> None:
        self.module = copy.deepcopy(module).eval()
        partitioner = PumicePartitioner(options)
        exported = torch.export.export(self.module, args, dynamic_shapes=more.get("dynamic_shapes"))
        with missing.lacking():
            edge = to_edge_transform_and_lower(
                exported,
                partitioner=[partitioner, *more.get("others", [])],
                generate_etrecord=more.get("etrecord", False),
            )
        self.graph = edge.exported_program().graph_module
        self.report = partitioner.report
        self.path = folder / "m.pte"
        program = edge.to_executorch()
        program.save(str(self.path))
        if more.get("etrecord"):
            program.get_etrecord().save(str(self.path.with_suffix(".etrecord")))

    def modules(self, backend: str = "PumiceBackend") -> list[Any]:
        modules = [getattr(self.graph, node.target) for node in self.graph.graph.nodes if node.op == "get_attr"]
        return [module for module in modules if module.backend_id == backend]

    def blobs(self, backend: str = "PumiceBackend") -> list[bytes]:
        return [module.processed_bytes for module in self.modules(backend)]

    def weights(self) -> dict[str, bytes]:
        """The constants outside of the blobs, as pumice.load takes them."""
        stores = [module._named_data_store_output for module in self.modules()]
        return {key: store.buffers[entry.buffer_index] for store in stores for key, entry in store.pte_data.items()}

    def load(self, **options: Any) -> Method:
        """The program of one method."""
        self.program = Runtime.get().load_program(self.path, **options)
        return self.program.load_method("forward")

    def eager(self, *args: torch.Tensor) -> list[torch.Tensor]:
        with torch.no_grad():
            want = self.module(*copy.deepcopy(args))
        return list(want) if isinstance(want, tuple | list) else [want]

    def check(self, method: Method, *args: torch.Tensor, atol: float = 1e-5) -> None:
        self.compare(method.execute(args), args, atol)

    def check_host(self, *args: torch.Tensor, atol: float = 1e-5) -> None:
        """As check, in a C++ host."""
        dtypes = [want.dtype for want in self.eager(*args)]
        self.compare(cpp_host.run(self.path, [args], dtypes)[0], args, atol)

    def compare(self, got: Sequence[torch.Tensor], args: Sequence[torch.Tensor], atol: float) -> None:
        want = self.eager(*args)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, atol=atol, rtol=1e-5)


WIDTH = 64


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, 96), nn.GELU(), nn.LayerNorm(96), nn.Linear(96, 20), nn.Softmax(-1))


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 8)
        self.register_buffer("keys", torch.zeros(1, 16, 8))

    def forward(self, x, position):
        self.keys[:, position] = self.project(x)
        return torch.softmax(x @ self.keys.transpose(1, 2), -1) @ self.keys
