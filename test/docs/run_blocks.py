# SPDX-License-Identifier: Apache-2.0
"""Runs Python programs, each in a process of its own that has imported already what takes seconds to import.

Reads [[name, code], ...] as JSON; the first that fails ends it, with its name.
"""

from __future__ import annotations

import json
import os
import sys

import torch._dynamo  # noqa: F401
import torchao.quantization  # noqa: F401
import transformers  # noqa: F401

import pumice

pumice.export  # noqa: B018 (imports it)

for name, code in json.load(sys.stdin):
    if os.fork() == 0:
        exec(compile(code, name, "exec"), {"__name__": "__main__"})
        break
    if os.wait()[1]:
        sys.exit(f"{name}:\n{code}")
