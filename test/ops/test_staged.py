# SPDX-License-Identifier: Apache-2.0
"""A device whose memory is not the host's: which inputs and outputs are copied, and that all have their values."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from support.unfused import Function
from torch.nn import functional as F

import pumice


def norm(x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:])


X = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
IDS = torch.tensor([[3, 1, 0, 3]])
TABLE = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))

# A kernel reads an input where the host has put it; an output is written to the host's memory by the one kernel that
# makes it, if it writes each element once and nothing reads it again. Four words that say whether an index was wrong
# are copied.
CASES = {
    "both": (norm, [X], 0, 0),
    "an input of two kernels": (lambda x: norm(x) @ x.mT, [X], 0, 1),
    "numbers of 64 bits": (lambda ids: F.embedding(ids, TABLE), [IDS], 0, 1),
    "an output that is read": (lambda x: (norm(x), norm(norm(x))), [X], 0, 1),
    "an output in another shape": (lambda x: norm(x).view(-1), [X], 0, 0),
    "the same output twice": (lambda x: (norm(x), norm(x).view(4, 15)), [X], 0, 2),
    "an input that is an output": (lambda x: (norm(x), x), [X], 1, 1),
    "an output of two kernels": (lambda x: torch.cat([norm(x), x]), [X], 0, 1),
    "a large output": (lambda x: norm(x.expand(30000, 5, 12)), [X], 0, 1),
    "empty": (norm, [X[:0]], 0, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_copied(name) -> None:
    function, inputs, copied_in, copied_out = CASES[name]
    module = Function(function)
    session = pumice.load(bytes(pumice.export(module, tuple(inputs))), features="staged")
    for scale in (1, 2):  # the second run finds the values of the first
        given = [x * scale if x.is_floating_point() else x.flip(-1) for x in inputs]
        wanted, got = module(*given), session(*given)
        for a, b in zip(*([v] if isinstance(v, torch.Tensor) else v for v in (wanted, got)), strict=True):
            torch.testing.assert_close(torch.as_tensor(b), a, rtol=1e-5, atol=1e-5)
    rows = Counter(row.operator for row in session.profile(*inputs))
    assert (rows["copy in"], rows["copy out"]) == (copied_in, copied_out)


def test_a_state() -> None:
    """Its update is no input of the next run, and the output that shows it is copied."""

    class Sum(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(5, 12))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total += norm(x)
            return self.total.clone()

    session = pumice.load(bytes(pumice.export(Sum(), (X,))), features="staged")
    for times in (1, 2, 3):
        torch.testing.assert_close(torch.as_tensor(session(X)), times * norm(X), rtol=1e-5, atol=1e-5)
