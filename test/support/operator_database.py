# SPDX-License-Identifier: Apache-2.0
"""torch's own operator database, forward in f32: which of its operators run, and are right.

python -m support.operator_database [--all | --samples=6] [--dtype=float16] [--features=none]... [NAME...]
counts, and why not; --all: every sample, not only the first; --dtype: one of torch's, of the operators that have it;
--features: switches of the device, as PUMICE_FEATURES, each of those that are given"""

from __future__ import annotations

import argparse
import collections
import itertools
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import pumice
from pumice import ops as _  # noqa: F401 (fills the table of lowerings)
from pumice.lowering import registry
from support import quick_export
from support.budget import MATMUL

# Patterns of any operators, left out: what an operator is made of is to run by itself. Dropouts are those of training.
SEVERAL = ("elementwise_chain", "masked_softmax")
# Families of their own, and what no CPU or no export has.
_OTHERS = ("linalg.", "fft.", "sparse.", "special.", "masked.", "signal.", "jiterator_", "torch.ops.")
# What eager PyTorch itself leaves open, with the reason.
_EMPTY = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
_RANDOM = (
    "bernoulli", "multinomial", "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d",
    "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout", "normal", "rand_like", "randint", "randint_like",
    "randn", "randn_like",
)  # fmt: skip
OPEN = dict.fromkeys(_EMPTY, "its values are anything") | dict.fromkeys(_RANDOM, "its values are random")
# Random by a part of its arguments alone: the factor of its dropout, among those after the input.
DROPOUT = {"nn.functional.multi_head_attention_forward": 9}
# Products whose terms cancel, as MATMUL of support/budget.py says.
PRODUCTS = (
    "nn.functional.multi_head_attention_forward",
    *(f"nn.functional.conv{transposed}{rank}d" for transposed in ("", "_transpose") for rank in (1, 2, 3)),
)
# Eager leaves open which of equal elements is meant: the argument that is the dimension, where it is not named.
PLACES = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "mode": 0}

# Why an operator does not run in f32. Of the first: no program for a device can have it.
_DATA = "the size of its result, or what is done, depends on values"
_DTYPE = "its result is complex, or of a dtype that no device here has"
_LINALG = "linear algebra, under another name"
_WRITES = "writes into its inputs"
_TRAINING = "of training"
_WINDOWS = "windows drawn at random, in eval, too"
_SERIES = "a series of as many terms as the values ask for"
NOT_ASKED = (_DATA, _DTYPE, _LINALG, _WRITES)
REFUSED = {
    **dict.fromkeys(
        (
            "allclose", "argwhere", "broadcast_shapes", "combinations", "corrcoef", "cov", "equal", "item",
            "masked_select", "nn.functional.gaussian_nll_loss", "nonzero", "tensor_split", "to_sparse", "unique",
            "unique_consecutive",
        ),
        _DATA,
    ),
    **dict.fromkeys(
        (
            "cdouble", "cfloat", "chalf", "complex", "double", "float_power", "polar", "short", "stft",
            "to", "view_as_complex",
        ),
        _DTYPE,
    ),
    **dict.fromkeys(
        (
            "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "logdet", "lu", "lu_solve", "lu_unpack",
            "matrix_exp", "ormqr", "pca_lowrank", "pinverse", "qr", "svd", "svd_lowrank", "triangular_solve",
        ),
        _LINALG,
    ),
    **dict.fromkeys(
        (
            "_batch_norm_with_update", "_native_batch_norm_legit", "cauchy", "exponential", "geometric",
            "log_normal", "native_batch_norm", "nn.functional.batch_norm", "resize_as_", "uniform",
        ),
        _WRITES,
    ),
    **dict.fromkeys(("max_pool2d_with_indices_backward", "nn.functional.ctc_loss", "nn.functional.rrelu"), _TRAINING),
    **dict.fromkeys(("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"), _WINDOWS),
    **dict.fromkeys(("igamma", "igammac"), _SERIES),
    "histogramdd": "as many results as there are dimensions: histogram of places runs",
    "hash_tensor": "a sum of bits in 64 of them, that no device here has",
}  # fmt: skip


