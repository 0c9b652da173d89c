# SPDX-License-Identifier: Apache-2.0
"""Products whose kernel reads x by its address, as those of CPU drivers do, beside the same ones by descriptors. What
is recorded has the address of a buffer that may grow, and of a part of one."""

from __future__ import annotations

import pytest
import torch
from support.device import is_llvmpipe
from support.quantized import check_linear, quantized

import pumice

LAYERS = {
    "q4": lambda: quantized(torch.nn.Linear(192, 37), 4, 32),
    "q4, a tail": lambda: quantized(torch.nn.Linear(90, 35), 4, None),
    "q8": lambda: quantized(torch.nn.Linear(72, 48), 8, None),
    "float": lambda: torch.nn.Linear(70, 33),
}
ROWS = (1, 2, 300, 5, 1, 8, 2000, 17, 300)  # a larger one takes other memory, and then the smaller ones do, too


def kernels(session: pumice.Session, x: torch.Tensor) -> list[str]:
    return [row.kernel for row in session.profile(x) if "linear_gemv_rows" in row.kernel]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_both_ways(name, dtype) -> None:
    torch.manual_seed(3)
    layer = LAYERS[name]().to(dtype).eval()
    columns = layer.weight.shape[1]
    dims = ({0: torch.export.Dim("m", min=1, max=4096)},)
    data = bytes(pumice.export(layer, (torch.zeros(3, columns, dtype=dtype),), dynamic_shapes=dims))
    features = ["kernel=gemvr8", "kernel=gemvr8,-addresses", "kernel=gemvr8,staged", "kernel=gemvr8,max_storage=16k"]
    sessions = {text: pumice.load(data, features=text) for text in features}
    for rows in ROWS:
        x = torch.randn(rows, columns).to(dtype)
        results = {text: session(x) for text, session in sessions.items()}
        check_linear(results[features[0]], x, layer, f"{name}, {rows} rows")
        for text, got in results.items():
            assert torch.equal(got, results[features[0]]), f"{text}, {rows} rows"
    if is_llvmpipe():
        x = torch.randn(5, columns).to(dtype)
        assert all("address" in kernel for kernel in kernels(sessions[features[0]], x))
        assert all("bound" in kernel for kernel in kernels(sessions[features[1]], x))
