# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of a language model in floats: Pumice beside eager PyTorch, in one process.

python test/bench/eager_bench.py FOLDER [-p TOKENS] [-n TOKENS] [-r RUNS] [--device llvmpipe]

FOLDER is one of transformers, as examples/tiny_llama.py makes it. Both continue a prompt of p tokens by the most
probable n tokens, with a cache; runs of the two take turns. Exits with 1 where their tokens differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedModel

import pumice.llm


def by_eager(model: PreTrainedModel, prompt: list[int], count: int) -> tuple[list[int], float]:
    """The tokens, and tokens per second of all but the first."""
    cache = DynamicCache(config=model.config)

    def best(tokens: list[int]) -> int:
        return int(model(torch.tensor([tokens]), past_key_values=cache, use_cache=True).logits[0, -1].argmax())

    with torch.no_grad():
        made = [best(prompt)]
        begin = time.perf_counter()
        while len(made) < count:
            made.append(best(made[-1:]))
    return made, (count - 1) / (time.perf_counter() - begin)


def by_pumice(lm: pumice.llm.LanguageModel, prompt: list[int], count: int) -> tuple[list[int], float]:
    """The same."""
    made = list(lm.generate_tokens(prompt, max_new_tokens=count))
    return made, lm.tokens_per_second


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-p", "--prompt", type=int, default=8)
    parser.add_argument("-n", "--tokens", type=int, default=256)
    parser.add_argument("-r", "--runs", type=int, default=7)
    parser.add_argument("--device", default=os.environ.get("PUMICE_DEVICE", "llvmpipe"))
    options = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(options.folder).float().eval()
    with tempfile.TemporaryDirectory() as folder:
        pumice.llm.export(options.folder, Path(folder) / "m.pumice", quantize="none", dtype="f32")
        lm = pumice.llm.load(Path(folder) / "m.pumice", device=options.device)
    prompt = [token % 64 for token in range(options.prompt)]
    sides: dict[str, Callable[[], tuple[list[int], float]]] = {
        "eager": lambda: by_eager(model, prompt, options.tokens),
        "Pumice": lambda: by_pumice(lm, prompt, options.tokens),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(options.runs + 1):  # the first one warms up
        made = {name: side() for name, side in sides.items()}
        eager, ours = (tokens for tokens, _ in made.values())
        if ours != eager[: len(ours)]:  # ours end with the text
            print(f"tokens differ: eager {eager}, Pumice {ours}", file=sys.stderr)
            return 1
        for name, (_, rate) in made.items():
            rates[name] += [rate] if turn else []
    print(f"{options.tokens} tokens, {torch.get_num_threads()} threads of PyTorch")
    for name, each in rates.items():
        print(f"{name:8} {statistics.median(each):.0f} tokens/s ({min(each):.0f} to {max(each):.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
