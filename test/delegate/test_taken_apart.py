# SPDX-License-Identifier: Apache-2.0
"""What pumice.export makes of other operators is delegated whole by the partitioner, too: one call for each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from support.graphs import Function
from support.lowered import Lowered
from support.many import normal
from torch.nn import functional as F
from transformers.integrations import moe  # noqa: F401 (registers its operator)

import pumice
from pumice.decompositions.table import our_own
from pumice.executorch import PumicePartitioner, not_in_core_aten
from pumice.executorch.taken_apart import _hypot
from pumice.passes.complex_pairs import TRANSFORMS
from pumice.passes.decompositions import decompositions

aten = torch.ops.aten
X = normal(4, 6)
GRID = normal(1, 2, 2, 2, 3)
W = torch.ones(16)
ROWS, MATRICES, ENDS = normal(4, 16), normal(3, 16, 32), torch.tensor([1, 1, 4], dtype=torch.int32)
grouped = torch.ops.transformers.grouped_mm_fallback
CALLS: dict[str, Callable[[torch.Tensor], object]] = {
    "searchsorted.Tensor": lambda x: torch.searchsorted(x.sort(-1).values, x),
    "searchsorted.Scalar": lambda x: torch.searchsorted(x[0].sort().values, 0.5),
    "bucketize.Tensor": lambda x: torch.bucketize(x, x[0].sort().values),
    "bucketize.Scalar": lambda x: torch.bucketize(0.5, x[0].sort().values),
    "mode.default": lambda x: x.round().mode(-1)[0],
    "nanmedian.dim": lambda x: x.nanmedian(-1)[0],
    "nanmedian.default": lambda x: x.nanmedian(),
    "histc.default": lambda x: x.histc(5),
    "histogram.bin_ct": lambda x: tuple(x.histogram(5)),
    "histogram.bins_tensor": lambda x: tuple(x.histogram(x[0].sort().values)),
    "take.default": lambda x: x.take(torch.tensor([3, -1])),
    "put.default": lambda x: x.put(torch.tensor([1, 2]), x[0, :2]),
    "diagonal_scatter.default": lambda x: x.diagonal_scatter(x[0, :4]),
    "as_strided_scatter.default": lambda x: x.as_strided_scatter(x[0, :4], (4,), (2,)),
    "nonzero_static.default": lambda x: x.nonzero_static(size=3),
    "_cdist_forward.default": lambda x: torch.cdist(x, x + 1),
    "_pdist_forward.default": lambda x: F.pdist(x),
    "bilinear.default": lambda x: F.bilinear(x, x, x.repeat(3, 3).view(3, 6, 12)[..., :6]),
    "addbmm.default": lambda x: torch.addbmm(x[:, :4], x[None], x.mT[None]),
    "_upsample_bilinear2d_aa.default": lambda x: F.interpolate(x[None, None], (2, 3), mode="bilinear", antialias=True),
    "_upsample_bicubic2d_aa.default": lambda x: F.interpolate(x[None, None], (2, 3), mode="bicubic", antialias=True),
    "grid_sampler_3d.default": lambda x: F.grid_sample(x.reshape(1, 1, 2, 3, 4), GRID, align_corners=False),
    "adaptive_max_pool2d.default": lambda x: F.adaptive_max_pool2d(x[None], (2, 3)),
    "adaptive_max_pool3d.default": lambda x: F.adaptive_max_pool3d(x[None, None], (1, 2, 3)),
    "transformers.grouped_mm_fallback.default": lambda x: grouped(x.mean() * ROWS, MATRICES, ENDS),
    "angle.default": lambda x: x.angle(),
    "signbit.default": lambda x: x.signbit(),
    "erfinv.default": lambda x: x.erfinv(),
    "i0.default": lambda x: x.i0(),
    "special_i0e.default": lambda x: torch.special.i0e(x),
    "special_i1.default": lambda x: torch.special.i1(x),
    "special_i1e.default": lambda x: torch.special.i1e(x),
    "linspace.default": lambda x: x[0, :5] + torch.linspace(1, 9, 5),
    "frexp.Tensor": lambda x: tuple(torch.frexp(x)),
    "_softmax_backward_data.default": lambda x: aten._softmax_backward_data(x, x.softmax(1), 1, x.dtype),
    "unfold_backward.default": lambda x: aten.unfold_backward(x, [9], 0, 6, 1),
    "_fft_r2c.default": lambda x: torch.stft(x.reshape(1, -1), 16, 4, window=W, return_complex=True).abs(),
    "_fft_c2c.default": lambda x: torch.view_as_real(torch.fft.fft2(x)),
    "_fft_c2r.default": lambda x: torch.istft(torch.complex(x, -x), 6, 2, window=W[:6], center=False),
}
# Made of random numbers, whose seed is a state of a session: ExecuTorch's kernels draw them.
RANDOM = {"bernoulli.p", "multinomial.default", "normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor"}
# torch takes these apart before ExecuTorch asks a partitioner.
EARLY = {"multi_margin_loss.default", "multilabel_margin_loss_forward.default"}
BF16 = {"_grouped_mm.default"}  # torch exports it in bfloat16 alone, which is none of a partition's dtypes


NOT_OF_CORE = {"mode.default", "signbit.default"}  # made of cummax, and of copysign, which sees the sign of a NaN


def test_every_one_has_a_call() -> None:
    names = {str(target).removeprefix("aten.") for target in [*our_own(), *TRANSFORMS]}
    assert names == CALLS.keys() | RANDOM | EARLY | BF16


@pytest.mark.parametrize("name", CALLS)
def test_both_take_it(name) -> None:
    module = Function(CALLS[name])
    table = {target: made for target, made in decompositions(dropout=False).items() if target not in our_own()}
    whole = torch.export.export(module, (X,)).run_decompositions(table)
    assert name in {str(node.target).removeprefix("aten.") for node in whole.graph.nodes}, "the call is of another one"
    assert not pumice.export(module, (X,)).report.reasons
    assert delegated(module, core_only=name not in NOT_OF_CORE)


def delegated(module: torch.nn.Module, core_only: bool) -> bool:
    """Whether the partitioner takes all of it; with core_only as ExecuTorch is by default."""
    partitioner = PumicePartitioner()
    config = EdgeCompileConfig(_core_aten_ops_exception_list=[] if core_only else not_in_core_aten())
    exported = torch.export.export(module, (X,))
    to_edge_transform_and_lower(exported, partitioner=[partitioner], compile_config=config)
    return not partitioner.report.reasons and len(partitioner.report.partitions) == 1


OUTSIDE = {
    "copysign.Tensor": lambda x: x.copysign(-x), "cummax.default": lambda x: tuple(x.cummax(0)),
    "cummin.default": lambda x: tuple(x.cummin(0)), "cumprod.default": lambda x: x.cumprod(0),
    "digamma.default": lambda x: x.digamma(), "erfc.default": lambda x: x.erfc(), "exp2.default": lambda x: x.exp2(),
    "fmax.default": lambda x: x.fmax(-x), "fmin.default": lambda x: x.fmin(-x), "hypot.default": lambda x: x.hypot(-x),
    "kthvalue.default": lambda x: tuple(x.kthvalue(2)), "lgamma.default": lambda x: x.lgamma(),
    "logcumsumexp.default": lambda x: x.logcumsumexp(0), "median.default": lambda x: x.median(),
    "median.dim": lambda x: tuple(x.median(0)), "nextafter.default": lambda x: x.nextafter(-x),
    "round.decimals": lambda x: x.round(decimals=2), "sort.stable": lambda x: tuple(x.sort(stable=True)),
    "var_mean.correction": lambda x: torch.var_mean(x, dim=0),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_not_in_core_aten_passes_where_it_is_let(name) -> None:
    module = Function(OUTSIDE[name])
    assert name in {str(target).removeprefix("aten.") for target in not_in_core_aten()}
    assert not pumice.export(module, (X,)).report.reasons and delegated(module, core_only=False)


def test_sizes_of_complex_numbers_do_not_overflow() -> None:
    """The form of core ATen, against fp64."""
    values = [0.0, -0.0, 1.0, -3.0, 1e-30, 3e38, 2e38, torch.inf, -torch.inf, torch.nan]
    x, y = torch.tensor(values).repeat(10), torch.tensor(values).repeat_interleave(10)
    torch.testing.assert_close(_hypot(x, y), torch.hypot(x, y), rtol=4e-7, atol=0, equal_nan=True)


def test_a_front_end_of_speech_runs(tmp_path) -> None:
    """Right, too, with the transform as a constant of the .pte."""
    lowered = Lowered(
        tmp_path, Function(lambda x: torch.stft(x, 16, 4, window=W, return_complex=True).abs()), (normal(2, 90),)
    )
    assert not lowered.report.reasons and len(lowered.report.partitions) == 1
    lowered.check(lowered.load(), normal(2, 90), atol=1e-5)
