# SPDX-License-Identifier: Apache-2.0
"""Passes over the exported graph, in the order in which they run: normalize, fold; quant is a view, not a rewrite."""
