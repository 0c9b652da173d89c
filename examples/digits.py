# SPDX-License-Identifier: Apache-2.0
"""A convolutional network learns handwritten digits, becomes int8, and reads others on a Vulkan driver.

``./dev demo vision`` runs it. Nothing is fetched: the 1,797 images are in the checkout. It prints a table, and writes
build/demo/digits.html, one page with the images and what the device reads in them.
"""

from __future__ import annotations

import base64
import io
import logging
import os
import sys
import time
import warnings
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
DIGITS = ROOT / "test/models/digits.csv.gz"  # 64 pixels of 0 to 16, and the digit
OUT = ROOT / "build/demo"
SHOWN = 40  # images in the picture


def digits() -> tuple[Any, Any, Any, Any]:
    """Images [n, 1, 8, 8] from 0 to 1 and their digits: two thirds to learn from, and one third that is held out."""
    import torch

    rows = torch.tensor(np.loadtxt(DIGITS, delimiter=","), dtype=torch.float32)
    images, labels = rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, held = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    return images[train], labels[train], images[held], labels[held]


def network() -> Any:
    """Two convolutions, one of them depthwise, and a linear layer: 2,200 numbers."""
    from torch import nn

    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ReLU(), nn.Conv2d(16, 32, 1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10)),
    )


def train(images: Any, labels: Any, epochs: int = 10) -> Any:
    """The network after some passes over the images; in evaluation mode."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)  # batches are small: threads would wait for one another
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    return model.eval()


def grid(images: Any, read: Any, labels: Any) -> str:
    """An SVG picture of images, each with the digit that was read; in red with the right one where that is wrong."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, SHOWN // 4, figsize=(10, 4.8))
    for axis, image, got, want in zip(axes.flat, images, read, labels, strict=False):
        axis.imshow(image[0], cmap="gray_r", vmin=0, vmax=1)
        axis.set_title(str(got) if got == want else f"{got}, is {want}", color="black" if got == want else "#b00020")
    for axis in axes.flat:
        axis.axis("off")
    figure.tight_layout()
    return _svg(figure)


def confusion(read: Any, labels: Any) -> str:
    """An SVG picture of how often each digit was read as which."""
    from matplotlib import pyplot

    counts = np.zeros((10, 10), int)
    np.add.at(counts, (np.asarray(labels), np.asarray(read)), 1)
    figure, axis = pyplot.subplots(figsize=(5, 4.6))
    axis.imshow(np.where(np.eye(10, dtype=bool), np.nan, counts), cmap="Reds", vmin=0, vmax=max(4, counts.max() // 20))
    for row, column in np.ndindex(10, 10):
        if counts[row, column]:
            axis.text(column, row, counts[row, column], ha="center", va="center")
    axis.set(xlabel="read", ylabel="is", xticks=range(10), yticks=range(10))
    figure.tight_layout()
    return _svg(figure)


def _svg(figure: Any) -> str:
    from matplotlib import pyplot

    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    encoded = base64.b64encode(text.getvalue().encode()).decode()
    return f'<img alt="" src="data:image/svg+xml;base64,{encoded}">'


def page(rows: list[tuple[str, ...]], pictures: dict[str, str]) -> str:
    """One HTML page that asks for nothing from elsewhere."""
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    parts = "".join(f"<h2>{escape(title)}</h2>{picture}" for title, picture in pictures.items())
    style = (
        "body{font:15px system-ui,sans-serif;margin:2em auto;max-width:70em}td{padding-right:2em}img{max-width:100%}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Digits</title><style>{style}</style>'
        f"<h1>Handwritten digits, read in int8</h1><table><tr>{'</tr><tr>'.join(cells)}</tr></table>{parts}</html>\n"
    )


def run(out: Path) -> list[tuple[str, ...]]:
    """Trains, quantizes, exports and reads; writes digits.pumice and digits.html into `out`. Returns the table."""
    import torch

    import pumice

    images, labels, held, wanted = digits()
    started = time.perf_counter()
    model = train(images, labels)
    trained = time.perf_counter() - started
    quantized = pumice.quantize(model, "static8", calibration=list(images.split(len(held))))  # two batches
    program = pumice.export(quantized, (held,))
    program.save(out / "digits.pumice")
    session = pumice.load(out / "digits.pumice", device=os.environ.get("PUMICE_DEVICE", "llvmpipe"))
    with torch.no_grad():
        float_read, eager_read = model(held).argmax(-1), quantized(held).argmax(-1)
    read = session(held).argmax(-1)
    float_bytes = sum(value.numel() * 4 for value in model.state_dict().values())
    integers = sum(constant["bytes"] for constant in pumice.inspect(out / "digits.pumice")["constants"])
    of = lambda classes: f"{int((classes == wanted).sum())} of {len(wanted)}"  # noqa: E731
    rows = [
        ("", "weights", "digits read"),
        ("float, eager PyTorch", f"{float_bytes / 1e3:.1f} kB", of(float_read)),
        ("int8, eager PyTorch", "", of(eager_read)),
        (f"int8, {session.device.name}", f"{integers / 1e3:.1f} kB", of(read)),
        ("device and eager agree in", "", f"{int((read == eager_read).sum())} of {len(read)}"),
        ("learned in", f"{trained:.1f} s", f"from {len(labels)} others"),
    ]
    wrong = (read != wanted).nonzero()[:, 0]
    first = torch.cat([wrong, torch.arange(len(read))[read == wanted]])[:SHOWN]  # all that it reads wrongly, and others
    pictures = {
        "What was read, wrong ones first": grid(held[first].numpy(), read[first].tolist(), wanted[first].tolist()),
        "What each digit was read as": confusion(read, wanted),
    }
    (out / "digits.html").write_text(page(rows, pictures), encoding="utf-8")
    if not torch.equal(read, eager_read):
        raise SystemExit("the device reads other digits than eager PyTorch in the same int8 model")
    return rows


def main() -> int:
    """The demo. Returns 0 where the device reads what eager PyTorch reads."""
    from rich.console import Console
    from rich.table import Table

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)  # torch and torchao speak of things that do not concern the demo
    OUT.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 110)
    with console.status("a network learns digits, becomes int8, and reads others"):
        head, *rows = run(OUT)
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"pictures: {(OUT / 'digits.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
