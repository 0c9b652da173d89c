# SPDX-License-Identifier: Apache-2.0
"""The second process of the demo: loads the exported file and answers queries. It never imports torch.

python examples/answer.py minilm-int4.pumice vectors.npy
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from minilm import MAX_TOKENS, model_dir
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

import pumice

HERE = Path(__file__).parent


def lines(name: str) -> list[str]:
    text = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [line for line in text if line and not line.startswith("#")]


def encode(session: pumice.Session, tokenizer: Tokenizer, text: str) -> np.ndarray:
    ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
    return session(ids, np.ones_like(ids))[0]


def main(model: str, vectors: str) -> None:
    console = Console(width=None if sys.stdout.isatty() else 110)
    tokenizer = Tokenizer.from_file(str(model_dir() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    started = time.perf_counter()
    session = pumice.load(model)
    loaded = time.perf_counter()
    sentences, queries = lines("sentences.txt"), lines("queries.txt")
    found = np.stack([encode(session, tokenizer, text) for text in sentences])
    embedded = time.perf_counter()
    asked = np.stack([encode(session, tokenizer, text) for text in queries])
    seconds = time.perf_counter() - embedded

    for query, vector in zip(queries, asked, strict=True):
        table = Table(
            title=query, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2)
        )
        scores = found @ vector
        for index in np.argsort(-scores)[:3]:
            table.add_row(f"{scores[index]:.3f}", sentences[index])
        console.print(table)
    device = session.device
    console.print(f"device            {device.name} ({device.kind}), driver {device.driver} {device.driver_version}")
    console.print(f"load              {1e3 * (loaded - started):.0f} ms")
    console.print(
        f"first pass        {1e3 * (embedded - loaded) / len(sentences):.1f} ms a sentence, {len(sentences)} sentences"
    )
    console.print(f"warm              {1e3 * seconds / len(queries):.1f} ms a sentence")
    np.save(vectors, np.concatenate([found, asked]))
    if "torch" in sys.modules:
        raise SystemExit("torch was imported: running a model must not need it")


if __name__ == "__main__":
    main(*sys.argv[1:])
