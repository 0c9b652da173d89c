# SPDX-License-Identifier: Apache-2.0
"""What tests of drawn tokens share: logits, options, and how far samples may be from a distribution."""

from __future__ import annotations

import numpy as np

LOGITS = np.array([2.0, 1.5, 1.5, 0.3, -0.5, -1.0, -4.0, 1.0, 0.0, -2.0], np.float32)
BEFORE = [7, 4, 0]  # the tokens of the text so far, which a penalty makes less probable
OPTIONS = [
    {"temperature": 1.0},
    {"temperature": 0.6},
    {"temperature": 1.7, "top_k": 4},
    {"temperature": 1.0, "top_p": 0.8},
    {"temperature": 1.0, "min_p": 0.2},
    {"temperature": 1.0, "repeat_penalty": 1.5},
    {"temperature": 1.2, "top_k": 6, "top_p": 0.9, "min_p": 0.1, "repeat_penalty": 1.2},
]
# What 99.9 % of samples of the right distribution stay below, by degrees of freedom.
CHI_SQUARE = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52, 6: 22.46, 7: 24.32, 8: 26.12, 9: 27.88}
