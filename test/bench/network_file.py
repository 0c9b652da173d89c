# SPDX-License-Identifier: Apache-2.0
"""Exports a network with random weights, for measuring: MiniLM's shape, or one of test/support/vision.py at 224 x 224.

python test/bench/network_file.py out.pumice ResNet-18 --dtype f16
python test/bench/network_file.py out.pumice MiniLM --quantize int4
pumice-rt bench out.pumice --size batch=1 --size tokens=128
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

import pumice

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import vision

MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bert = BertModel(BertConfig(**MINILM), add_pooling_layer=False)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state


def network(name: str, dtype: torch.dtype) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...], dict[str, Any] | None]:
    """The module, what it is called with, and which sizes change."""
    if name != "MiniLM":
        return vision.network(name).to(dtype), (vision.images(224).to(dtype),), None
    torch.manual_seed(0)
    batch, tokens = torch.export.Dim("batch", min=1, max=32), torch.export.Dim("tokens", min=3, max=256)
    ids = torch.ones(2, 16, dtype=torch.int64)
    sizes = {0: batch, 1: tokens}
    return Encoder().eval().to(dtype), (ids, torch.ones_like(ids)), {"ids": sizes, "mask": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("name", choices=["MiniLM", *vision.NETWORKS])
    parser.add_argument("--dtype", choices=["f32", "f16"], default="f32")
    parser.add_argument("--quantize", choices=["int4"])
    given = parser.parse_args()
    module, args, shapes = network(given.name, torch.float16 if given.dtype == "f16" else torch.float32)
    if given.quantize:
        pumice.quantize(module, given.quantize, group_size=32)
    pumice.export(module, args, dynamic_shapes=shapes).save(given.out)


if __name__ == "__main__":
    main()
