# SPDX-License-Identifier: Apache-2.0
"""`pumice llm`: export, chat, generate, perplexity; cli/llm_bench.py has bench."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from pumice.cli.llm_bench import bench
from pumice.cli.options import Commands, device_options, model_argument
from pumice.format.text import size_text
from pumice.llm.prompt_lookup import CHECKED

if TYPE_CHECKING:
    from pumice.llm import LanguageModel


@click.group(cls=Commands)
def llm() -> None:
    """Language models: from a Hugging Face folder to tokens generated on the GPU.

    \b
    pumice llm export Llama-3.2-1B-Instruct --quantize int4 -o llama.pumice    folder -> file
    pumice llm chat llama.pumice                                               talk to it
    pumice llm generate llama.pumice -p "Once upon a time" -n 128              go on with a text, or with several
    pumice llm bench llama.pumice -p 512 -n 128                                tokens per second
    pumice llm perplexity llama.pumice text.txt                                what quantization cost
    """


@llm.command()
@click.argument("source", metavar="FOLDER | FILE.gguf", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write."
)
@click.option(
    "--quantize",
    type=click.Choice(["none", "int4", "int8", "8da4w"]),
    help="Of the linear layers; int4 is the smallest and the quickest. Default: none; of a .gguf file its own types.",
)
@click.option("--group-size", default=32, show_default=True, help="Weights that share a scale, for int4 and 8da4w.")
@click.option(
    "--embedding",
    type=click.Choice(["int4", "int8", "f16"]),
    help="Of the embedding. Default: floats; as the head where the two are one matrix.",
)
@click.option(
    "--max-seq", type=int, help="Tokens that fit, prompt and answer. Default: 4096, or what the model allows."
)
@click.option("--batch", default=1, show_default=True, help="Sequences at a time.")
@click.option(
    "--cache", type=click.Choice(["f16", "f32", "int8"]), help="Keys and values: as --dtype, or int8 of half that size."
)
@click.option(
    "--dtype", type=click.Choice(["f16", "f32"]), help="Floats. Default: f32 for a float32 checkpoint, else f16."
)
def export(source: Path, output: Path, **options: Any) -> None:
    """Turn a model into a .pumice file; weights are read and quantized one at a time.

    FOLDER is one that transformers saves or the Hugging Face Hub has: config.json, *.safetensors, tokenizer.json. A
    .gguf file keeps its own types where --quantize and --embedding do not say otherwise.
    Tokenizer and chat template travel in the file. When something is missing or cannot run, nothing is written.

    \b
    pumice llm export Qwen3-0.6B --quantize int4 --embedding int4 -o qwen.pumice
    """
    console = Console(stderr=True)
    with console.status("loading PyTorch"):
        from pumice.llm import export as export_model
    with console.status("exporting"):
        program = export_model(source, **options)
    with _bar(console) as bar:
        task = bar.add_task(f"writing {output.name}", total=sum(constant.size for constant in program.ir.constants))
        _watch(program, lambda size: bar.advance(task, size))
        program.save(output)
    for note in program.report.notes:
        click.echo(note, err=True)
    click.echo(f"{output}: {size_text(output.stat().st_size)}")


def _bar(console: Console) -> Progress:
    """A bar with sizes on a terminal, nothing elsewhere."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _watch(program: Any, written: Callable[[int], None]) -> None:
    for constant in program.ir.constants:

        def data(read: Callable[[], bytes] = constant.data, size: int = constant.size) -> bytes:
            stored = read()
            written(size)
            return stored

        constant.data = data


def sampling_options(command: Any) -> Any:
    """How tokens are drawn; the names are llama.cpp's."""
    for option in reversed(
        [
            click.option("-n", "--max-new-tokens", default=128, show_default=True, help="Tokens to generate at most."),
            click.option("--temperature", default=0.0, show_default=True, help="0: always the most probable token."),
            click.option("--top-k", default=0, show_default=True, help="Only the k most probable; 0: all."),
            click.option("--top-p", default=1.0, show_default=True, help="Only as many as reach this probability."),
            click.option("--min-p", default=0.0, show_default=True, help="Only those with this share of the largest."),
            click.option("--repeat-penalty", default=1.0, show_default=True, help="Above 1: repeat less."),
            click.option("--repeat-last", default=64, show_default=True, help="Tokens that count as repeated."),
            click.option("--seed", default=0, show_default=True, help="The same seed gives the same text."),
            click.option("--stop", multiple=True, help="End before this text. Repeatable."),
            click.option(
                "--prompt-lookup",
                "prompt_lookup_num_tokens",
                type=click.IntRange(0, CHECKED - 1),
                default=0,
                show_default=True,
                help="Tokens that a call guesses from the text so far, up to 7.",
            ),
        ]
    ):
        command = option(command)
    return command


