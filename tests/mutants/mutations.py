"""The mutants of a module: its source with one small fault each, such as a programmer makes."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
PAIRS = (("all", "any"), ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"))
NAMES = {name: other for pair in PAIRS for name, other in (pair, pair[::-1])}
ANNOTATIONS = {"annotation", "returns", "decorator_list", "bases", "type_params"}
Place = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class Mutant:
    """One fault: where it is put, by what, and how it reads."""

    line: int
    place: Place
    replacement: ast.AST
    text: str


def mutants(source: str) -> list[Mutant]:
    """All faults that can be put into ``source``, in its order."""
    tree = ast.parse(source)
    mutants = [
        _mutant(node, place, other, where) for node, place, where in _walk(tree, (), "") for other in _faults(node)
    ]
    return sorted(mutants, key=lambda mutant: (mutant.line, mutant.text))


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The module with that fault in it."""
    tree: ast.Module = ast.parse(source)
    *way, (field, index) = mutant.place
    node: ast.AST = tree
    for name, at in way:
        node = getattr(node, name) if at is None else getattr(node, name)[at]
    if index is None:
        setattr(node, field, mutant.replacement)
    else:
        getattr(node, field)[index] = mutant.replacement
    return ast.fix_missing_locations(tree)


def _mutant(node: ast.AST, place: Place, other: ast.AST, where: str) -> Mutant:
    ast.copy_location(other, node)
    ast.fix_missing_locations(other)
    before, after = (" ".join(ast.unparse(one).split()) for one in (node, other))
    return Mutant(getattr(node, "lineno", 0), place, other, f"{where or 'module'}: {before} → {after}")


def _walk(node: ast.AST, place: Place, where: str) -> Iterator[tuple[ast.AST, Place, str]]:
    """Every node whose meaning counts at run time, the way to it, and the function that it is in."""
    for field, value in ast.iter_fields(node):
        if field in ANNOTATIONS:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            at = (*place, (field, index))
            yield child, at, where
            yield from _walk(child, at, _inside(child, where))


def _is_text(node: ast.AST) -> bool:
    """Docstrings and what is only ever read by people."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _inside(node: ast.AST, where: str) -> str:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return where
    return f"{where}.{node.name}" if where else node.name


def _faults(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        yield from _compared(node)
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield _changed(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _renamed(node)
    elif isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Name | ast.Attribute | ast.Call):
        yield _changed(node, test=ast.UnaryOp(ast.Not(), node.test))
    yield from _left_out(node)


def _changed(node: ast.AST, **values: object) -> ast.AST:
    other = copy.deepcopy(node)
    for name, value in values.items():
        setattr(other, name, value)
    return other


def _compared(node: ast.Compare) -> Iterator[ast.AST]:
    for i, op in enumerate(node.ops):
        for other in COMPARISONS[type(op)]:
            yield _changed(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])


def _constants(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant({0: 1, 1: 0}.get(value, value + 1))
    elif isinstance(value, float):
        yield ast.Constant(value * 2 if value else 1.0)


def _renamed(node: ast.Name | ast.Attribute) -> Iterator[ast.AST]:
    if isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield ast.Name(NAMES[node.id], ast.Load())
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield _changed(node, attr=NAMES[node.attr])


def _left_out(node: ast.AST) -> Iterator[ast.AST]:
    """A statement that is forgotten, a value that is not returned."""
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Raise | ast.AugAssign | ast.Continue | ast.Break | ast.Expr) or _is_kept(node):
        yield ast.Pass()


def _is_kept(node: ast.AST) -> bool:
    """Whether a statement puts a value where others find it."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Attribute)
