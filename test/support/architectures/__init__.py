# SPDX-License-Identifier: Apache-2.0
"""Models that are more than layers in a row, small ones with random weights, as their libraries have them: the rows
of docs/models.md, and the cases of test/models/test_architectures.py."""

from support.architectures.images import IMAGES
from support.architectures.record import Architecture
from support.architectures.sound import SOUND
from support.architectures.text import TEXT

ARCHITECTURES: tuple[Architecture, ...] = (*IMAGES, *SOUND, *TEXT)
