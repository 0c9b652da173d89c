# SPDX-License-Identifier: Apache-2.0
"""Long runs (ids R08, D09): cancelled, interrupted, beside short ones, and in many parts. A run of ROWS rows takes
half a minute."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from support.command_line import BIN, start
from torch import nn

import pumice

pytestmark = pytest.mark.timed

SIZE, ROWS, PRODUCTS = 1024, 4096, 40
SECONDS = 2  # until a run that is cancelled or interrupted has come to its end


class Products(nn.Module):
    """Many matrix products, and the number of calls so far."""

    def __init__(self) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(1)
        self.w = nn.Parameter(torch.randn(SIZE, SIZE, generator=random) / SIZE**0.5)
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.seen.add_(1)
        for _ in range(PRODUCTS):
            x = torch.tanh(x @ self.w)
        return x, self.seen + 0


def x_of(rows: int) -> torch.Tensor:
    return torch.randn(rows, SIZE, generator=torch.Generator().manual_seed(rows))


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    rows = torch.export.Dim("rows", min=1, max=ROWS)
    program = pumice.export(Products(), (x_of(4),), dynamic_shapes={"x": {0: rows}})
    folder = tmp_path_factory.mktemp("long")
    program.save(folder / "m.pumice")
    np.save(folder / "x.npy", x_of(ROWS).numpy())
    return folder / "m.pumice"


def check_right(session: pumice.Session, calls: int) -> None:
    """The session computes what eager PyTorch computes, and its state has seen `calls` runs."""
    y, seen = session(x_of(3))
    torch.testing.assert_close(y, Products()(x_of(3))[0].detach(), rtol=1e-4, atol=1e-4)
    assert int(seen) == calls


class TooLate(AssertionError):
    """A limit of seconds; the only failure that a whole run tries again (tools/setup/testing.py)."""


def check_in_time(begin: float, seconds: float) -> None:
    """It is less than `seconds` after `begin`, which time.monotonic() gave."""
    took = time.monotonic() - begin
    if took >= seconds:
        raise TooLate(f"{took:.2f} s of {seconds}")


def later(seconds: float, action: Callable[[], object]) -> list[float]:
    """Does it in another thread; the list gets the time when."""
    at: list[float] = []

    def act() -> None:
        time.sleep(seconds)
        at.append(time.monotonic())
        action()

    threading.Thread(target=act, daemon=True).start()
    return at


def test_cancel_from_another_thread(path) -> None:
    session = pumice.load(path)
    check_right(session, 1)
    for _ in range(2):
        at = later(0.3, session.cancel)
        with pytest.raises(pumice.CancelledError, match="cancelled") as caught:
            session(x_of(ROWS))
        check_in_time(at[0], SECONDS)
        assert caught.value.code == "Cancelled"
    check_right(session, 2)
    session.cancel()  # no run is under way
    check_right(session, 3)


def test_steps_are_cancelled_between_them(path) -> None:
    session = pumice.load(path)
    at = later(0.3, session.cancel)
    with pytest.raises(pumice.CancelledError):
        session.run(x_of(64), steps=4096)
    check_in_time(at[0], SECONDS)
    check_right(session, 1)


def test_a_profile_is_cancelled(path) -> None:
    session = pumice.load(path)
    at = later(0.3, session.cancel)
    with pytest.raises(pumice.CancelledError):
        session.profile(x_of(ROWS))
    check_in_time(at[0], SECONDS)
    check_right(session, 1)


def test_a_short_run_does_not_wait_for_a_long_one(path) -> None:
    long, short = pumice.load(path), pumice.load(path)
    check_right(short, 1)
    raised: list[Exception] = []

    def run() -> None:
        try:
            long(x_of(ROWS))
        except pumice.CancelledError as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    time.sleep(0.5)
    begin = time.monotonic()
    check_right(short, 2)
    check_in_time(begin, 1.5)
    assert thread.is_alive()
    long.cancel()
    thread.join(SECONDS)
    assert raised and not thread.is_alive()


def interrupted(command: list[str], ready: str = "") -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that gets SIGINT in the middle of a run."""
    process = start(*command)
    try:
        if ready:
            assert process.stdout is not None and process.stdout.readline() == ready
        time.sleep(1.5)
        assert process.poll() is None, process.communicate()
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    check_in_time(begin, SECONDS + 0.5)
    return process.returncode, out, errors