class Call(torch.nn.Module):
    """Calls an operator with the tensors of a sample as inputs and everything else fixed."""

    def __init__(self, function: Any, args: tuple, kwargs: dict) -> None:
        super().__init__()
        self.function, self.args, self.kwargs = function, args, kwargs

    def forward(self, *tensors: torch.Tensor) -> Any:
        rest = iter(tensors)

        def fill(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return next(rest)
            return type(value)(map(fill, value)) if type(value) in (list, tuple) else value

        return self.function(*map(fill, self.args), **{key: fill(value) for key, value in self.kwargs.items()})


def tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor | np.ndarray):  # numpy: the answer to a call without any tensor
        return [torch.as_tensor(value)]
    return [tensor for item in value for tensor in tensors_of(item)] if isinstance(value, list | tuple) else []


def element_at(name: str, sample: Any, places: torch.Tensor) -> torch.Tensor:
    """What the places that one of PLACES gives stand for."""
    at = PLACES[name]
    dim = sample.kwargs.get("dim", sample.args[at] if len(sample.args) > at else -1)
    if sample.input.dim() == 0:
        return sample.input.expand(places.shape)
    if places.dim() == sample.input.dim():
        return sample.input.gather(dim, places)
    return sample.input.gather(dim, places.unsqueeze(dim)).squeeze(dim)


def same(got: torch.Tensor, want: torch.Tensor, products: bool) -> bool:
    if not want.dtype.is_floating_point:
        return torch.equal(got, want)
    rtol = 4e-3 if want.dtype is torch.float16 else 2e-5  # the budgets proper are those of each operator's own test
    atol = rtol + (MATMUL.of_max * float(want.abs().max()) if products else 0)
    return got.dtype == want.dtype and torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True)


def is_open(name: str, sample: Any) -> bool:
    """Whether eager PyTorch may give anything."""
    return name in OPEN or (name in DROPOUT and sample.kwargs.get("training") and sample.args[DROPOUT[name]] > 0)


@dataclass(frozen=True)
class Outcome:
    """kind: "right", "refused", "differs", "raises" (anything but UnsupportedError), or "eager" where eager raises.
    told: what test/ops/closure.json keeps of it: the operators of a program, or the code of a refusal."""

    kind: str
    why: str = ""
    told: str = ""


def run(info: Any, sample: Any, features: Sequence[str | None] = (None,)) -> Outcome:
    """One sample through export, file, load and a run with each list of features."""
    args = (sample.input, *sample.args)
    module = Call(info.op, args, sample.kwargs)
    inputs = [t for value in (*args, *sample.kwargs.values()) for t in tensors_of(value)]
    try:
        want = [tensor.cpu() for tensor in tensors_of(module(*inputs))]  # a sample may ask for torch's own GPU
    except Exception as error:
        return Outcome("eager", str(error))
    try:
        program = pumice.export(module, tuple(inputs), options={"seed": 0, "without_fusion": SEVERAL})
    except pumice.UnsupportedError as error:
        assert error.reasons and all(str(reason).strip() for reason in error.reasons)
        return Outcome("refused", str(error), f"refused {error.code}")
    except Exception as error:
        return Outcome("raises", f"{type(error).__name__}: {error}")
    for each in features:
        try:
            got = tensors_of(pumice.load(bytes(program), features=each)(*inputs))
        except pumice.Error as error:
            return Outcome("raises", f"features {each}: {error}")
        why = differs(info.name, sample, got, want)
        if why and not nearer(module, inputs, got, want):
            where = f"{[tuple(tensor.shape) for tensor in inputs]} {sample.args} {sample.kwargs}"
            return Outcome("differs", f"features {each}: {where}: {why}")
    return Outcome("right", told=" ".join(sorted(program.report.operators)))


def differs(name: str, sample: Any, got: list[torch.Tensor], want: list[torch.Tensor]) -> str:
    """How the results are not those of eager PyTorch."""
    got, want = list(got), list(want)
    if name in PLACES and not sample.kwargs.get("stable") and got[-1].shape == want[-1].shape:
        got[-1], want[-1] = (element_at(name, sample, places) for places in (got[-1], want[-1]))
    want = [t.float() if t.dtype is torch.bfloat16 else t for t in want]  # rounded, and kept as f32: docs/limits.md
    if [(t.shape, t.dtype) for t in got] != [(t.shape, t.dtype) for t in want]:
        return "shapes or dtypes"
    if is_open(name, sample):
        return ""
    wrong = [(a, b) for a, b in zip(got, want, strict=True) if not same(a, b, name in PRODUCTS)]
    return f"\n{wrong[0][0]}\n{wrong[0][1]}" if wrong else ""


