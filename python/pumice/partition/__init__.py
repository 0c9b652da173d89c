# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a program run on the device, and in which partitions: for ExecuTorch and for torch.compile."""
