"""Compiled loops over the kind's own functions."""

import inspect
from collections.abc import Callable
from pathlib import Path

from numba.extending import overload, register_jitable

import app.kinds.workflow
from workers.kinds.compiling import Compiler, Function

OWN = Path(__file__).parent
kernel = Compiler(OWN, Path(app.kinds.workflow.__file__).parent, OWN).kernel


def compilable(*functions: Callable[..., object]) -> None:
    """Let kernels call plain functions of the kind."""
    for function in functions:
        register_jitable(function)


def compiled_as(plain: Callable[..., object]) -> Callable[[Function], Function]:
    """Let kernels call the decorated function where the kind's code calls ``plain``."""

    def decorate(function: Function) -> Function:
        def typed(*_: object) -> Function:
            return function

        vars(typed)["__signature__"] = inspect.signature(function)
        overload(plain)(typed)
        return function

    return decorate
