# SPDX-License-Identifier: Apache-2.0
"""From a graph of torch.export to operator calls: what a lowering sees, and the driver that calls lowerings."""
