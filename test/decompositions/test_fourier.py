# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms by matrices, and complex tensors as pairs of real ones."""

from __future__ import annotations

import pytest
import torch
from support.budget import MATMUL, Budget
from support.many import Many, normal
from torch import fft

import pumice
from pumice.passes.fourier import _turns

# Every element of a transform is a sum over a dimension; of two dimensions, a sum of sums.
TWICE = Budget(rtol=2 * MATMUL.rtol, of_max=2 * MATMUL.of_max, why="MATMUL, then MATMUL of its results")
POLAR = Budget(atol=2e-6, rtol=2e-6, why="sine, cosine and arc tangent of our own, a few ulp of numbers up to 8")


def window(x: torch.Tensor, size: int) -> torch.Tensor:
    return torch.hann_window(size, dtype=x.dtype)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 100, 127])
def test_of_one_dimension(e2e, size) -> None:
    """Both directions, each way to scale; of real and complex numbers; lengths that are cut, and filled up."""
    functions = [
        lambda x, y: fft.fft(x).real, lambda x, y: fft.fft(x, norm="ortho").imag,
        lambda x, y: torch.view_as_real(fft.rfft(x, norm="forward")), lambda x, y: fft.rfft(x, dim=0).real,
        lambda x, y: torch.view_as_real(fft.fft(torch.complex(x, y))), lambda x, y: fft.ifft(torch.complex(x, y)).imag,
        lambda x, y: fft.irfft(torch.complex(x, y), n=size, norm="ortho"), lambda x, y: fft.irfft(fft.rfft(x), n=size),
        lambda x, y: fft.irfft(torch.complex(x, y), n=5), lambda x, y: fft.rfft(x, n=size + 2).imag,
        lambda x, y: fft.hfft(torch.complex(x, y), n=4), lambda x, y: fft.ihfft(x).imag,
    ]  # fmt: skip
    e2e.check(Many(functions), normal(3, size), normal(3, size, seed=2), budget=MATMUL, all_features=size == 7)


def test_of_several_dimensions(e2e) -> None:
    functions = [
        lambda x: torch.view_as_real(fft.rfft2(x)), lambda x: fft.fft2(x, norm="ortho").imag,
        lambda x: torch.view_as_real(fft.rfftn(x, dim=(0, 2, 1))), lambda x: fft.irfft2(fft.rfft2(x), s=x.shape[-2:]),
        lambda x: fft.fftshift(fft.fft(x, dim=-2)).real, lambda x: fft.rfft(x.mT, dim=-2).imag,
        lambda x: fft.irfftn(torch.complex(x, x.flip(0)), s=(3, 4, 5)), lambda x: fft.rfft(x[0, 0]).real,
        lambda x: fft.rfft(x.permute(2, 0, 1)).imag,
    ]  # fmt: skip
    e2e.check(Many(functions), normal(3, 4, 5), budget=TWICE)


def test_a_long_one_is_no_less_exact(e2e) -> None:
    """Against fp64: what rounding the matrix once leaves."""
    e2e.check(Many([lambda x: torch.view_as_real(fft.rfft(x))]), normal(2, 2048), budget=MATMUL, reference="f64")


@pytest.mark.parametrize("size", [1, 6, 1000, 2048])
def test_the_matrix_is_exact_before_it_is_rounded(size) -> None:
    cosine, sine = _turns(size, size, -1)
    exact = fft.fft(torch.eye(size, dtype=torch.float64))
    assert (cosine - exact.real).abs().max() < 4e-16 * 8 and (sine - exact.imag).abs().max() < 4e-16 * 8


@pytest.mark.parametrize(("size", "hop"), [(16, 4), (16, 5), (15, 15), (9, 2)])
def test_of_windows(e2e, size, hop) -> None:
    """torch.stft and torch.istft in all their forms."""
    make = lambda x, **more: torch.stft(x, size, hop, window=window(x, size), return_complex=True, **more)  # noqa: E731
    functions = [
        lambda x: torch.view_as_real(make(x)), lambda x: make(x, normalized=True).real,
        lambda x: make(x[0], center=False, onesided=False).imag, lambda x: make(x, pad_mode="constant").real,
        lambda x: torch.view_as_real(torch.stft(x, size, hop, win_length=size - 2, return_complex=True,
                                                window=window(x, size - 2))),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(2, 90), budget=MATMUL)


