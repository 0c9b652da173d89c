# SPDX-License-Identifier: Apache-2.0
"""Where in the user's model a node of the exported graph comes from."""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n?\s*(.*)')
_OF_DYNAMO = re.compile(r"^L\['\w+'\]\.?")  # where it found the model, in front of the names of its layers
_OURS = f"{Path(__file__).parents[1]}/"
_LIBRARIES = tuple(str(Path(sysconfig.get_paths()["purelib"]) / name) + "/" for name in ("torch", "torchao"))
_PYTHONS = sysconfig.get_paths()["stdlib"] + "/"
_AROUND = (*_LIBRARIES, f"{_OURS}dynamo/")  # what calls a model, and is none of its lines


@dataclass(frozen=True)
class Source:
    """A line of the model's Python and the submodule it ran in; empty where torch does not tell."""

    file: str = ""
    line: int = 0
    code: str = ""
    module: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else ""
        return f"{place} ({self.module})" if place and self.module else place or self.module


def source(node: Any, origins: Mapping[str, str] | None = None) -> Source:
    """The innermost line outside of torch and torchao. `origins`: stack traces by node name before decomposition."""
    traces = [node.meta.get("stack_trace") or ""]
    provenance = node.meta.get("from_node") or []
    traces += [(origins or {}).get(step.name, "") for step in reversed(provenance)]
    for trace in traces:
        frames = [match.groups() for match in _FRAME.finditer(trace)]
        own = [f for f in frames if not f[0].startswith(("<", "torch/")) and not f[0].startswith(_AROUND)]
        if own:
            file, line, _, code = own[-1]
            return Source(_short(file), int(line), code.strip(), _module(node))
    return Source(module=_module(node))


def stack_traces(program: Any) -> dict[str, str]:
    """Node names of an exported program -> where they come from, those of wrapped regions (no_grad) included:
    decomposing loses some of it."""
    modules = [module for module in program.graph_module.modules() if hasattr(module, "graph")]
    return {
        node.name: node.meta["stack_trace"] for m in modules for node in m.graph.nodes if node.meta.get("stack_trace")
    }


def of_layers(own: Source, fused: Iterable[Any]) -> Source:
    """`own` with the innermost layers of all nodes that one operator call computes: "layer.0.{key,query,value}"."""
    names = dict.fromkeys(name for name in (own.module, *map(_module, fused)) if name)
    inner = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    if len(inner) < 2:
        return replace(own, module=inner[0] if inner else "")
    parents = {name.rpartition(".")[0] for name in inner}
    if len(parents) > 1 or len(inner) > 4:  # of several places: that of the node whose result it is
        return own
    last = ",".join(sorted(name.rpartition(".")[2] for name in inner))
    (parent,) = parents
    return replace(own, module=f"{parent}.{{{last}}}" if parent else f"{{{last}}}")


def raised_at(error: BaseException) -> str:
    """ "FILE:LINE: " of the innermost frame of an exception that is outside of Python, torch and pumice; "" without
    one."""
    frames = traceback.extract_tb(error.__traceback__)
    others = (*_LIBRARIES, _OURS)
    own = [f for f in frames if Path(f.filename).is_file() and not f.filename.startswith(others)]
    own = [f for f in own if not f.filename.startswith(_PYTHONS) or "/site-packages/" in f.filename]
    return f"{_short(own[-1].filename)}:{own[-1].lineno}: " if own else ""


def _short(file: str) -> str:
    """Relative to the working directory or to site-packages when it lies below one of them."""
    for root in (Path(sysconfig.get_paths()["purelib"]), Path.cwd()):
        if file.startswith(f"{root}/"):
            return file[len(str(root)) + 1 :]
    return file


def _module(node: Any) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    name = stack[-1][0] if stack else ""
    name = _OF_DYNAMO.sub("", name)
    return "" if name.startswith("_empty") else name
