# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's own Llama with its own operators for caches and attention: exported by a configuration file, run by its
runner, compared with eager PyTorch."""

from __future__ import annotations

import ctypes
from pathlib import Path

import executorch
import pytest
import torch
from executorch.runtime import Runtime
from support import llama
from tokenizers import Tokenizer

import pumice
from pumice.executorch.export_llm import export_llm, main
from pumice.partition.planner import plan

LAYERS = 2
WEIGHTS = {"qmode": "4w", "group_size": 32, "use_hqq": False}
SCHEMES = {"float": {}, "4w": WEIGHTS, "8da4w": {**WEIGHTS, "qmode": "8da4w", "embedding_quantize": "4,32"}}
# Queries, keys and values in one product, out, gate and up, down; the head.
FUSED = {"fused_linear": 2 * LAYERS + 1}  # with the norm in front
PRODUCTS = {
    "float": {"linear": 2 * LAYERS, **FUSED},
    "4w": {"linear_q4gsw": 2 * LAYERS, **FUSED},
    "8da4w": {"linear_dq8ca_q4gsw": 5 * LAYERS + 1},
}
PROMPT = "the quick brown fox"


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> dict:
    for library in Path(next(iter(executorch.__path__))).rglob("libexecutorch_kernels_quantized.so"):
        ctypes.CDLL(str(library))
    return llama.write(tmp_path_factory.mktemp("llama"), n_layers=LAYERS)


@pytest.fixture(scope="module", params=SCHEMES)
def lowered(config, request) -> tuple[str, str, torch.nn.Module, dict[str, int]]:
    """The scheme, the .pte (of 8da4w with a quantized embedding), eager's module, and the operators on the device."""
    backend = {"pumice": {"enabled": True, "device": "llvmpipe", "strict": True}}
    output = {**config["export"], "output_name": f"llama_{request.param}"}
    chosen = {**config, "quantization": SCHEMES[request.param], "backend": backend, "export": output}
    path, partitioner = export_llm(chosen)
    assert len(partitioner.report.partitions) == 1 and not partitioner.report.reasons
    return request.param, path, llama.eager(chosen), partitioner.report.operators


def products(operators: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in operators.items() if "linear" in name}


def check_attention(operators: dict[str, int]) -> None:
    """Rotation, caches and attention of a layer are one operator, which finds cos and sin by the position."""
    assert operators["cached_attention_interleaved"] == LAYERS
    assert not {"cached_attention", "sdpa", "cat", "sub", "index_select"} & set(operators), operators


def test_a_decoder_is_one_partition(lowered) -> None:
    scheme, path, _, operators = lowered
    assert operators["embedding_q4gsw" if scheme == "8da4w" else "embedding"] == 1
    assert products(operators) == PRODUCTS[scheme]
    check_attention(operators)
    program = Runtime.get().load_program(path)
    inputs = program.metadata("forward")
    assert inputs.num_inputs() == 2 and inputs.num_outputs() == 1


def test_logits_step_by_step(lowered) -> None:
    """A prompt, single tokens, a second part of a prompt, and the prompt again from the start."""
    scheme, path, module, _ = lowered
    # Where activations are rounded to integers, what differs in its last bit may become another: by 1/255 of a row.
    most = 1e-2 if scheme == "8da4w" else 2e-5
    method = Runtime.get().load_program(path).load_method("forward")
    generator = torch.Generator().manual_seed(5)
    for position, rows in ((0, 6), (6, 1), (7, 1), (8, 5), (13, 1), (0, 3), (3, 1)):
        ids, at = torch.randint(2, llama.VOCAB, (1, rows), generator=generator), torch.tensor([position])
        (got,) = method.execute((ids, at))
        with torch.no_grad():
            want = module(ids, {"input_pos": at})
        assert (got - want).abs().max() <= most * want.abs().max(), (position, rows)
    for position in (-1, llama.SLOTS):
        with pytest.raises(RuntimeError):
            method.execute((torch.ones(1, 1, dtype=torch.int64), torch.tensor([position])))


def test_the_runner_writes_eagers_text(config, lowered) -> None:
    from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

    _, path, module, _ = lowered
    name = str(Path(path).with_name("tokenizer.json"))
    tokenizer, pieces = Tokenizer.from_file(name), []
    TextLLMRunner(path, name).generate(
        PROMPT, GenerationConfig(echo=False, max_new_tokens=24, temperature=0.0), token_callback=pieces.append
    )
    ids, tokens, position = tokenizer.encode(PROMPT).ids, [], 0
    with torch.no_grad():
        while len(tokens) < 24 and llama.EOS not in tokens:
            logits = module(torch.tensor([ids]), {"input_pos": torch.tensor([position])})
            position, ids = position + len(ids), [int(logits.argmax())]
            tokens += ids
    assert len(set(tokens)) > 3 and "".join(pieces) == tokenizer.decode(tokens, skip_special_tokens=False)


@pytest.mark.parametrize(
    ("quantization", "changes"),
    [
        ({}, {}),
        (WEIGHTS, {}),
        ({}, {"use_hf_rope": True}),
        ({}, {"use_hf_rope": True, "partial_rotary_factor": 0.5}),
        ({}, {"use_qk_norm": True, "qk_norm_before_rope": True}),
    ],
    ids=["float", "4w", "use_hf_rope", "partial_rotary_factor", "use_qk_norm"],
)
def test_other_models_without_executorch(tmp_path, quantization, changes) -> None:
    """What the partitioner decides for the program before ExecuTorch's passes, and the same program stand-alone."""
    module = llama.eager({**llama.write(tmp_path, n_layers=LAYERS, **changes), "quantization": quantization})
    args = (torch.tensor([[2, 3, 4]]), {"input_pos": torch.tensor([0])})
    rows = {1: torch.export.Dim("rows", min=1, max=llama.SLOTS - 1)}
    with torch.no_grad():
        exported = torch.export.export(module, args, dynamic_shapes=(rows, {"input_pos": None}))
    exported = exported.run_decompositions({})
    assert len(plan(exported).partitions) == 1
    program = pumice.export(exported)
    operators = dict(program.report.operators)
    if "use_hf_rope" in changes:
        operators["cached_attention_interleaved"] = operators.pop("cached_attention")
    check_attention(operators)
    # Fused: queries, keys and values, gate and up, and the head, each with the norm before it.
    assert products(operators) == PRODUCTS["4w" if quantization else "float"]
    session = pumice.load(bytes(program))
    for position, ids in ((0, [[5, 6, 7, 8]]), (4, [[9]]), (5, [[10, 11]])):
        args = torch.tensor(ids), {"input_pos": torch.tensor([position])}
        with torch.no_grad():
            torch.testing.assert_close(session(*args), module(*args), atol=2e-5, rtol=2e-5)


def test_configurations_that_do_not_fit(config, tmp_path, capsys) -> None:
    cases = [
        ({}, "does not say backend.pumice.enabled: true"),
        ({"backend": {"pumice": {"enabled": True, "devise": "x"}}}, "device"),
        ({"backend": {"pumice": {"enabled": True}, "coreml": {"enabled": True}}}, "not with coreml"),
        ({"backend": {"pumice": {"enabled": True}}, "modell": {}}, "modell"),
    ]
    for change, match in cases:
        with pytest.raises(pumice.InvalidInputError, match=match):
            export_llm({**config, **change})
    file = tmp_path / "llama.yaml"
    file.write_text("backend: {xnnpack: {enabled: true}}\n")
    with pytest.raises(SystemExit):
        main(["--config", str(file)])
    assert "does not say backend.pumice.enabled" in capsys.readouterr().err
