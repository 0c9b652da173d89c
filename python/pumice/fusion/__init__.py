# SPDX-License-Identifier: Apache-2.0
"""Patterns: several nodes of the graph that become one operator."""
