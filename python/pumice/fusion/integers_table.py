# SPDX-License-Identifier: Apache-2.0
"""Any chain of functions of one element between integers: a table of 256 results, computed by PyTorch itself."""

from __future__ import annotations

import torch
from torch.fx import Node

from pumice.format.ir import DType
from pumice.fusion.integers import Step, Target, tables
from pumice.lowering.call import Call
from pumice.lowering.quantized_activation import per_tensor
from pumice.lowering.quantized_names import DEQUANTIZE
from pumice.lowering.ref import Ref
from pumice.lowering.registry import pointwise_targets


@tables
def functions_of_one_element(call: Call, ref: Ref, to: Target) -> Step | None:
    """The results of a chain, maybe an empty one: then the integers get another scale and zero point."""
    chain: list[Node] = []
    while (producer := call.producer(ref, *pointwise_targets())) is not None and _of_one(producer.node):
        chain.append(producer.node)
        call, ref = producer, producer[producer.target._schema.arguments[0].name]
    q = per_tensor(call, ref)
    if q is None:
        return None
    steps = [call.producer(ref, *DEQUANTIZE).node, *reversed(chain)]

    def table() -> torch.Tensor:
        value = torch.arange(256, dtype=torch.uint8)
        value = value.view(torch.int8) if q.data.dtype is DType.i8 else value
        for node in steps:
            value = node.target(value, *node.args[1:], **node.kwargs)
        return to.quantized(value)

    what = [(str(node.target), node.args[1:], dict(node.kwargs)) for node in (*steps, to.quantize.node)]
    constant = call.constant(f"table {what}", to.dtype, (256,), table)
    return lambda out: call.emit("lookup", q.data, constant, out=out)


def _of_one(node: Node) -> bool:
    """Whether a node is a function of its first argument and of numbers."""
    others = [*node.args[1:], *node.kwargs.values()]
    return isinstance(node.args[0], Node) and all(o is None or isinstance(o, int | float | str) for o in others)
