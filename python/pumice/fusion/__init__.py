# SPDX-License-Identifier: Apache-2.0
"""Patterns: several nodes of the graph that become one operator. Importing this package imports every module in it, so
that a new pattern needs no edit here."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
