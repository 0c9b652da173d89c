# SPDX-License-Identifier: Apache-2.0
"""A module on the whole road: to_edge_transform_and_lower, to_executorch, a .pte file, ExecuTorch's Python runtime."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Method, Runtime

from pumice.executorch import PumicePartitioner


class Lowered:
    """`report` of the partitioner, `path` of the .pte, `graph` of the program that ExecuTorch runs."""

    def __init__(self, folder: Path, module: torch.nn.Module, args: Any, options: Any = None, **more: Any) -> None:
        self.module = copy.deepcopy(module).eval()
        partitioner = PumicePartitioner(options)
        exported = torch.export.export(self.module, args, dynamic_shapes=more.get("dynamic_shapes"))
        edge = to_edge_transform_and_lower(exported, partitioner=[partitioner, *more.get("others", [])])
        self.graph = edge.exported_program().graph_module
        self.report = partitioner.report
        self.path = folder / "m.pte"
        edge.to_executorch().save(str(self.path))

    def blobs(self, backend: str = "PumiceBackend") -> list[bytes]:
        modules = [getattr(self.graph, node.target) for node in self.graph.graph.nodes if node.op == "get_attr"]
        return [module.processed_bytes for module in modules if module.backend_id == backend]

    def load(self) -> Method:
        """A method of a program of its own."""
        self.program = Runtime.get().load_program(self.path)
        return self.program.load_method("forward")

    def eager(self, *args: torch.Tensor) -> list[torch.Tensor]:
        with torch.no_grad():
            want = self.module(*copy.deepcopy(args))
        return list(want) if isinstance(want, tuple | list) else [want]

    def check(self, method: Method, *args: torch.Tensor, atol: float = 1e-5) -> None:
        got, want = method.execute(args), self.eager(*args)
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, atol=atol, rtol=1e-5)
