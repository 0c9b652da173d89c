# SPDX-License-Identifier: Apache-2.0
"""Front ends and heads of speech models that are made of Fourier transforms: each is one island."""

from __future__ import annotations

import torch
from support.budget import MATMUL, Budget
from support.many import normal
from torch import nn
from transformers.audio_utils import mel_filter_bank

# Amplitudes are right to MATMUL of the largest, 2^-17; a logarithm turns what that is of a small one into digits.
LOG_MEL = Budget(atol=5e-5, why="bands of noise are above 1/30 of the largest: 0.43 * 2 * 30 * 2^-17 decades, of 4")
DECIBELS = Budget(atol=7e-3, why="the floor is 1/100 of the largest amplitude: 10 * 0.43 * 2 * 100 * 2^-17")


class WhisperLogMel(nn.Module):
    """As WhisperFeatureExtractor computes it: windows of 25 ms, 80 bands, at most 8 decades."""

    def __init__(self) -> None:
        super().__init__()
        bands = mel_filter_bank(201, 80, 0.0, 8000.0, 16000, norm="slaney", mel_scale="slaney")
        self.register_buffer("bands", torch.from_numpy(bands).float())
        self.register_buffer("window", torch.hann_window(400))

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(sound, 400, 160, window=self.window, return_complex=True)
        power = spectrum[..., :-1].abs() ** 2
        decades = torch.clamp(self.bands.T @ power, min=1e-10).log10()
        return (torch.maximum(decades, decades.amax((1, 2), keepdim=True) - 8.0) + 4.0) / 4.0


class Spectrogram(nn.Module):
    """Power in decibels, as torchaudio's transforms of that name make it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hamming_window(64))

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        flat = sound.reshape(-1, sound.shape[-1])
        spectrum = torch.stft(flat, 128, 32, 64, self.window, True, "reflect", False, True, return_complex=True)
        spectrum = spectrum.reshape(sound.shape[:-1] + spectrum.shape[-2:]) / self.window.pow(2).sum().sqrt()
        return 10 * torch.log10(torch.clamp(spectrum.abs().pow(2), min=1e-2))


class VocosHead(nn.Module):
    """Size and phase of a spectrum from features, then a signal."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(32, 258)
        self.register_buffer("window", torch.hann_window(256))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        size, phase = self.out(features).transpose(1, 2).chunk(2, dim=1)
        size = torch.exp(size).clip(max=1e2)
        spectrum = size * (torch.cos(phase) + 1j * torch.sin(phase))
        return torch.istft(spectrum, 256, 64, 256, self.window, center=True)


def test_log_mel_of_whisper(e2e) -> None:
    program = e2e.check(WhisperLogMel(), normal(2, 8000), budget=LOG_MEL)
    assert program.report.operators["matmul"] + program.report.operators.get("linear", 0) >= 2


def test_log_mel_of_a_changing_length(e2e) -> None:
    """In whole hops, which is what torch can prove of the windows (docs/limits.md)."""
    hops = 160 * torch.export.Dim("hops", min=4, max=100)
    lengths = [(normal(2, count, seed=count),) for count in (640, 16000, 8160)]
    e2e.check(WhisperLogMel(), normal(2, 8000), dynamic_shapes={"sound": {1: hops}}, runs=lengths, budget=LOG_MEL)


def test_a_spectrogram(e2e) -> None:
    e2e.check(Spectrogram(), normal(2, 2, 700), budget=DECIBELS)


def test_a_vocoder(e2e) -> None:
    budget = Budget(
        rtol=MATMUL.rtol, of_max=4 * MATMUL.of_max, atol=8e-6,
        why="of MATMUL, exp, our own sine (2e-6) and MATMUL; a sum of four windows",
    )  # fmt: skip
    e2e.check(VocosHead(), normal(1, 40, 32), budget=budget)
