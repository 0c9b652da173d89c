# SPDX-License-Identifier: Apache-2.0
"""From a graph of torch.export to operator calls: what lowerings are written with, and the driver that calls them."""
