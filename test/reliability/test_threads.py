# SPDX-License-Identifier: Apache-2.0
"""Many threads on one session and on several: every call gets the answer to its own inputs (ids R07, G19)."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch
from support.long_form import times
from torch import nn

import pumice

THREADS, CALLS = 8, times(200, 10_000)


class Count(nn.Module):
    """Returns the input that it saw and the number of calls so far."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.seen.add_(1)
        return x * 2, x + 1, self.seen + 0


@pytest.fixture(scope="module")
def data() -> bytes:
    rows = torch.export.Dim("rows", min=1, max=64)
    return bytes(pumice.export(Count(), (torch.zeros(4, 8),), dynamic_shapes={"x": {0: rows}}))


def together(work: Callable[[int], None]) -> None:
    """Runs work(0), work(1), ... in threads that begin at once; raises what the first of them raised."""
    begin, raised = threading.Barrier(THREADS), []

    def one(index: int) -> None:
        begin.wait()
        try:
            work(index)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=one, args=(index,), daemon=True) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=times(120, 1200))
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if raised:
        raise raised[0]


def call(session: pumice.Session, thread: int, index: int) -> int:
    """One call with an input of a shape that no other thread uses; returns the counter."""
    x = np.full((1 + thread, 8), thread * CALLS + index, np.float32)
    twice, more, seen = session(x)
    np.testing.assert_array_equal(twice, x * 2)
    np.testing.assert_array_equal(more, x + 1)
    return int(seen[0])


def test_every_answer_belongs_to_its_call(data) -> None:
    session, counts = pumice.load(data), []
    together(lambda thread: counts.extend([call(session, thread, index) for index in range(CALLS)]))
    assert sorted(counts) == list(range(1, THREADS * CALLS + 1))  # no call was refused, lost or answered twice


@pytest.mark.parametrize("count", [3, THREADS])
def test_several_sessions_side_by_side(data, count) -> None:
    """Sessions of one file, which share weights and pipelines; with three of them threads share sessions, too."""
    sessions, counts = [pumice.load(data) for _ in range(count)], [[] for _ in range(count)]

    def work(thread: int) -> None:
        mine = thread % count
        counts[mine].extend([call(sessions[mine], thread, index) for index in range(CALLS)])

    together(work)
    for seen in counts:
        assert sorted(seen) == list(range(1, len(seen) + 1))


def test_answers_of_one_shape_are_not_mixed_up(data) -> None:
    session = pumice.load(data)

    def work(thread: int) -> None:
        for index in range(CALLS):
            x = np.full((64, 8), thread * CALLS + index, np.float32)
            np.testing.assert_array_equal(session.run_flat([x])[0], x * 2)

    together(work)


def test_reset_memory_and_profile_wait_for_calls(data) -> None:
    session = pumice.load(data)
    other: list[Callable[[], object]] = [
        session.reset,
        lambda: session.memory,
        lambda: session.profile(np.zeros((3, 8), np.float32)),
    ]

    def work(thread: int) -> None:
        for index in range(CALLS // 4):
            if thread < len(other):
                other[thread]()
            else:
                call(session, thread, index)

    together(work)
    session.reset()
    assert call(session, 0, 0) == 1


def test_bad_inputs_of_one_thread_leave_the_others_right(data) -> None:
    session = pumice.load(data)

    def work(thread: int) -> None:
        for index in range(CALLS // 4):
            if thread % 2:
                with pytest.raises(pumice.InvalidInputError, match="64"):
                    session(np.zeros((65, 8), np.float32))
            else:
                call(session, thread, index)

    together(work)
