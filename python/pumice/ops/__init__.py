# SPDX-License-Identifier: Apache-2.0
"""The lowerings: importing this package imports every module in it, so that a new one needs no edit here."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