@llm.command()
@model_argument
@click.option("-p", "--prompt", multiple=True, help="The text to go on with. Repeatable. Without it, standard input.")
@sampling_options
@device_options
def generate(model: Path, prompt: tuple[str, ...], device, features, cache_dir, **options: Any) -> None:
    """Go on with a text; it streams, and the speed comes at the end on stderr.

    With several prompts, a file exported with --batch runs that many at once; each answer comes whole, after its
    number, in the order of the prompts.

    \b
    pumice llm generate llama.pumice -p "Once upon a time" -n 200 --temperature 0.7 --top-p 0.9 --seed 1
    pumice llm generate llama.pumice -p "Once upon a time" -p "In the beginning" -n 200
    """
    import pumice.llm

    lm = pumice.llm.load(model, device=device, features=features, cache_dir=cache_dir)
    try:
        if len(prompt) > 1:
            if options.pop("prompt_lookup_num_tokens"):
                raise click.UsageError("--prompt-lookup is for one prompt")
            for index, text in enumerate(lm.generate_batch(prompt, **options)):
                click.echo(f"[{index}] {text}")
        else:
            _show(lm.generate(prompt[0] if prompt else click.get_text_stream("stdin").read(), **options))
    finally:
        _speed(lm)


@llm.command()
@model_argument
@click.option("--system", help="What the model is told before the conversation.")
@sampling_options
@device_options
def chat(model: Path, system: str | None, device, features, cache_dir, **options: Any) -> None:
    """Talk to a model: a line is a message, an empty line or Ctrl-D ends; Ctrl-C stops an answer.

    \b
    pumice llm chat llama.pumice --temperature 0.7 --top-p 0.9 -n 512
    """
    import pumice.llm

    lm = pumice.llm.load(model, device=device, features=features, cache_dir=cache_dir)
    messages = [{"role": "system", "content": system}] if system else []
    terminal = sys.stdin.isatty()
    while True:
        if terminal:
            click.echo("> ", nl=False, err=True)
        line = click.get_text_stream("stdin").readline().strip()
        if not line:
            return
        messages.append({"role": "user", "content": line})
        pieces = lm.chat(messages, **options)
        answer = _show(pieces, may_stop=terminal)
        messages.append({"role": "assistant", "content": answer})
        _speed(lm)


def _show(pieces: Iterator[str], may_stop: bool = False) -> str:
    """Prints a text while it comes. `may_stop`: Ctrl-C ends it and not the program."""
    text = ""
    try:
        for piece in pieces:
            text += piece
            click.echo(piece, nl=False)
    except KeyboardInterrupt:
        if not may_stop:
            raise
    click.echo()
    return text


def _speed(lm: LanguageModel) -> None:
    """Tokens per second of the last answer, if there was one, on stderr."""
    if not lm.prompt_tokens:
        return
    prompt = lm.prompt_tokens / lm.prompt_seconds if lm.prompt_seconds else 0.0
    click.echo(
        f"prompt {lm.prompt_tokens} tokens, {prompt:.1f} tok/s; "
        f"generated {lm.decode_tokens} tokens, {lm.tokens_per_second:.1f} tok/s"
        + (f"; guessed {lm.guessed_tokens}, {lm.accepted_tokens} of them right" if lm.guessed_tokens else ""),
        err=True,
    )


@llm.command()
@model_argument
@click.argument("text", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--context", type=int, help="Tokens of a part; each part begins anew. Default: what fits.")
@device_options
def perplexity(model: Path, text: Path, context: int | None, device, features, cache_dir) -> None:
    """How well a model foretells a text: e to the mean loss of its tokens. Compare a quantized file with a float one.

    \b
    pumice llm perplexity llama.pumice wiki.txt
    """
    import pumice.llm
    from pumice.llm.perplexity import perplexity as measure

    lm = pumice.llm.load(model, device=device, features=features, cache_dir=cache_dir)
    found = measure(lm, text.read_text(encoding="utf-8"), context)
    click.echo(f"perplexity {found.perplexity:.4f} +- {found.error:.4f}, loss {found.loss:.4f}, {found.tokens} tokens")


llm.add_command(bench)
