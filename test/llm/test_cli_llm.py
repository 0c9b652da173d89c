# SPDX-License-Identifier: Apache-2.0
"""`pumice llm` in this process, as a user types it."""

from __future__ import annotations

import csv
import io
import json

import pytest
import torch
from click.testing import CliRunner
from support.command_line import BIN
from support.command_line import run as run_tool
from support.decoders import decoder
from tiny_llama import MAX_SEQ

import pumice
from pumice.cli import cli, main
from pumice.format.text import size_text
from pumice.llm import export_model, methods


def run(*arguments: object, code: int = 0, text: str | None = None):
    done = CliRunner().invoke(cli, ["llm", *map(str, arguments)], input=text)
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done


def test_help_teaches() -> None:
    for command in ("export", "chat", "generate", "bench", "perplexity"):
        assert f"pumice llm {command}" in run(command, "--help").output
        assert f"pumice llm {command}" in run("--help").output


def test_export_writes_the_file_that_python_writes(tiny, file, tmp_path) -> None:
    done = run("export", tiny, "-o", tmp_path / "m.pumice", "--quantize", "int4")
    assert (tmp_path / "m.pumice").read_bytes() == file("int4").read_bytes()
    assert f"m.pumice: {size_text((tmp_path / 'm.pumice').stat().st_size)}" in done.stdout


def test_torchs_default_dtype_does_not_matter(tiny, file, tmp_path) -> None:
    torch.set_default_dtype(torch.float16)
    try:
        pumice.llm.export(tiny, tmp_path / "m.pumice", quantize="int4")
    finally:
        torch.set_default_dtype(torch.float32)
    assert (tmp_path / "m.pumice").read_bytes() == file("int4").read_bytes()


def test_generate_streams_and_tells_the_speed(file, lm) -> None:
    done = run("generate", file("none"), "-p", "| word", "-n", 12)
    assert done.stdout == "".join(lm("none").generate("| word", max_new_tokens=12)) + "\n"
    assert "generated 11 tokens" in done.stderr and "tok/s" in done.stderr
    assert run("generate", file("none"), "-n", 12, text="| word").stdout == done.stdout


def test_generate_with_guesses(file, lm) -> None:
    prompt = "| arena | one device | arena |"
    done = run("generate", file("none"), "-p", prompt, "-n", 12, "--prompt-lookup", 7)
    assert done.stdout == "".join(lm("none").generate(prompt, max_new_tokens=12)) + "\n"
    assert "; guessed " in done.stderr and " of them right" in done.stderr
    refused = run("generate", file("none"), "-p", prompt, "-p", prompt, "--prompt-lookup", 7, code=2)
    assert "--prompt-lookup is for one prompt" in refused.output
    refused = run("generate", file("none"), "-p", prompt, "--prompt-lookup", 8, code=2)
    assert "8 is not in the range 0<=x<=7" in refused.output and "tok/s" not in refused.output


@pytest.mark.parametrize("batch", [1, 4])
def test_several_prompts_give_their_texts_in_order(file, lm, batch) -> None:
    prompts = ["| word", "A value of", "The"]
    done = run("generate", file("none", batch), *(part for prompt in prompts for part in ("-p", prompt)), "-n", 12)
    texts = ["".join(lm("none").generate(prompt, max_new_tokens=12)) for prompt in prompts]
    assert done.stdout == "".join(f"[{index}] {text}\n" for index, text in enumerate(texts))
    assert "generated 36 tokens" in done.stderr


def test_chat_keeps_the_conversation(file, lm) -> None:
    done = run("chat", file("none"), "-n", 8, text="Hi\nAnd?\n\nnot read\n")
    first = "".join(lm("none").chat([{"role": "user", "content": "Hi"}], max_new_tokens=8))
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": first}]
    second = "".join(lm("none").chat([*talk, {"role": "user", "content": "And?"}], max_new_tokens=8))
    assert done.stdout == f"{first}\n{second}\n"


def test_perplexity_is_that_of_eager(file, eager, lm, tmp_path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("| word | meaning | where |\n" * 20)
    tokens = torch.tensor([lm("int4").tokenize(path.read_text())])
    losses = []
    for part in tokens.split(100, dim=1):
        with torch.no_grad():
            logits = eager("int4")(part).logits[0, :-1]
        losses.append(torch.nn.functional.cross_entropy(logits.double(), part[0, 1:], reduction="none"))
    loss = torch.cat(losses).mean()
    text = run("perplexity", file("int4"), path, "--context", 100).stdout
    assert float(text.split()[1]) == pytest.approx(float(loss.exp()), rel=1e-4)
    assert f"{sum(map(len, losses))} tokens" in text


def test_bench_has_the_columns_of_llama_bench(file) -> None:
    options = ("bench", file("int4"), "-p", 6, "-n", 3, "-d", "0,4", "-r", 2)
    lines = run(*options).stdout.splitlines()
    assert lines[0] == "| model | size | backend | device | n_batch | test | t/s |" and len(lines) == 6
    assert [line.split("|")[6].strip() for line in lines[2:]] == ["pp6", "tg3", "pp6 @ d4", "tg3 @ d4"]
    rows = json.loads(run(*options, "-o", "json").stdout)
    assert all(len(row["samples_ts"]) == 2 and row["avg_ts"] > 0 for row in rows)
    table = list(csv.DictReader(io.StringIO(run(*options, "-o", "csv").stdout)))
    assert [row["test"] for row in table] == [row["test"] for row in rows]


def test_bench_draws_tokens_where_it_is_asked_to(file) -> None:
    options = ("-p", 0, "-n", 3, "-d", "0,4", "-r", 1, "--temperature", 1)
    rows = json.loads(run("bench", file("int4"), *options, "-o", "json").stdout)
    assert [row["test"] for row in rows] == ["tg3", "tg3 @ d4"] and all(row["avg_ts"] > 0 for row in rows)


RT = BIN / "pumice-rt", "generate"


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({}, ()),
        ({"temperature": 0.9, "seed": 2**40 + 1}, ("--temperature", 0.9, "--seed", 2**40 + 1)),
        (
            {"temperature": 1.2, "top_k": 30, "top_p": 0.9, "min_p": 0.01, "repeat_penalty": 1.2, "repeat_last": 9},
            ("--temperature", 1.2, "--top-k", 30, "--top-p", 0.9, "--min-p", 0.01,
             "--repeat-penalty", 1.2, "--repeat-last", 9),
        ),
    ],
)  # fmt: skip
def test_the_tool_without_python_makes_the_same_tokens(file, lm, options, flags) -> None:
    model, prompt = lm("int4"), [124, 32, 119]
    want = list(model.generate_tokens(prompt, max_new_tokens=50, **options))
    stops = ",".join(map(str, model.eos)) or 0
    done = run_tool(*RT, file("int4"), "--tokens", "124,32,119", "-n", 50, "--stop", stops, *flags, "--json")
    assert json.loads(done.stdout)["tokens"] == want


def test_the_tool_draws_from_one_token(file, lm) -> None:
    want = list(lm("none").generate_tokens([65], max_new_tokens=1, temperature=1.0))
    done = run_tool(*RT, file("none"), "--tokens", 65, "-n", 1, "--temperature", 1, "--json")
    assert json.loads(done.stdout)["tokens"] == want


@pytest.mark.parametrize(
    ("flags", "match"),
    [
        (("--temperature", -1), "temperature is -1, it must be 0 or more"),
        (("--temperature", "nan"), "temperature is nan"),
        (("--top-p", 0), "top-p is 0, it must be above 0 and at most 1"),
        (("--min-p", 2), "min-p is 2"),
        (("--top-k", -1), "top-k is -1"),
        (("--repeat-penalty", 0), "repeat-penalty is 0"),
        (("--repeat-last", -2), "repeat-last is -2"),
    ],
)
def test_the_tool_names_a_number_out_of_its_range(file, flags, match) -> None:
    assert match in run_tool(*RT, file("none"), "--tokens", 65, *flags, code=2).stderr


def test_the_tool_says_that_a_file_is_too_old(file, tmp_path, monkeypatch) -> None:
    listed = methods.methods
    old = ("prefill", "decode", "score")
    monkeypatch.setattr(export_model, "methods", lambda *sizes: [m for m in listed(*sizes) if m.name in old])
    export_model.export(decoder("llama"), tmp_path / "m.pumice")
    done = run_tool(*RT, tmp_path / "m.pumice", "--tokens", 1, "-n", 2, "--temperature", 1, code=2)
    assert "before tokens could be drawn on the device; export it again" in done.stderr
    lm = pumice.llm.load(tmp_path / "m.pumice")
    assert not lm.draws
    assert len(list(lm.generate_tokens([1], max_new_tokens=4, temperature=1.0))) == 4
    assert "export it again" in run("bench", tmp_path / "m.pumice", "-p", 4, "-n", 4, "--temperature", 1, code=2).output


@pytest.mark.parametrize(
    ("arguments", "code", "match"),
    [
        (("-p", "x" * MAX_SEQ), 3, "tokens, and"),
        (("-p", ""), 3, "no tokens"),
        (("-p", "a", "-p", ""), 3, "prompt 1: the prompt has no tokens"),
        (("-p", "a", "-n", 0), 3, "positive integer"),
        (("-p", "a", "--stop", ""), 3, "stop string"),
        (("-p", "a", "--temperature", "hot"), 2, "not a valid float"),
    ],
)
def test_bad_input_ends_with_a_sentence_and_a_code(file, capsys, arguments, code, match) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["llm", "generate", str(file("none")), *map(str, arguments)])
    assert ended.value.code == code and match in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("-b", 8), "has a batch of 1, not of 8"),
        (("-p", MAX_SEQ, "-d", 1), "do not fit"),
        (("-p", "many"), "no list of whole numbers"),
    ],
)
def test_bench_says_what_the_file_cannot(file, arguments, match) -> None:
    assert match in run("bench", file("none"), *arguments, code=2).output


def test_ctrl_c_ends_cleanly(file, monkeypatch, capsys) -> None:
    from pumice.llm import LanguageModel

    def interrupted(self, text, count, how):
        raise KeyboardInterrupt

    monkeypatch.setattr(LanguageModel, "steps", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["llm", "generate", str(file("none")), "-p", "a"])
    assert ended.value.code == 130
    assert "interrupted" in capsys.readouterr().err
