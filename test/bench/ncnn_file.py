# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 with random weights as ncnn has it: FOLDER/net.param and net.bin, for test/bench/ncnn_resnet50.cpp.

python test/bench/ncnn_file.py FOLDER
"""

from __future__ import annotations

import argparse
import struct
from pathlib import Path

import numpy as np


class Network:
    """ncnn's text of layers and file of weights; a blob has one reader, more of them read what Split makes."""

    def __init__(self, folder: Path) -> None:
        self.lines, self.blobs, self.random = ["Input data 0 1 data 0=224 1=224 2=3"], 1, np.random.default_rng(1)
        self.param, self.bin = folder / "net.param", folder / "net.bin"
        self.weights = self.bin.open("wb")

    def layer(self, kind: str, inputs: list[str], parameters: str, outputs: int = 1) -> list[str]:
        names = [f"b{self.blobs + i}" for i in range(outputs)]
        self.blobs += outputs
        name = f"l{len(self.lines)}"
        self.lines.append(" ".join([kind, name, str(len(inputs)), str(outputs), *inputs, *names, parameters]))
        return names

    def numbers(self, out: int, k: int) -> None:
        self.weights.write(struct.pack("<I", 0))  # fp32 follows
        self.weights.write((self.random.standard_normal(out * k) * (2 / k) ** 0.5).astype(np.float32).tobytes())
        self.weights.write((self.random.standard_normal(out) * 0.1).astype(np.float32).tobytes())

    def conv(self, x: str, channels: int, out: int, kernel: int, stride: int = 1, relu: bool = True) -> str:
        size = out * channels * kernel**2
        self.numbers(out, channels * kernel**2)
        geometry = f"0={out} 1={kernel} 3={stride} 4={kernel // 2} 5=1 6={size} 9={int(relu)}"
        return self.layer("Convolution", [x], geometry)[0]

    def block(self, x: str, channels: int, width: int, stride: int) -> str:
        main, side = self.layer("Split", [x], "", 2)
        main = self.conv(main, channels, width, 1)
        main = self.conv(main, width, width, 3, stride)
        main = self.conv(main, width, 4 * width, 1, relu=False)
        if channels != 4 * width or stride != 1:
            side = self.conv(side, channels, 4 * width, 1, stride, relu=False)
        added = self.layer("BinaryOp", [main, side], "0=0")
        return self.layer("ReLU", added, "")[0]

    def resnet50(self) -> None:
        x = self.layer("Pooling", [self.conv("data", 3, 64, 7, 2)], "0=0 1=3 2=2 3=1 5=1")[0]
        channels = 64
        for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for i in range(blocks):
                x = self.block(x, channels, width, 2 if i == 0 and width > 64 else 1)
                channels = 4 * width
        x = self.layer("Pooling", [x], "0=1 4=1")[0]
        self.numbers(1000, 2048)
        self.layer("InnerProduct", [x], f"0=1000 1=1 2={1000 * 2048}")
        self.weights.close()
        self.param.write_text("\n".join(["7767517", f"{len(self.lines)} {self.blobs}", *self.lines, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    Network(given.folder).resnet50()


if __name__ == "__main__":
    main()
