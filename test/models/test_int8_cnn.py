# SPDX-License-Identifier: Apache-2.0
"""Networks quantized statically by PT2E: between the first quantize and the last dequantize everything is integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from support.schemes import pt2e
from torch import nn
from torch.nn import functional as F

import pumice

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


def check_memory(program: pumice.Program, batch: int) -> None:
    """From `pumice inspect`: floats are only the input, the result and the numbers of the weights, and nothing
    is larger than an image of the first layer (of patches of 3 x 3 it would be nine times that)."""
    method = pumice.inspect(bytes(program))["methods"][0]
    assert [op["name"] for op in method["ops"]].count("quantize") == 1
    assert (method["ops"][0]["name"], method["ops"][-1]["name"]) == ("quantize", "dequantize")
    between = [value for value in method["plan"]["values"] if value["kind"] == "scratch"]
    assert {value["dtype"] for value in between} == {"i8"}
    assert max(value["bytes"] for value in between) == batch * 8 * 8 * 8
    assert method["plan"]["naive_bytes"] < 1.01 * sum(v["bytes"] for v in method["plan"]["values"] if "offset" in v)


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
    check_memory(program, len(x))
    got, want = pumice.load(bytes(program))(x), quantized(x)
    assert (want.argmax(-1) == labels[held]).double().mean() > 0.9
    assert torch.equal(got.argmax(-1), want.argmax(-1))
