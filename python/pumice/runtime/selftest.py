# SPDX-License-Identifier: Apache-2.0
"""A tiny program, written here, run on a device and compared with numpy: how `pumice doctor` ends. Needs no torch."""

from __future__ import annotations

import numpy as np

from pumice.errors import DeviceError
from pumice.format import ir
from pumice.format.writer import to_bytes
from pumice.runtime.session import load


def self_test(device: str | int | None = None) -> str:
    """Runs softmax(x + y) of 5 x 37 on `device`; a sentence on success, DeviceError when the answer is wrong."""
    x, y = (np.random.default_rng(seed).standard_normal((5, 37)).astype(np.float32) for seed in (1, 2))

    def value(kind: ir.ValueKind, name: str) -> ir.Value:
        return ir.Value(kind, ir.DType.f32, [5, 37], name=name)

    kinds = ir.ValueKind
    method = ir.Method(
        values=[
            value(kinds.input, "x"),
            value(kinds.input, "y"),
            value(kinds.scratch, "sum"),
            value(kinds.output, "out"),
        ],
        ops=[
            ir.OpCall("add", 1, [ir.ValueId(0), ir.ValueId(1), 1.0], [2]),
            ir.OpCall("softmax", 1, [ir.ValueId(2), 1], [3]),
        ],
        inputs=[0, 1],
        outputs=[3],
    )
    session = load(to_bytes(ir.Program(producer="pumice self test", methods=[method])), device=device)
    (got,) = session.run_flat([x, y])
    want = np.exp(x + y, dtype=np.float64)
    want /= want.sum(-1, keepdims=True)
    error = float(np.abs(got - want).max())
    if not error < 1e-6:
        raise DeviceError(
            f"softmax(x + y) on {session.device.name} is off by {error:.2e}", code="DeviceUnsupported", stage="execute"
        )
    return f"softmax(x + y) on {session.device.name} is right (largest error {error:.1e})"
