# SPDX-License-Identifier: Apache-2.0
"""The two files that delegate_bench compares: all-MiniLM-L6-v2 in int4 as a .pte and as a .pumice.

python test/bench/delegate_files.py FOLDER; delegate_bench FOLDER/minilm.pte FOLDER/minilm.pumice 1x128 1x128
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from executorch.exir import to_edge_transform_and_lower

import pumice
from pumice.executorch import PumicePartitioner

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "demo"))


def write(folder: Path) -> None:
    from minilm import build

    module, args, kwargs, dynamic_shapes = build()
    pumice.quantize(module, "int4", group_size=32)
    pumice.export(module, args, kwargs, dynamic_shapes=dynamic_shapes).save(folder / "minilm.pumice")
    exported = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
    edge = to_edge_transform_and_lower(exported, partitioner=[PumicePartitioner({"strict": True})])
    edge.to_executorch().save(str(folder / "minilm.pte"))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
