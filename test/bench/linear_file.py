# SPDX-License-Identifier: Apache-2.0
"""Writes a .pumice file of int4 linears with random weights, N -> K -> N -> ..., for measuring past the cache.

python test/bench/linear_file.py out.pumice --layers 8 --narrow 4096 --wide 14336 --group 32 --dtype f16
pumice-rt profile out.pumice --shape x=1x4096 --by call
"""

from __future__ import annotations

import argparse

import numpy as np

from pumice.format import ir
from pumice.format.writer import save


def linear_chain(layers: int, narrow: int, wide: int, group: int, dtype: ir.DType) -> ir.Program:
    """Layer i maps narrow -> wide for even i, wide -> narrow for odd. x: [rows, narrow]; weights have unit gain."""
    program, method = ir.Program(producer="pumice bench"), ir.Method()
    method.symbols.append(ir.Symbol("rows", 1, 1 << 16, 1))
    method.exprs.append(ir.Expr(ir.ExprOp.symbol, 0))
    rows = ir.SizeExpr(0)

    def value(kind: ir.ValueKind, kind_dtype: ir.DType, dims: list, ref: int = -1, name: str = "") -> int:
        method.values.append(ir.Value(kind, kind_dtype, dims, ref, name))
        return len(method.values) - 1

    def constant(key: str, size: int, data, kind_dtype: ir.DType, dims: list) -> ir.ValueId:
        program.constants.append(ir.Constant(key, size, data))
        return ir.ValueId(value(ir.ValueKind.constant, kind_dtype, dims, len(program.constants) - 1))

    x = value(ir.ValueKind.input, dtype, [rows, narrow], name="x")
    method.inputs.append(x)
    for layer in range(layers):
        k, n = (narrow, wide) if layer % 2 == 0 else (wide, narrow)
        random = np.random.default_rng(layer)
        weight = constant(f"w{layer}", n * k // 2, lambda r=random, s=n * k // 2: r.bytes(s), ir.DType.i4, [n, k])
        scales = np.full((n, k // group), 1 / (4.6 * k**0.5), np.float16)
        scale = constant(f"s{layer}", scales.nbytes, scales.tobytes, ir.DType.f16, list(scales.shape))
        last = layer == layers - 1
        out = value(ir.ValueKind.output if last else ir.ValueKind.scratch, dtype, [rows, n], name="out" if last else "")
        method.ops.append(
            ir.OpCall(
                "linear_q4gsw", 1, [ir.ValueId(x), weight, scale, None, None, group, 0, None], [out], f"layer {layer}"
            )
        )
        x = out
    method.outputs.append(x)
    program.methods.append(method)
    return program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--narrow", type=int, default=4096)
    parser.add_argument("--wide", type=int, default=14336)
    parser.add_argument("--group", type=int, default=32)
    parser.add_argument("--dtype", choices=["f16", "f32"], default="f16")
    options = parser.parse_args()
    save(
        linear_chain(options.layers, options.narrow, options.wide, options.group, ir.DType[options.dtype]),
        options.output,
    )


if __name__ == "__main__":
    main()
