# SPDX-License-Identifier: Apache-2.0
"""The same model handed to ExecuTorch with Pumice's partitioner and with that of ExecuTorch's own Vulkan backend: how
many parts run on the device, and how many operators between them are left to the CPU.

python -m support.delegates    writes the table of docs/executorch.md"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers as t
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn

from pumice.executorch import PumicePartitioner

PAGE = Path(__file__).parents[2] / "docs/executorch.md"
BEGIN, END = "<!-- from test/support/delegates.py -->\n", "<!-- end -->\n"
PARTITIONERS = {"Pumice": PumicePartitioner, "Vulkan": VulkanPartitioner}


@dataclass(frozen=True)
class Share:
    """parts: calls of a delegate in the lowered program; left: operators outside of them."""

    parts: int
    left: int

    def __str__(self) -> str:
        return "whole" if (self.parts, self.left) == (1, 0) else f"{self.parts}; {self.left} left"


class First(nn.Module):
    """The first result of a model, with caches switched off."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)[0]


_TEXT = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128, "vocab_size": 100,
}  # fmt: skip
_STAGES = {"hidden_sizes": [8, 16, 32, 32], "depths": [1, 1, 1, 1]}
_WHISPER = {"encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 64, "max_source_positions": 50}
_MIXTURE = {"num_key_value_heads": 1, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}


def _text(model: Callable, config: Any) -> tuple[nn.Module, torch.Tensor]:
    return First(model(config)), torch.arange(16).reshape(1, 16)


def _image(model: Callable, config: Any, size: int = 64) -> tuple[nn.Module, torch.Tensor]:
    return First(model(config)), torch.randn(1, 3, size, size)


def _whisper() -> tuple[nn.Module, torch.Tensor]:
    encoder = t.models.whisper.modeling_whisper.WhisperEncoder(t.WhisperConfig(d_model=64, **_WHISPER))
    return First(encoder), torch.randn(1, 80, 100)


MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "BERT": lambda: _text(t.BertModel, t.BertConfig(**_TEXT)),
    "Llama": lambda: _text(t.LlamaForCausalLM, t.LlamaConfig(**_TEXT, use_cache=False)),
    "Qwen3-MoE": lambda: _text(
        t.Qwen3MoeForCausalLM, t.Qwen3MoeConfig(**_TEXT, **_MIXTURE, head_dim=32, use_cache=False)
    ),
    "T5, encoder": lambda: _text(t.T5EncoderModel, t.T5Config(d_model=64, d_kv=16, d_ff=64, num_layers=2, num_heads=2)),
    "Whisper, encoder": _whisper,
    "ResNet": lambda: _image(t.ResNetForImageClassification, t.ResNetConfig(embedding_size=16, **_STAGES)),
    "MobileNetV2": lambda: _image(t.MobileNetV2ForImageClassification, t.MobileNetV2Config(image_size=64)),
    "ConvNeXt": lambda: _image(t.ConvNextForImageClassification, t.ConvNextConfig(**_STAGES)),
    "ViT": lambda: _image(
        t.ViTModel,
        t.ViTConfig(
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=128,
            image_size=32,
            patch_size=8,
        ),
        32,
    ),
    "SegFormer": lambda: _image(
        t.SegformerForImageClassification, t.SegformerConfig(**_STAGES, num_attention_heads=[1, 2, 2, 2])
    ),
}


def share(name: str, backend: str) -> Share | str:
    """What the partitioner of a backend takes, or the name of the error with which lowering ended."""
    torch.manual_seed(0)
    model, x = MODELS[name]()
    program = torch.export.export(model.eval(), (x,), strict=False)
    try:
        lowered = to_edge_transform_and_lower(
            program, partitioner=[PARTITIONERS[backend]()], compile_config=EdgeCompileConfig(_check_ir_validity=False)
        )
    except Exception as error:
        return f"lowering ends with {type(error).__name__}"
    targets = [str(node.target) for node in lowered.exported_program().graph.nodes if node.op == "call_function"]
    parts = sum("executorch_call_delegate" in target for target in targets)
    return Share(parts, len(targets) - parts - sum("getitem" in target for target in targets))


def row(name: str) -> str:
    return f"| {name} | {' | '.join(str(share(name, backend)) for backend in PARTITIONERS)} |\n"


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rows = []
    for name in MODELS:
        rows.append(row(name))
        print(rows[-1], end="", flush=True)
    head = "| model | Pumice | ExecuTorch's Vulkan backend |\n|---|---|---|\n"
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + head + "".join(rows) + END + rest.split(END, 1)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
