# SPDX-License-Identifier: Apache-2.0
"""permute(conv2d(x)) to channels last, where the windows of the convolution are the patches of x -> a linear layer of
the patches: the embedding of vision transformers, and the layers between the stages of ConvNeXt."""

from __future__ import annotations

from collections.abc import Callable

from pumice.fusion.convolution import convolution_with_channels_last, input_with_channels_last
from pumice.fusion.patches import emit_patches, is_of_patches
from pumice.lowering.call import Call
from pumice.lowering.permuted import PERMUTES
from pumice.lowering.registry import fuses


@fuses(*PERMUTES)
def patch_embedding(call: Call) -> Callable[[], None] | None:
    """Matches a permutation that alone reads a convolution with a float weight and no norm, over whole patches."""
    conv = convolution_with_channels_last(call)
    if conv is None or not is_of_patches(conv):
        return None
    return lambda: emit_patches(call, conv, input_with_channels_last(conv), call.out)
