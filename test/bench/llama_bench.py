# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of ExecuTorch's own Llama with random weights: Pumice beside XNNPACK, in one process.

python test/bench/llama_bench.py [--layers N] [--dim N] [--quantize none|8da4w] [-p TOKENS] [-n TOKENS] [-r RUNS]
                                 [--keep FOLDER]

Both .pte files come from one configuration (caches and attention by ExecuTorch's operators, 8da4w with an embedding of
4 bits) and run in ExecuTorch's Python runtime: a prompt of p tokens, then n single tokens. Runs of the two take turns,
each first every other time; the table has the medians and, in parentheses, the slowest and the fastest run. Its last
row compares neighbouring runs, which other work on the machine slows down alike. Exits with 1 where the two do not
compute the same: 8da4w rounds activations, so its last logits may differ by a few hundredths of the largest. There is
no 4w: in ExecuTorch 1.5 its logits with XNNPACK are not those of eager PyTorch, but a hundred times as large.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch


def configuration(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    heads = options.dim // 64
    params = {"dim": options.dim, "n_layers": options.layers, "n_heads": heads, "n_kv_heads": max(heads // 4, 1)}
    params |= {"hidden_dim": options.dim * 11 // 4 // 64 * 64, "vocab_size": options.vocab, "norm_eps": 1e-5}
    (folder / "params.json").write_text(json.dumps(params))
    torch.manual_seed(0)
    model = construct_transformer(ModelArgs(**params))
    torch.save({name: value.detach() for name, value in model.named_parameters()}, folder / "model.pt")
    slots = options.prompt + options.tokens + 1
    quantization = {} if options.quantize == "none" else {"qmode": options.quantize, "group_size": 32, "use_hqq": False}
    if options.quantize == "8da4w":
        quantization["embedding_quantize"] = "4,32"
    return {
        "base": {"params": f"{folder}/params.json", "checkpoint": f"{folder}/model.pt"},
        "model": {"use_kv_cache": True, "use_sdpa_with_kv_cache": True},
        "quantization": quantization,
        "export": {"max_seq_length": slots, "max_context_length": slots, "output_dir": str(folder)},
    }


def export(config: dict[str, Any], options: argparse.Namespace) -> dict[str, str]:
    from executorch.examples.models.llama.export_llama_lib import export_llama
    from executorch.extension.llm.export.config.llm_config import LlmConfig
    from omegaconf import OmegaConf

    from pumice.executorch.export_llm import export_llm

    files = {"Pumice": export_llm({**config, "backend": {"pumice": {"enabled": True, "strict": True}}})[0]}
    config = {**config, "backend": {"xnnpack": {"enabled": True, "extended_ops": True}}}
    if options.keep:  # for a host without torch, which ExecuTorch's operators for attention need
        config["model"] = {**config["model"], "use_sdpa_with_kv_cache": False}
    files["XNNPACK"] = export_llama(OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(LlmConfig), config)))
    return files


def run(method: Any, options: argparse.Namespace) -> tuple[float, float, torch.Tensor]:
    """(tokens per second of the prompt, of the tokens after it, the last logits)."""
    ids = torch.arange(options.prompt)[None] % options.vocab
    begin = time.perf_counter()
    method.execute((ids, torch.tensor([0])))
    middle = time.perf_counter()
    for position in range(options.prompt, options.prompt + options.tokens):
        (logits,) = method.execute((torch.tensor([[position % options.vocab]]), torch.tensor([position])))
    end = time.perf_counter()
    return options.prompt / (middle - begin), options.tokens / (end - middle), logits.clone()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--quantize", choices=["none", "8da4w"], default="8da4w")
    parser.add_argument("-p", "--prompt", type=int, default=64)
    parser.add_argument("-n", "--tokens", type=int, default=32)
    parser.add_argument("-r", "--runs", type=int, default=5)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave both files there, for llama_host")
    options = parser.parse_args()
    os.environ.setdefault("PUMICE_DEVICE", "llvmpipe")
    import executorch
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401 (the operators of what XNNPACK leaves)
    from executorch.runtime import Runtime

    for library in Path(next(iter(executorch.__path__))).rglob("libexecutorch_kernels_quantized.so"):
        ctypes.CDLL(str(library))
    with tempfile.TemporaryDirectory() as folder:
        files = export(configuration(options, Path(folder)), options)
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for name, path in files.items():
                shutil.copy(path, options.keep / f"{name}.pte")
        programs = {name: Runtime.get().load_program(path) for name, path in files.items()}
        methods = {name: program.load_method("forward") for name, program in programs.items()}
    last = {name: run(method, options)[2] for name, method in methods.items()}  # and warm
    difference = float((last["Pumice"] - last["XNNPACK"]).abs().max() / last["XNNPACK"].abs().max())
    most = 5e-2 if options.quantize == "8da4w" else 1e-4
    if not difference <= most:
        print(f"last logits differ by {difference:.1e} of the largest, {most:.1e} is allowed", file=sys.stderr)
        return 1
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for turn in range(options.runs):
        for name in (*methods,) if turn % 2 == 0 else (*reversed(methods),):
            rates[name].append(run(methods[name], options)[:2])
    print(f"last logits differ by {difference:.1e} of the largest")
    print(f"| tokens/s | prompt of {options.prompt} | {options.tokens} single tokens |\n|---|---|---|")
    for name, pairs in rates.items():
        print(row(name, pairs, 1))
    neighbours = zip(rates["Pumice"], rates["XNNPACK"], strict=True)
    print(row("Pumice : XNNPACK", [(a / c, b / d) for (a, b), (c, d) in neighbours], 2))
    return 0


def row(name: str, pairs: list[tuple[float, float]], digits: int) -> str:
    """Of the table: medians, the least and the largest, of both columns."""
    columns = list(zip(*pairs, strict=True))
    middle = (f"{statistics.median(c):.{digits}f} ({min(c):.{digits}f} to {max(c):.{digits}f})" for c in columns)
    return f"| {name} | {' | '.join(middle)} |"


if __name__ == "__main__":
    sys.exit(main())
