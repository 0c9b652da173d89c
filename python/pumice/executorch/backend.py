# SPDX-License-Identifier: Apache-2.0
"""PumiceBackend: a tagged partition -> the bytes of a .pumice file."""

from __future__ import annotations

from typing import final

from executorch.exir.backend.backend_details import BackendDetails, CompileSpec, PreprocessResult
from torch.export import ExportedProgram

from pumice.executorch.options import external_data, least_sizes
from pumice.executorch.trace import debug_handles
from pumice.executorch.weights import put_outside
from pumice.format.dtypes import device_dtype
from pumice.lowering.lower import lower
from pumice.lowering.program import Program
from pumice.lowering.report import unsupported
from pumice.partition.nodes import calls, subgraph_of
from pumice.partition.plan import OPTIONS
from pumice.passes.normalize import normalize


@final
class PumiceBackend(BackendDetails):
    """ExecuTorch finds the library's backend by the name of this class."""

    @classmethod
    def copy_exported_program_for_preprocess(
        cls, edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> ExportedProgram:
        """No copy: preprocess changes nothing, and weights may be large."""
        return edge_program

    @staticmethod
    def preprocess(edge_program: ExportedProgram, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """The blob is what pumice.export writes, without the weights: pumice.load(blob, external=...) runs it."""
        subgraph = subgraph_of(edge_program, set(calls(edge_program)), least_sizes(compile_specs))
        removed = normalize(subgraph, lambda dtype: device_dtype(dtype, OPTIONS.bf16, OPTIONS.float64))
        lowered = lower(subgraph, removed, OPTIONS, {}, [])
        program, report = lowered.program, lowered.report
        if report.reasons:
            raise unsupported(report)
        weights = put_outside(program, external_data(compile_specs))
        return PreprocessResult(
            processed_bytes=bytes(Program(program, report)),
            debug_handle_map=debug_handles(subgraph, program, report),
            data_store_output=weights,
        )