@pytest.mark.parametrize(("size", "hop"), [(16, 4), (16, 5), (10, 2), (16, 16)])
def test_back_from_windows(e2e, size, hop) -> None:
    ones = lambda x: torch.ones(size, dtype=x.dtype)  # noqa: E731 (an envelope that is nowhere small)
    functions = [
        lambda x, y: torch.istft(torch.complex(x, y), size, hop, window=ones(x)),
        lambda x, y: torch.istft(torch.complex(x[0], y[0]), size, hop, window=ones(x), normalized=True, length=37),
        lambda x, y: torch.istft(torch.complex(x, y), size, hop, window=ones(x), center=False),
    ]  # fmt: skip
    shape = 2, size // 2 + 1, 13
    e2e.check(Many(functions), normal(*shape), normal(*shape, seed=2), budget=TWICE)


def test_a_number_of_windows_that_changes(e2e) -> None:
    """torch.export itself fixes the length of a signal that torch.stft reads."""
    make = lambda x: torch.istft(torch.complex(x, x), 16, 4, window=window(x, 16))  # noqa: E731
    count = torch.export.Dim("count", min=8, max=400)
    e2e.check(
        Many([make]), normal(2, 9, 40), budget=TWICE, dynamic_shapes={"inputs": ({2: count},)},
        runs=[(normal(2, 9, n),) for n in (8, 9, 400)],
    )  # fmt: skip


def test_arithmetic(e2e) -> None:
    """What a rotary embedding, a mask of a spectrum and a vocoder do."""
    z = torch.complex
    functions = [
        lambda x, y: torch.view_as_real(x * (y.cos() + 1j * y.sin())), lambda x, y: ((1 - z(x, y)) * (2 + 3j) / 4).imag,
        lambda x, y: torch.polar(x, y).conj().imag, lambda x, y: torch.exp(z(x, y)).real, lambda x, y: z(x, y).abs(),
        lambda x, y: (z(x, y) * z(y, x)).sum(-1).real, lambda x, y: z(x, y).to(x.dtype), lambda x, y: (-z(x, y)).imag,
        lambda x, y: torch.where(x > 0, z(x, y), z(y, x)).imag, lambda x, y: z(x, y).view(-1, 2).mT[..., -1].real,
        lambda x, y: torch.cat([z(x, y), z(y, y)], 1).chunk(2, 0)[1].imag, lambda x, y: z(x, y)[0, 0].abs(),
        lambda x, y: (z(x, y) - z(y, x) * 2).real, lambda x, y: (z(x, y) + 3).imag, lambda x, y: (x - z(x, y)).real,
        lambda x, y: torch.sub(z(x, y), z(y, y), alpha=3).imag, lambda x, y: z(x[:1], y[:1]).expand(4, 6).imag,
        lambda x, y: torch.nn.functional.pad(z(x, y), (1, 2)).imag, lambda x, y: (z(x, y) @ z(y, x).mT).imag,
        lambda x, y: (z(x, y) / y.square().add(1)).real, lambda x, y: z(x[:0], y[:0]).abs(),
        lambda x, y: z(x, y).T.imag,
        lambda x, y: torch.view_as_real(torch.view_as_complex(x.reshape(4, 3, 2)) * torch.polar(y[0, :3], y[1, :3])),
        lambda x, y: (z(x, y) * torch.polar(torch.ones(6), torch.arange(6.0)).to(z(x, y).dtype)).real,
        lambda x, y: (z(x, y) * torch.tensor([1 + 2j, 3j] * 3, dtype=z(x, y).dtype).sqrt().conj()).imag,
    ]  # fmt: skip
    budget = Budget(rtol=MATMUL.rtol + POLAR.rtol, of_max=MATMUL.of_max, atol=POLAR.atol, why="POLAR, then MATMUL")
    e2e.check(Many(functions), normal(4, 6), normal(4, 6, seed=2), budget=budget)


def test_angles(e2e) -> None:
    """In all quadrants, on the axes, of zeros with signs; of what is not a number."""
    line = torch.tensor([0.0, -0.0, 1.5, -2.0, torch.inf, -torch.inf, torch.nan])
    functions = [lambda x, y: torch.complex(x, y).angle(), lambda x, y: torch.complex(x, y).abs()]
    e2e.check(Many(functions), line.repeat(7), line.repeat_interleave(7), budget=POLAR, reference="eager")


