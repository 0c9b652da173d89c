# SPDX-License-Identifier: Apache-2.0
"""What ExecuTorch costs: delegate_bench (build/release/bin) with all-MiniLM-L6-v2 in int4, on 1x128 tokens.

python test/bench/delegate_bench.py [--runs N] [--files FOLDER]    FOLDER: where the .pte and the .pumice stay
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from executorch.exir import to_edge_transform_and_lower

import pumice
from pumice.executorch import PumicePartitioner

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))


def write(pte: Path, alone: Path) -> None:
    from minilm import build

    module, args, kwargs, dynamic_shapes = build()
    pumice.quantize(module, "int4", group_size=32)
    pumice.export(module, args, kwargs, dynamic_shapes=dynamic_shapes).save(alone)
    exported = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
    edge = to_edge_transform_and_lower(exported, partitioner=[PumicePartitioner({"strict": True})])
    edge.to_executorch().save(str(pte))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="of each of the two; the default is 100")
    parser.add_argument("--files", type=Path, help="keep the files here, and take them when they are there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.files or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        files = folder / "minilm.pte", folder / "minilm.pumice"
        if not all(file.exists() for file in files):
            write(*files)
        command = [ROOT / "build/release/bin/delegate_bench", *files, "1x128", "1x128", "--runs", str(options.runs)]
        os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")
        return subprocess.run([str(word) for word in command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
