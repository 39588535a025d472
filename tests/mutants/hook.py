"""Imports one module of this process with a fault in it; the file on disk stays as it is."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import CodeType, ModuleType
from typing import Any

from tests.mutants.mutations import Mutant, mutated


class _Loader(importlib.machinery.SourceFileLoader):
    mutant: Mutant

    def get_code(self, fullname: str) -> CodeType:
        """Past the cache of compiled files, which knows the module without its fault."""
        path = self.get_filename(fullname)
        return compile(mutated(self.get_data(path).decode(), self.mutant), path, "exec")


class _Finder(MetaPathFinder):
    def __init__(self, module: str, mutant: Mutant) -> None:
        self.module, self.mutant = module, mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's own place, with a loader that puts the fault in."""
        if fullname != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        loader: Any = _Loader(fullname, spec.origin)
        loader.mutant = self.mutant
        spec.loader = loader
        return spec


def install(module: str, mutant: Mutant) -> None:
    """From now on ``module`` is imported with the fault; it must not have been imported before."""
    if module in sys.modules:
        raise RuntimeError(f"{module} has been imported already, without its fault")
    sys.meta_path.insert(0, _Finder(module, mutant))