def test_ctrl_c_in_python(path) -> None:
    code = (
        "import numpy as np, pumice, sys\n"
        f"session = pumice.load({str(path)!r})\n"
        f"x, small = np.load({str(path.with_name('x.npy'))!r}), np.ones((3, {SIZE}), np.float32)\n"
        "before = session(small)[0]\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    session(x)\n"
        "except KeyboardInterrupt:\n"
        "    y, seen = session(small)\n"
        "    print('interrupted', int(seen[0]), np.array_equal(y, before))\n"
        "    raise\n"
    )
    status, out, errors = interrupted([sys.executable, "-c", code], "ready\n")
    assert out == "interrupted 2 True\n", errors
    assert status in (-signal.SIGINT, 130) and "KeyboardInterrupt" in errors and "CancelledError" not in errors


def test_an_exception_of_another_signal_handler_ends_a_run(path) -> None:
    session = pumice.load(path)

    def handler(*_: object) -> None:
        raise LookupError("from the handler")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        begin = time.monotonic()
        with pytest.raises(LookupError, match="from the handler"):
            session(x_of(ROWS))
        check_in_time(begin, 0.5 + SECONDS)
    finally:
        signal.signal(signal.SIGALRM, before)
    check_right(session, 1)


def test_ctrl_c_in_pumice_run(path, tmp_path) -> None:
    arguments = ["run", str(path), "-i", str(path.with_name("x.npy")), "-o", str(tmp_path / "out")]
    code = f"from pumice.cli import main; print('ready', flush=True); main({arguments!r})"
    status, out, errors = interrupted([sys.executable, "-c", code], "ready\n")
    assert (status, out, errors.strip()) == (130, "", "interrupted")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["run", "bench", "profile"])
def test_ctrl_c_in_pumice_rt(path, tmp_path, command) -> None:
    out = tmp_path / "out"
    options = {"run": ["-i", str(path.with_name("x.npy")), "-o", str(out)]}
    arguments = options.get(command, ["--shape", f"x={ROWS}x{SIZE}"])
    status, text, _ = interrupted([str(BIN / "pumice-rt"), command, str(path), *arguments])
    assert (status, text) == (130, "")
    assert not out.exists()


class Convolutions(nn.Module):
    """Convolutions, pooling and a norm."""

    example = (torch.randn(2, 3, 37, 41, generator=torch.Generator().manual_seed(2)),)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3, groups=16), nn.GELU()
        )

    def forward(self, x):
        return nn.functional.layer_norm(self.layers(x), (18,)) if x.shape[-1] == 40 else self.layers(x).mean((2, 3))


class Attention(nn.Module):
    """Attention, softmax, running sums and the largest."""

    example = (torch.randn(2, 4, 50, 32, generator=torch.Generator().manual_seed(3)),)

    def forward(self, x):
        y = nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        return y, torch.softmax(y, -1), torch.cumsum(y, 2), torch.argmax(y, -1), y.transpose(1, 3).contiguous()


class Indices(nn.Module):
    """Lookups and updates by index."""

    example = (torch.randint(0, 300, (2000,), generator=torch.Generator().manual_seed(4)),)

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(300, 24)
        self.register_buffer("total", torch.zeros(300, 24))

    def forward(self, ids):
        rows = self.table(ids)
        self.total.index_add_(0, ids, rows)
        return rows, self.total * 1, torch.zeros(300, 24).index_copy(0, ids[:40], rows[:40])


class Linears(nn.Module):
    """A gated layer, of weights that `pumice.quantize` packs."""

    example = (torch.randn(5, 256, generator=torch.Generator().manual_seed(5)),)

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(256, 512), nn.Linear(256, 512), nn.Linear(512, 256)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


@pytest.mark.parametrize(
    ("module", "scheme"),
    [(Convolutions, ""), (Attention, ""), (Indices, ""), (Linears, ""), (Linears, "int4"), (Linears, "int8")],
)
@pytest.mark.parametrize("features", ["", "like_gpu"])
def test_many_parts_give_the_same_bits(module, scheme, features) -> None:
    torch.manual_seed(6)
    model = module().eval()
    data = bytes(pumice.export(pumice.quantize(model, scheme) if scheme else model, module.example))
    one, many = (pumice.load(data, features=f"{features},{cut}") for cut in ("submit_us=1000000", "submit_us=1"))
    for _ in range(2):
        for a, b in zip(*(_flat(session(*module.example)) for session in (one, many)), strict=True):
            assert torch.equal(a, b)


def _flat(results: object) -> list[torch.Tensor]:
    return list(results) if isinstance(results, tuple) else [results]
