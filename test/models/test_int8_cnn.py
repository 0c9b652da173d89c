# SPDX-License-Identifier: Apache-2.0
"""Networks quantized statically by PT2E: between the first quantize and the last dequantize everything is integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from schemes import pt2e
from torch import nn
from torch.nn import functional as F

import pumice
from pumice import ir

BYTES = (ir.DType.i8, ir.DType.u8)
DIGITS = Path(__file__).parent / "digits.csv.gz"  # 64 pixels of 0..16, and the digit


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU(), nn.Conv2d(8, 8, 1))
        self.last = nn.Sequential(nn.Conv2d(8, 24, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(self.first(x), 2)
        x = F.relu(x + self.deep(x))
        x = F.adaptive_avg_pool2d(self.last(x), 1)
        return self.head(x.flatten(1))


def only_integers(program: pumice.Program) -> None:
    """No tensor is of floats but the input, the result, and the numbers of the weights."""
    method = program.ir.methods[0]
    between = [value for value in method.values if value.kind is ir.ValueKind.scratch]
    assert between and all(value.dtype in BYTES for value in between), [value.dtype.name for value in between]


def test_digits() -> None:
    """A network trained here on real handwritten digits: the class of every held-out one is eager PyTorch's."""
    rows = torch.tensor(np.loadtxt(DIGITS, delimiter=","), dtype=torch.float32)
    torch.manual_seed(0)
    images, labels = rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()
    order = torch.randperm(len(labels))
    train, held = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    model = Cnn()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(5):
        for batch in train[torch.randperm(len(train))].split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    x = images[held]
    quantized = pt2e(is_per_channel=True)(model.eval(), (images[train[: len(x)]],))
    program = pumice.export(quantized, (x,))
    only_integers(program)
    got, want = pumice.load(bytes(program))(x), quantized(x)
    assert (want.argmax(-1) == labels[held]).double().mean() > 0.9
    assert torch.equal(got.argmax(-1), want.argmax(-1))
