# SPDX-License-Identifier: Apache-2.0
"""Weights are read once, are on the device once, and are freed with the last program that uses them."""

from __future__ import annotations

import psutil
import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Program, Runtime
from support.cpp_host import driver, needs_driver
from support.lowered import Lowered, mlp
from torch import nn

import pumice
from pumice.executorch import PumicePartitioner

MIB = 1 << 20


def resident() -> int:
    return psutil.Process().memory_info().rss


class Big(nn.Module):
    """32 MiB in fp32, for two methods."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2048, 4096, bias=False)

    def forward(self, x):
        return self.layer(x)

    def other(self, x):
        return self.layer(x + 1.0)


def test_methods_share_weights_on_the_device(tmp_path) -> None:
    """Measured as memory of this process, of which llvmpipe's device memory is a part."""
    model, x, path = Big().eval(), torch.ones(1, 2048), tmp_path / "m.pte"
    programs = {}
    for name in ("forward", "other"):
        copy = Big().eval()
        copy.load_state_dict(model.state_dict())
        copy.forward = getattr(copy, name)
        programs[name] = torch.export.export(copy, (x,))
    partitioners = {name: [PumicePartitioner({"strict": True})] for name in programs}
    to_edge_transform_and_lower(programs, partitioner=partitioners).to_executorch().save(str(path))
    del programs
    wants = {"forward": model(x), "other": model.other(x)}

    def load() -> Program:
        return Runtime.get().load_program(path)

    def check(program: Program, name: str) -> None:
        torch.testing.assert_close(program.load_method(name).execute([x])[0], wants[name], atol=1e-4, rtol=1e-5)

    for name in wants:  # the driver's own memory stays
        check(load(), name)
    before = resident()
    program = load()
    check(program, "forward")
    once = resident() - before
    check(program, "other")
    another = load()
    check(another, "other")
    assert once > 30 * MIB and resident() - before < once + 8 * MIB
    del program
    check(another, "other")
    assert resident() - before > 30 * MIB
    del another
    assert resident() - before < 8 * MIB


def test_a_thousand_loads(tmp_path) -> None:
    lowered = Lowered(tmp_path, mlp()[:2], (torch.ones(1, 64),))
    held = lowered.load()  # the device stays open
    program = lowered.program
    want = lowered.eager(torch.ones(1, 64))[0]
    for count in range(1000):
        got = lowered.load().execute((torch.ones(1, 64),))[0]
        if count == 50:
            before = resident()
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    assert resident() < before + 4 * MIB
    del held, program


@needs_driver
def test_a_large_program_is_read_once_and_its_bytes_are_given_back(tmp_path) -> None:
    """64 MiB of int4 weights. They are on the device already, by another load: llvmpipe's is host memory, too."""
    layers = [nn.Linear(4096, 8192, bias=False) if i % 2 == 0 else nn.Linear(8192, 4096, bias=False) for i in range(4)]
    module = pumice.quantize(nn.Sequential(*layers).eval(), "int4", group_size=128)
    lowered = Lowered(tmp_path, module, (torch.ones(1, 4096),))
    assert lowered.report.operators == {"linear_q4gsw": 4} and not lowered.report.reasons
    # Memory that ExecuTorch frees is returned to the system at once, so that it can be measured.
    words = driver("memory", lowered.path, lowered.path, MALLOC_MMAP_THRESHOLD_="65536").split()
    said = {key: int(value) for key, value in zip(words[::2], words[1::2], strict=True)}
    assert said["file"] > 64 * MIB
    assert said["read"] < said["file"] + MIB  # every byte at most once
    assert said["after"] - said["before"] < 4 * MIB
    assert said["peak"] - said["before"] < said["file"] + 4 * MIB  # ExecuTorch's copy and no other
