# SPDX-License-Identifier: Apache-2.0
"""One delegate called from many threads: every call gets the answer to its own inputs."""

from __future__ import annotations

import torch
from support.cpp_host import driver, needs_driver
from torch import nn

import pumice


class Twice(nn.Module):
    def forward(self, x):
        return x * 2


@needs_driver
def test_every_answer_belongs_to_its_call(tmp_path) -> None:
    path = tmp_path / "twice.pumice"
    pumice.export(Twice(), (torch.ones(64),)).save(path)  # a delegate's blob is such a file
    assert driver("threads", path, 200) == "1600\n"
