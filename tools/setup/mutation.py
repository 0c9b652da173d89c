# SPDX-License-Identifier: Apache-2.0
"""`./dev mutate`: does each kernel's test find a mistake? Mistakes are planted by `pumice-rt kernel test --plant`
(tools/kernel_bench/plant.h): in what the device is given and the reference does not see, or in its shaders."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from setup.paths import ROOT, environment

DATA = ["column", "group", "scale", "zero", "bias"]
# A long sum, which leaves room for errors, and the widths of models; n and m have tails.
LINEAR = "m=1|9,n=37,k=4096|14336|16384,g=32,bias=1"
CONVOLUTIONS = ["b=2,c=33,o=20,h=9,w=8,bias=1", "b=2,c=6,o=6,g=6,h=7,w=8,bias=1"]
SHORT = {"act": "m=9,n=37,k=96,g=32,act=relu", "rounding": "m=1|9,n=37,k=96,g=32,bias=1"}
# Words of a row's "why": the comparison with the reference, or of what a run reports.
FOUND = re.compile(r" are wrong, |^reported: |^nothing was reported; |a session said nothing")
KIND = re.compile("int8g?|dot_tile|conv_?[a-z0-9]+|[a-z]+")  # of a kernel's name, which goes on with sizes
# Calls that round to whole numbers; other shaders have the roundings in branches that do not run.
ROUNDED = re.compile("^(quantize|choose_qparams|round|cached_attention_int8.*|q8ta_.*)$")
# Operators that do not have in what a mistake would be planted.
WITHOUT = {
    ("linear", "zero"),
    ("conv2d", "zero"),
    ("linear_qta8a_qga4w_qta8o", "act"),
    ("sample_token", "token"),  # which is written, and not read
}


@dataclass
class Family:
    """Mistakes that were planted into kernels of a kind, and those that their tests did not find."""

    planted: int = 0
    survivors: list[str] = field(default_factory=list)

    def add(self, what: str, found: bool) -> None:
        self.planted += 1
        if not found:
            self.survivors.append(what)


@dataclass
class Mutation:
    """Plants mistakes by the program `tool`; `kernels` of linears and convolutions and `ops`: nothing for all;
    `families` by their names."""

    tool: list[str | Path]
    kernels: list[str] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    linear: str = LINEAR
    families: dict[str, Family] = field(default_factory=dict)

    def run(self) -> bool:
        """Whether all were found; prints counts and what was not."""
        listed = json.loads(self._call("list", "--json"))["operators"]
        if unknown := sorted(set(self.ops) - {row["op"] for row in listed}):
            raise SystemExit(f"there is no operator {unknown[0]}; pumice-rt kernel list names them")
        for row in listed:
            if self.ops and row["op"] not in self.ops:
                continue
            if len(row["kernels"]) > 1:
                self._product(row["op"], " f16" in " ".join(row["cases"]))
                self._print(name for name in self.families if name.startswith(f"{row['op']} by "))
            else:
                self._call_of(row["op"], row["parameters"])
        self._print(name for name in self.families if " by " not in name)
        survivors = [line for family in self.families.values() for line in family.survivors]
        planted = sum(family.planted for family in self.families.values())
        print(*(f"not found: {line}" for line in survivors), sep="\n")
        print(f"{planted} planted, {planted - len(survivors)} found, {len(survivors)} not found", flush=True)
        return planted > 0 and not survivors

    def _print(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            planted, lost = self.families[name].planted, len(self.families[name].survivors)
            print(f"{name:<40} {planted:>5} planted, {planted - lost:>5} found", flush=True)

    def _product(self, op: str, has_halves: bool) -> None:
        """Each case with each kernel is one mistake to find."""
        forced = [word for kernel in self.kernels for word in ("--kernel", kernel)]
        for mistake in (each for each in (*DATA, *SHORT) if (op, each) not in WITHOUT):
            for row in self._rows(op, mistake, self._cases(op, mistake, has_halves), forced):
                if row["status"] == "skipped":
                    continue
                kind = KIND.match(row["kernel"])[0]
                family = self.families.setdefault(f"{op} by {kind}", Family())
                family.add(f"{mistake}: {row['title']} by {row['kernel']}: {row.get('why', '')}", _is_found(row))

    def _cases(self, op: str, mistake: str, has_halves: bool) -> list[str]:
        is_conv = "conv" in op
        more = f",zero={'random' if mistake == 'zero' else 'none'},dtype={'f32|f16' if has_halves else 'f32'}"
        cases = CONVOLUTIONS if is_conv else [SHORT.get(mistake, self.linear)]
        return [case + more + (",act=relu" if is_conv and mistake == "act" else "") for case in cases]

    def _call_of(self, op: str, parameters: str) -> None:
        """Each tensor of an operator is one mistake to find, by any of its cases; and the roundings of its shader."""
        names = re.findall(r"(?:Tensor|operand)(?:\[\])?\??\s+(\w+)", parameters.split("->")[0])
        rounding = ["rounding"] if ROUNDED.search(op) else []
        for mistake in (*(f"input:{name}" for name in names if (op, name) not in WITHOUT), *rounding):
            rows = [row for row in self._rows(op, mistake, [], []) if row["status"] != "skipped"]
            if rows:
                family = self.families.setdefault("rounding" if mistake == "rounding" else "calls", Family())
                family.add(f"{mistake}: {op}", any(map(_is_found, rows)))

    def _rows(self, op: str, mistake: str, cases: list[str], more: list[str]) -> Iterator[dict]:
        words = [word for case in cases for word in ("--case", case)]
        text = self._call("test", "--op", op, "--plant", mistake, *words, *more, "--replays", "1", "--json")
        yield from json.loads(text)["rows"] if text else []

    def _call(self, *words: str) -> str:
        command = [str(word) if isinstance(word, Path) else word for word in (*self.tool, "kernel", *words)]
        done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1, 4):  # 1: mistakes were found; 4: no kernel runs here
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
        return done.stdout


def _is_found(row: dict) -> bool:
    return row["status"] == "failed" and FOUND.search(row["why"]) is not None
