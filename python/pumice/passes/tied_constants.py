# SPDX-License-Identifier: Apache-2.0
"""A tensor that an exported program holds twice, as a buffer and as a constant, is the buffer.

torch.export without strict=True lifts what a plain attribute holds, such as the layers of transformers' StaticCache, as
constants, even where a module has registered the same tensors as buffers; decomposing such a program fails in torch.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature, InputKind


def merge_tied_constants(program: ExportedProgram) -> ExportedProgram:
    """The program without such constants; itself when there are none. `program` stays as it is."""
    signature = program.graph_signature
    stored = {**program.state_dict, **program.constants}
    buffers = {}
    for spec in signature.input_specs:
        if spec.kind in (InputKind.BUFFER, InputKind.PARAMETER) and spec.target in stored:
            buffers.setdefault(_place(stored[spec.target]), spec.arg.name)
    tied = {
        spec.arg.name: buffers[_place(stored[spec.target])]
        for spec in signature.input_specs
        if spec.kind is InputKind.CONSTANT_TENSOR and _place(stored[spec.target]) in buffers
    }
    if not tied:
        return program
    module = copy.copy(program.graph_module)
    module.graph = copy.deepcopy(program.graph)
    nodes = {node.name: node for node in module.graph.nodes if node.op == "placeholder"}
    for constant, buffer in tied.items():
        nodes[constant].replace_all_uses_with(nodes[buffer])
        module.graph.erase_node(nodes[constant])
    module.recompile()
    kept = [spec for spec in signature.input_specs if spec.arg.name not in tied]
    gone = {spec.target for spec in signature.input_specs if spec.arg.name in tied}
    return program._update(
        module,
        ExportGraphSignature(kept, signature.output_specs),
        constants={name: value for name, value in program.constants.items() if name not in gone},
    )


def _place(tensor: Any) -> Any:
    """Equal for two names of the same numbers."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not tensor.numel():
        return id(tensor)
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype
