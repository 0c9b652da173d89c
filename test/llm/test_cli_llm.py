# SPDX-License-Identifier: Apache-2.0
"""`pumice llm` in this process, as a user types it."""

from __future__ import annotations

import csv
import io
import json

import pytest
import torch
from click.testing import CliRunner
from tiny_llama import MAX_SEQ

from pumice.cli import cli, main


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
    assert "MB" in done.stdout


def test_generate_streams_and_tells_the_speed(file, lm) -> None:
    done = run("generate", file("none"), "-p", "| word", "-n", 12)
    assert done.stdout == "".join(lm("none").generate("| word", max_new_tokens=12)) + "\n"
    assert "generated 11 tokens" in done.stderr and "tok/s" in done.stderr
    assert run("generate", file("none"), "-n", 12, text="| word").stdout == done.stdout


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


@pytest.mark.parametrize(
    ("arguments", "code", "match"),
    [
        (("-p", "x" * MAX_SEQ), 3, "tokens, and"),
        (("-p", ""), 3, "no tokens"),
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

    def interrupted(self, token: int, count: int):
        raise KeyboardInterrupt

    monkeypatch.setattr(LanguageModel, "steps", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["llm", "generate", str(file("none")), "-p", "a"])
    assert ended.value.code == 130
    assert "interrupted" in capsys.readouterr().err