def nearer(module: Call, inputs: list[torch.Tensor], got: list[torch.Tensor], want: list[torch.Tensor]) -> bool:
    """Whether every fp16 result is at most as far from the one in fp64 as eager's own: eager rounds each term of some
    sums to fp16, and overflows within some functions."""
    if any(a.dtype is not torch.float16 or a.shape != b.shape for a, b in zip(got, want, strict=True)):
        return False
    wide = [t.double() if t.is_floating_point() else t for t in inputs]
    try:
        exact = tensors_of(module(*wide))
    except RuntimeError:  # eager has none in fp64
        return False
    errors = [(error_of(a, e), error_of(b, e)) for a, b, e in zip(got, want, exact, strict=True)]
    sizes = [float(e.abs().nan_to_num(0, 0, 0).max()) if e.numel() else 0.0 for e in exact]
    # Where eager overflows its error is no limit: then it is the tolerance.
    return all(
        ours <= (eagers if math.isfinite(eagers) else 4e-3 * size)
        for (ours, eagers), size in zip(errors, sizes, strict=True)
    )


def error_of(value: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest one of fp16 numbers; none where both are NaN or the same infinity, infinite where one is."""
    half = exact.half()  # infinite beyond the range
    exact = torch.where(half.isinf(), half.double(), exact)
    error = (value.double() - exact).abs()
    error[(value == exact) | (value.isnan() & exact.isnan())] = 0
    return float(error.nan_to_num(torch.inf, torch.inf).max()) if error.numel() else 0.0


def database() -> list[Any]:
    """The operators that count."""
    return [
        info
        for info in op_db
        if torch.float32 in info.dtypes and not info.variant_test_name and not info.name.startswith(_OTHERS)
    ]


KINDS = ("eager", "right", "refused", "raises", "differs")  # the worse, the later


def outcomes(
    info: Any, samples: int | None, dtype: torch.dtype, features: Sequence[str | None] = (None,)
) -> Iterator[Outcome]:
    """Of as many samples of an operator as eager PyTorch takes; None: all."""
    found = (run(info, sample, features) for sample in info.sample_inputs("cpu", dtype, requires_grad=False))
    return itertools.islice((each for each in found if each.kind != "eager"), samples)


def outcome(info: Any, dtype: torch.dtype = torch.float32) -> Outcome:
    """Of the first sample."""
    return next(outcomes(info, 1, dtype), Outcome("eager", "no samples"))


def dtypes(info: Any) -> list[torch.dtype]:
    """f32, and of an operator that a lowering is for those that take other roads; its own test has all."""
    ours = {str(target).split(".")[1] for target in registry.targets() if str(target).startswith("aten")}
    named = {info.aten_name, info.name, info.name.split(".")[-1]} & ours
    others = [] if info.name in OPEN or info.name in REFUSED or not named else (torch.int64, torch.bool)
    return [torch.float32, *(dtype for dtype in others if dtype in info.dtypes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--all", dest="samples", action="store_const", const=None, default=argparse.SUPPRESS)
    parser.add_argument("--dtype", type=lambda name: getattr(torch, name), default=torch.float32)
    parser.add_argument("--features", action="append")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")
    quick_export.install()
    operators: collections.Counter[str] = collections.Counter()
    samples: collections.Counter[str] = collections.Counter()
    for info in database():
        if (given.names and info.name not in given.names) or given.dtype not in info.dtypes:
            continue
        found = list(outcomes(info, given.samples, given.dtype, given.features or (None,)))
        samples.update(each.kind for each in found)
        worst = max(found, key=lambda each: KINDS.index(each.kind), default=Outcome("eager", "no samples"))
        operators[worst.kind] += 1
        if worst.kind != "right":
            counts = dict(collections.Counter(each.kind for each in found))
            print(f"{worst.kind:8} {info.name} {counts}: {' '.join(worst.why.split())[:300]}", flush=True)
    print(f"operators, each by its worst sample: {dict(operators)}; samples: {dict(samples)}", flush=True)


if __name__ == "__main__":
    main()
