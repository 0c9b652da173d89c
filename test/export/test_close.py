# SPDX-License-Identifier: Apache-2.0
"""Session.close and `with`; what `memory` says before and after a run."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

import pumice

X = torch.randn(2, 64)


def load() -> pumice.Session:
    return pumice.load(bytes(pumice.export(nn.Linear(64, 64).eval(), (X,))), device="llvmpipe")


def test_a_closed_session_refuses_calls() -> None:
    with load() as session:
        other = session.method(session.methods[0])
        assert torch.equal(session(X), other(X))
    session.close()  # again: nothing
    for call in (
        lambda: session(X),
        lambda: other(X),
        session.reset,
        lambda: session.memory,
        lambda: session.profile(X),
    ):
        with pytest.raises(pumice.InvalidInputError, match="freed") as caught:
            call()
        assert caught.value.code == "WrongState"


def test_an_exception_inside_of_with_closes_too() -> None:
    with pytest.raises(ZeroDivisionError), load() as session:
        raise ZeroDivisionError
    with pytest.raises(pumice.InvalidInputError):
        session(X)


def test_close_beside_calls_of_other_threads() -> None:
    session, wrong = load(), []
    want = session(X)

    def call() -> None:
        try:
            while True:
                if not torch.equal(session(X), want):
                    wrong.append("another result")
        except pumice.InvalidInputError as error:
            if error.code != "WrongState":
                wrong.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    session.close()
    for thread in threads:
        thread.join(30)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_memory_before_and_after_a_run() -> None:
    with load() as session:
        assert session.memory["arena"] == 0 and session.needs["arena"] > 0
        session(X)
        assert session.memory["arena"] >= session.needs["arena"] > 0
