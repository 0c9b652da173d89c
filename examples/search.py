# SPDX-License-Identifier: Apache-2.0
"""Semantic search with all-MiniLM-L6-v2, quantized to int4 and run by a Vulkan driver. ``./dev demo`` runs it.

This process quantizes, exports, saves, and at the end compares; `answer.py`, started as a second process without torch,
loads the file and answers.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

from rich.console import Console

HERE = Path(__file__).parent
OUT = HERE.parent / "build" / "demo"


def export(path: Path, console: Console):
    """Writes the int4 file; returns the quantized and the float module for the comparison."""
    import copy

    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    from minilm import build

    import pumice

    with console.status("loading all-MiniLM-L6-v2"):
        module, args, kwargs, dynamic_shapes = build()
        original = copy.deepcopy(module)
    started = time.perf_counter()
    with console.status("quantizing to int4, embeddings to int8 (torchao), and exporting"):
        pumice.quantize(module, "int4", group_size=32, embeddings="int8")
        program = pumice.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        program.save(path)
    weights = sum(p.numel() * 4 for p in original.parameters())
    console.print(
        f"exported          {path.stat().st_size / 1e6:.1f} MB (fp32 weights: {weights / 1e6:.1f} MB) in "
        f"{time.perf_counter() - started:.1f} s: {path.relative_to(HERE.parent)}"
    )
    return module, original


def compare(vectors: Path, quantized, original, console: Console) -> bool:
    """Cosine of the driver's vectors with eager PyTorch; True when the quantized model agrees to 0.9999 everywhere."""
    import numpy as np
    import torch
    from answer import lines
    from minilm import MAX_TOKENS, model_dir
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_dir() / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    got = torch.from_numpy(np.load(vectors))
    batch = tokenizer.encode_batch(lines("sentences.txt") + lines("queries.txt"))
    ids, mask = (torch.tensor([getattr(text, name) for text in batch]) for name in ("ids", "attention_mask"))

    def cosines(module) -> torch.Tensor:
        with torch.inference_mode():  # one padded batch: eager PyTorch dequantizes every weight on every call
            return torch.nn.functional.cosine_similarity(got.double(), module(ids, mask).double())

    smallest = cosines(quantized).min().item()
    console.print(
        f"cosine similarity with eager PyTorch, same int4 model   smallest {smallest:.6f} (must be >= 0.9999)"
    )
    console.print(
        f"cosine similarity with the original float model         smallest {cosines(original).min().item():.4f}"
    )
    return smallest >= 0.9999


def main() -> int:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)  # torch, torchao and transformers speak of things that do not concern the demo
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
    console = Console(width=None if sys.stdout.isatty() else 110)
    OUT.mkdir(parents=True, exist_ok=True)
    model, vectors = OUT / "minilm-int4.pumice", OUT / "vectors.npy"
    quantized, original = export(model, console)
    environment = dict(os.environ)
    environment.setdefault("PUMICE_DEVICE", "llvmpipe")  # the documented CPU driver of the demo; name a GPU to use it
    answer = [sys.executable, str(HERE / "answer.py"), str(model), str(vectors)]
    if (code := subprocess.run(answer, env=environment, check=False).returncode) != 0:
        return code
    return 0 if compare(vectors, quantized, original, console) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
