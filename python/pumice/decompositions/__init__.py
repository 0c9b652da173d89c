# SPDX-License-Identifier: Apache-2.0
"""What no operator here computes alone, made of operators that there are: a function of torch for each overload.

    @takes_apart(aten.angle.default)
    def angle(self): ...

torch traces the function where the overload stands; what it makes from sizes alone is folded to constants. Importing
this package imports every module in it, so that a new one needs no edit here."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