class Rotary(torch.nn.Module):
    """Turns that a buffer keeps as complex numbers, as the first Llama did."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(5, 3), torch.arange(15.0).reshape(5, 3)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * self.turns[: x.shape[1]]
        return torch.view_as_real(turned).flatten(-2)


def test_a_complex_buffer(e2e) -> None:
    program = e2e.check(Rotary(), normal(2, 4, 6), budget=MATMUL, reference="eager")
    assert not any("complex" in name for name in program.report.operators)


class Times(torch.nn.Module):
    """A complex buffer of any strides, perhaps conjugated."""

    def __init__(self, buffer: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("buffer", buffer)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x * self.buffer).real, (self.buffer * x).imag, self.buffer.abs() * x, (x * self.buffer.sqrt()).imag


def test_complex_buffers_of_every_form(e2e) -> None:
    z = torch.complex(normal(3, 4), normal(3, 4, seed=2))
    for buffer in (z, z.mT, z.conj(), z.mT.conj(), z[1:], z[:, ::2], z[0, 0], z[:0], z.expand(2, 3, 4)):
        e2e.check(Times(buffer), normal(*buffer.shape), budget=POLAR, reference="eager")
    module, x = Times(z.conj()), normal(3, 4)  # a copy, as above, is no longer lazily conjugated
    assert module.buffer.is_conj()
    for got, want in zip(pumice.load(bytes(pumice.export(module, (x,))))(x), module(x), strict=True):
        torch.testing.assert_close(got, want, rtol=POLAR.rtol, atol=POLAR.atol)


def test_joined_with_real_ones(e2e) -> None:
    """Their imaginary part is zero, wherever they stand."""
    z = torch.complex
    functions = [
        lambda x: torch.view_as_real(torch.cat([z(x, x), x])),
        lambda x: torch.view_as_real(torch.cat([x, z(x, -x)], 1)),
        lambda x: torch.stack([z(x, x), torch.zeros(2, 3, dtype=z(x, x).dtype)]).imag,
        lambda x: torch.cat([x.int(), z(x, x), x.int()]).imag, lambda x: z(x, x).squeeze().angle(),
        lambda x: torch.gather(z(x, x), 0, torch.tensor([[1, 0, 1]])).imag,
        lambda x: z(x, x)[torch.tensor([1, 0])].imag,
        lambda x: [part.imag for part in z(x, x).split([1, 2], 1)], lambda x: z(x, x).unbind(0)[1].real,
        lambda x: (z(x, x) * 2j)[None].roll(1, -1).flip(0).imag, lambda x: z(x, x).mean((0, 1)).imag,
        lambda x: torch.where(x > 0, x, z(x, x)).imag, lambda x: torch.view_as_real(z(x, x)).select(-1, -1),
    ]  # fmt: skip
    e2e.check(Many(functions), normal(2, 3), budget=MATMUL)


REFUSED = [
    (lambda x: torch.complex(x, x), r"complex\.default: .* torch\.view_as_real\(x\)"),
    (lambda x: torch.complex(x, x).sqrt().real, r"sqrt\.default: tensors of torch\.complex64 are not"),
    (lambda x: torch.complex(x, x) == 1, r"eq\.Scalar: tensors of torch\.complex64 are not"),
    (lambda x: fft.rfft(x.repeat(1, 700)).real, r"_fft_r2c\.default: .* of 1 to 2048 elements each"),
    (lambda x: fft.rfft(x.double()).real, r"torch\.float64"),
    (lambda x: 1 / torch.complex(x, x).real.sum() * torch.complex(x, x).cumprod(0).imag, r"cumprod"),
]


@pytest.mark.parametrize(("function", "match"), REFUSED)
def test_what_has_no_such_form_is_refused_by_name(e2e, function, match) -> None:
    e2e.refuses(Many([function]), normal(2, 3), match=match)


def test_complex_inputs_are_refused_by_name(e2e) -> None:
    e2e.refuses(Many([lambda z: z.real]), torch.complex(normal(3), normal(3)), match=r"inputs_0: .*view_as_real")


def test_a_length_that_changes_is_refused_by_name(e2e) -> None:
    shapes = {"inputs": ({1: torch.export.Dim("length", min=4, max=9)},)}
    with pytest.raises(pumice.UnsupportedError, match=r"_fft_r2c\.default: .* of a fixed length"):
        pumice.export(Many([lambda x: fft.rfft(x).real]), (normal(2, 6),), dynamic_shapes=shapes)
