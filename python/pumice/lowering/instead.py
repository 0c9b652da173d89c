# SPDX-License-Identifier: Apache-2.0
"""What to do instead of an operator that Pumice lacks: the end of its refusal, and a table of docs/limits.md."""

from __future__ import annotations

from typing import Any

TRAINING = "the model is in training mode: call model.eval() before the export"
CONTROL_FLOW = (
    "compute both sides and choose with torch.where, write a loop of a fixed length out, or export the parts as models "
    "of their own and let the host decide between them"
)
VALUES = (
    "keep it a tensor of no dimensions (x * y.sum(), not x * y.sum().item()), choose with torch.where instead of an "
    "if, or make the number an input of the model"
)
_SHAPE = (
    "its result has a shape that depends on values: return the mask or the scores, and choose from them on the host"
)
_FOURIER = "for a fixed length, multiply by the matrix of the transform: real and imaginary part, two torch.matmul"
_LINALG = "compute it before the export and keep the result as a buffer, or leave this step to the host"
_COMPLEX = "compute with the real and the imaginary part as two tensors"

# By the name of the operator without namespace, overload and the underscores around it.
INSTEAD = {
    "native_dropout": f"{TRAINING}, or give the export option seed where its results are to be random",
    "randint": "of more than 2^24 numbers the lower ones would be drawn more often than the others: draw two, of fewer",
    "native_batch_norm_legit_functional": TRAINING,
    "rrelu_with_noise": TRAINING,
    "rrelu_with_noise_functional": TRAINING,
    "nonzero": _SHAPE,
    "masked_select": _SHAPE,
    "unique2": _SHAPE,
    "unique_dim": _SHAPE,
    "fft_r2c": _FOURIER,
    "fft_c2r": _FOURIER,
    "fft_c2c": _FOURIER,
    "linalg_svd": _LINALG,
    "linalg_eigh": _LINALG,
    "linalg_inv_ex": _LINALG,
    "linalg_qr": _LINALG,
    "linalg_cholesky_ex": _LINALG,
    "linalg_solve_ex": _LINALG,
    "complex": _COMPLEX,
    "view_as_complex": _COMPLEX,
    "view_as_real": _COMPLEX,
    "polar": _COMPLEX,
    "cond": CONTROL_FLOW,
    "while_loop": CONTROL_FLOW,
    "scan": CONTROL_FLOW,
    "map_impl": CONTROL_FLOW,
    "with_effects": "take printing and checks out of forward; a step that checks itself (linalg) is for the host",
}
ELSE = (
    "rewrite it with operators of docs/ops.md, leave this step to the host, or add the operator (docs/adding_an_op.md)"
)


def instead(target: Any) -> str:
    """What to do instead of calling `target`, an overload or its name."""
    name = str(target).removeprefix("torch.ops.").removeprefix("higher_order.")
    parts = name.split(".")
    return INSTEAD.get((parts[1] if len(parts) > 1 else name).strip("_"), ELSE)
