"""What can only be read from the source: messages of checks, and the docstrings below fields."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path


@dataclass(frozen=True)
class Check:
    """One numbered check."""

    id: str
    message: str
    hint: str


def checks_in(path: Path) -> list[Check]:
    """Return the messages that a module of checks can give; what differs each time is an ellipsis."""
    return list(_checks(ast.parse(path.read_text(encoding="utf-8"))))


def _checks(tree: ast.Module) -> Iterator[Check]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        texts = {
            target.id: _text(statement.value)
            for statement in ast.walk(function)
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }
        for call in ast.walk(function):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            given = {one.arg: one.value for one in call.keywords}
            if call.func.id in ("Error", "Warning") and "id" in given:
                hint = given.get("hint")
                known = texts.get(hint.id) if isinstance(hint, ast.Name) else None
                yield Check(
                    id=_text(given["id"]),
                    message=_text(call.args[0]),
                    hint=known or (_text(hint) if hint is not None else ""),
                )


def _text(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return re.sub(r"…+", "…", "".join(map(_text, values)))
        case ast.IfExp(body=body, orelse=other):
            return f"{_text(body)} / {_text(other)}"
        case ast.Attribute(attr="doc"):
            return "What the setting means."
        case _:
            return "…"


def docs_of_fields(path: Path) -> dict[str, dict[str, str]]:
    """Return the docstring below each field, by class and field."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            pairs = zip(node.body, node.body[1:], strict=False)
            found[node.name] = {
                first.target.id: second.value.value
                for first, second in pairs
                if isinstance(first, ast.AnnAssign)
                and isinstance(first.target, ast.Name)
                and isinstance(second, ast.Expr)
                and isinstance(second.value, ast.Constant)
                and isinstance(second.value.value, str)
            }
    return found


def docs_of_names(path: Path) -> dict[str, str]:
    """Return the docstring below each name of a module that has one."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {
        first.targets[0].id: second.value.value
        for first, second in pairwise(body)
        if isinstance(first, ast.Assign)
        and isinstance(first.targets[0], ast.Name)
        and isinstance(second, ast.Expr)
        and isinstance(second.value, ast.Constant)
        and isinstance(second.value.value, str)
    }


@dataclass(frozen=True)
class Write:
    """One statement that gives keys a state."""

    before: tuple[str, ...]
    after: str
    where: str
    doc: str


def writes_in(path: Path) -> list[Write]:
    """Return the statements of a module of the ledger that set `state`, in the order of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants: dict[str, str] = {}
    found: list[Write] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, doc = node.targets[0].id, ""
            constants[name] = _sql(node.value, constants)
        elif isinstance(node, ast.FunctionDef):
            name, doc = node.name, (ast.get_docstring(node) or "").split("\n")[0]
        else:
            continue
        found += [
            Write(tuple(dict.fromkeys(_STATE.findall(where))), after, f"{path.stem}.{name}", doc)
            for text in _strings(node)
            for after, where in _SETS.findall(_sql(text, constants))
        ]
    return found


_STATE = re.compile(r"state = '(\w+)'")
_SETS = re.compile(r"UPDATE idempotency_key AS k SET\s+state = '(\w+)'(.*)", re.DOTALL)


def _strings(node: ast.AST) -> Iterator[ast.expr]:
    joined = [one for one in ast.walk(node) if isinstance(one, ast.JoinedStr)]
    inner = {id(part) for one in joined for part in one.values}
    yield from joined
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in inner:
            yield one


def _sql(node: ast.expr, constants: dict[str, str]) -> str:
    """Return the text of a string, with the module's own constants in their places."""
    match node:
        case ast.JoinedStr(values=values):
            return "".join(_sql(value, constants) for value in values)
        case ast.FormattedValue(value=ast.Name(id=name)):
            return constants.get(name, "")
        case _:
            return _text(node)
