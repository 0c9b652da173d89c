# SPDX-License-Identifier: Apache-2.0
"""What to do instead of an operator that Pumice lacks: the end of its refusal, and a table of docs/limits.md."""

from __future__ import annotations

from typing import Any

TRAINING = "the model is in training mode: call model.eval() before the export"
_DROPOUT = f"{TRAINING}, or give the export option seed where its results are to be random"
CONTROL_FLOW = (
    "compute both sides and choose with torch.where, write a loop of a fixed length out, or export the parts as models "
    "of their own and let the host decide between them"
)
VALUES = (
    "keep it a tensor of no dimensions (x * y.sum(), not x * y.sum().item()), choose with torch.where instead of an "
    "if, make a buffer that holds a size a number of Python, or make the number an input of the model"
)
_SHAPE = (
    "its result has a shape that depends on values: return the mask or the scores, and choose from them on the host"
)
MOST_FOURIER = 2048  # elements of a transform: its matrix has 4 n^2 or 8 n^2 bytes
_FOURIER = (
    f"transforms of f32 run, of a fixed length of 1 to {MOST_FOURIER} elements each: cut the signal into windows "
    "(torch.stft), or leave this step to the host"
)
_LINALG = "compute it before the export and keep the result as a buffer, or leave this step to the host"
COMPLEX = (
    "a complex tensor meets an operator that Pumice has for real ones only, or is an input or a result: take "
    "torch.view_as_real(x), x.abs(), x.real or x.imag there"
)

_SERIES = "its series has as many terms as the values ask for: leave this step to the host"
_LOSS = "of training: export the model without its loss and gradients"
_DRAWN = "it draws its windows at random, in eval, too: take max_pool or adaptive_max_pool of as many dimensions"
_BINS = "torch.histogram runs: find the places of each dimension by torch.bucketize, and count places of all together"

BYTES = "of bytes PyTorch computes it in fixed point: resize x.float(), then clamp, round and convert"

# By the name of the operator without namespace, overload and the underscores around it.
INSTEAD = {
    "native_dropout": _DROPOUT,
    "bernoulli": _DROPOUT,  # of a dropout of whole channels
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
    "igamma": _SERIES,
    "igammac": _SERIES,
    "ctc_loss": _LOSS,
    "max_pool2d_with_indices_backward": _LOSS,
    "fractional_max_pool2d": _DRAWN,
    "fractional_max_pool3d": _DRAWN,
    "upsample_bilinear2d_aa": BYTES,
    "upsample_bicubic2d_aa": BYTES,
    "histogramdd_bin_edges": _BINS,
    "histogramdd_from_bin_cts": _BINS,
    "histogramdd_from_bin_tensors": _BINS,
    "hash_tensor": "a sum of bits in 64 of them: compute it on the host",
    "linalg_svd": _LINALG,
    "linalg_eigh": _LINALG,
    "linalg_inv_ex": _LINALG,
    "linalg_qr": _LINALG,
    "linalg_cholesky_ex": _LINALG,
    "linalg_solve_ex": _LINALG,
    "complex": COMPLEX,
    "view_as_complex": COMPLEX,
    "view_as_real": COMPLEX,
    "polar": COMPLEX,
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
