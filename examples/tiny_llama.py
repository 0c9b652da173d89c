# SPDX-License-Identifier: Apache-2.0
"""A byte-level Llama, trained on two pages of this repository in half a minute and saved as a folder of transformers:

    python examples/tiny_llama.py FOLDER     the second time it is copied from build/llm

It has learnt enough that its choices are sharp, so that greedy tokens can be compared one by one.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import torch
from filelock import FileLock
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).parents[1]
SPECIAL = ("<|end|>", "<|user|>", "<|model|>")
MAX_SEQ, STEPS, ROWS, LENGTH = 384, 900, 2, 128
TEMPLATE = (
    "{% for message in messages %}{{ '<|user|>' if message['role'] == 'user' else '<|model|>' }}"
    "{{ message['content'] }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|model|>{% endif %}"
)


def byte_tokenizer() -> Tokenizer:
    """A token for each byte, and SPECIAL."""
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *SPECIAL]
    tokenizer = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(tokens)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def corpus() -> str:
    """The pages that the model learns."""
    return "\n".join((ROOT / page).read_text(encoding="utf-8") for page in ("docs/glossary.md", "README.md"))


def config() -> LlamaConfig:
    return LlamaConfig(
        vocab_size=256 + len(SPECIAL) + 5,
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=MAX_SEQ,
        tie_word_embeddings=True,
        initializer_range=0.1,
        bos_token_id=None,
        eos_token_id=256,
    )


def train() -> LlamaForCausalLM:
    """The model after STEPS steps: less than half a minute on one core, on which it is quicker than on several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LlamaForCausalLM(config())
    ids = torch.tensor(byte_tokenizer().encode(corpus()).ids)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=STEPS, pct_start=0.1)
    draw = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(STEPS):
        starts = torch.randint(0, len(ids) - LENGTH, (ROWS, 1), generator=draw)
        rows = ids[starts + torch.arange(LENGTH)]
        loss = model(rows, labels=rows).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    torch.set_num_threads(threads)
    mean = sum(losses[-50:]) / 50  # of one step it is 0.4 to 1.2
    print(f"the byte-level model: loss {mean:.2f} after {STEPS} steps")
    assert mean < 0.8, "it has learnt too little"
    return model.eval()


def folder(cache: Path = ROOT / "build/llm") -> Path:
    """The trained model as a folder; from `cache` when it is there."""
    learnt = hashlib.sha256(Path(__file__).read_bytes() + corpus().encode()).hexdigest()[:16]
    path = cache / f"tiny-{learnt}-{torch.__version__}"
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "lock"):  # one of several processes trains
        if not path.is_dir():
            partial = cache / f"{path.name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            save(train(), partial)
            partial.rename(path)
    return path


def save(model: LlamaForCausalLM, path: Path) -> None:
    """As transformers saves it, in two shards."""
    model.save_pretrained(path, max_shard_size="400KB")
    byte_tokenizer().save(str(path / "tokenizer.json"))
    settings = {"eos_token": SPECIAL[0], "chat_template": TEMPLATE}
    (path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": [256]}), encoding="utf-8")


if __name__ == "__main__":
    shutil.copytree(folder(), sys.argv[1], dirs_exist_ok=True)
