"""What is generated, by name: each function returns Markdown made of the code's own data."""

import inspect
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.management import get_commands, load_command_class

from docs import performance
from docs.source import Check, checks_in, docs_of_fields, docs_of_names
from idempotency import checks, conf, faultpoints, metrics, signals, telemetry, testing
from idempotency.admin.actions import ACTIONS
from idempotency.admin.advice import ADVICE
from idempotency.admin.situations import Situation
from idempotency.http import policy
from idempotency.http.problem import BUILT_IN, Entry, catalogue
from idempotency.management.commands.idempotency_roles import ROLES
from idempotency.resilience import tabledoc
from payments import checks as payments_checks
from payments import conf as payments_conf
from payments import simulator
from payments.simulator.config import Config
from payments.simulator.faults.kinds import KINDS

_OURS = ("idempotency", "payments")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()


def _code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


# -- settings ----------------------------------------------------------------------------------------------------------


def settings() -> str:
    """Return the settings of the reusable app."""
    return _table(
        ("name", "kind", "default", "means"),
        ((_code(one.name), one.kind, _default(one), one.doc) for one in conf.SETTINGS),
    )


def payments_settings() -> str:
    """Return the settings of the payments application."""
    return _table(
        ("name", "kind", "default", "means"),
        (
            (_code(one.name), type(one).__name__.lower(), _default(one), one.doc)
            for one in payments_conf.SETTINGS
        ),
    )


def _default(one: Any) -> str:
    if getattr(one, "demo", ""):
        return f"{_code(one.default) or '–'}; in DEBUG {_code(one.demo)}"
    path = getattr(one, "path", None)
    value = one.default if path is None else path
    match value:
        case None | "" | () | {}:
            return "–"
        case float():
            return f"{value:g}" if value < 100_000 else f"{value:.0f} ({policy.duration(value)})"
        case tuple():
            return ", ".join(map(_code, value))
        case bool():
            return "on" if value else "off"
        case _:
            return _code(value) if isinstance(value, str) else str(value)


# -- checks ------------------------------------------------------------------------------------------------------------


def all_checks() -> str:
    """Return every numbered check of both apps."""
    folder = Path(inspect.getfile(checks)).parent
    found = [check for path in sorted(folder.glob("*.py")) for check in checks_in(path)]
    found += checks_in(Path(inspect.getfile(payments_checks)))
    return _table(
        ("id", "what it says", "what to do"),
        ((_code(one.id), one.message, one.hint) for one in sorted(found, key=_by_id)),
    )


def _by_id(check: Check) -> tuple[str, str]:
    app, _, number = check.id.partition(".")
    return app, number


# -- problems ----------------------------------------------------------------------------------------------------------


def problems() -> str:
    """Return every problem code, one section each."""
    own = {code: entry for code, entry in catalogue().items() if code not in BUILT_IN}
    parts = ["## Of the ledger and of DRF", *map(_problem, BUILT_IN.values())]
    parts += ["## Of payments", *map(_problem, own.values())]
    return "\n\n".join(parts)


def _problem(entry: Entry) -> str:
    statuses = " or ".join(str(status) for status in (entry.status, *entry.also))
    facts = [f"Status {statuses}", _flag("retryable", entry.retryable)]
    facts += [_flag("safe_new_key", entry.safe_new_key)]
    if entry.retry_after is not None:
        facts.append(f"`Retry-After` at least {entry.retry_after:g}")
    return f"### {entry.code}\n\n{entry.title}.\n{entry.when}\n\nDo: {entry.client}\n\n{' · '.join(facts)}"


def _flag(name: str, value: bool | None) -> str:
    return f"`{name}` {'depends' if value is None else str(value).lower()}"


def problem_table() -> str:
    """Return every problem code, one line each, for clients."""
    return _table(
        ("code", "status", "same key again?", "new key safe?", "do"),
        (
            (
                f"[`{entry.code}`](reference/problems.md#{entry.code})",
                ", ".join(map(str, (entry.status, *entry.also))),
                _word(entry.retryable),
                _word(entry.safe_new_key),
                entry.client,
            )
            for entry in catalogue().values()
        ),
    )


def _word(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "–"}[value]


# -- events ------------------------------------------------------------------------------------------------------------


def events() -> str:
    """Return the catalogue of events."""
    kinds = telemetry.catalogue()
    docs: dict[str, dict[str, str]] = {}
    for path in {Path(inspect.getfile(kind)) for kind in kinds}:
        docs |= docs_of_fields(path)
    return "\n\n".join(_event(kind, docs.get(kind.__name__, {})) for kind in kinds)


def _event(kind: type[telemetry.Event], docs: dict[str, str]) -> str:
    rows = (
        (
            _code(field.name),
            "label" if field.name in kind.LABELS else "measure or detail",
            docs.get(field.name, ""),
        )
        for field in fields(kind)
    )
    table = _table(("field", "is", "values"), rows)
    return f"### {kind.__name__}\n\n{inspect.getdoc(kind)}\n\n{table}"


# -- commands ----------------------------------------------------------------------------------------------------------


def commands() -> str:
    """Return every management command of both apps with its options."""
    names = sorted(name for name, app in get_commands().items() if app in _OURS)
    return "\n\n".join(_command(get_commands()[name], name) for name in names)


def _command(app: str, name: str) -> str:
    command = load_command_class(app, name)
    parser = command.create_parser("manage.py", name)
    common = {"help", "version", "verbosity", "settings", "pythonpath", "traceback", "no_color"}
    common |= {"force_color", "skip_checks"}
    rows = [
        (
            _code(", ".join(action.option_strings) or "|".join(action.choices or [action.dest])),
            action.help or (f"one of {', '.join(action.choices)}" if action.choices else ""),
        )
        for action in parser._actions  # noqa: SLF001 - argparse has no door to its options
        if action.dest not in common
    ]
    table = f"\n\n{_table(('option', 'means'), rows)}" if rows else ""
    return f"### {name}\n\n{command.help}{table}"


# -- outcomes ----------------------------------------------------------------------------------------------------------


def outcomes() -> str:
    """Return the classifier's table."""
    return tabledoc.render()


# -- the console -------------------------------------------------------------------------------------------------------


def advice(name: str) -> str:
    """Return what the console says about one situation."""
    said = ADVICE[Situation(name)]
    lines = [
        f"**Badge:** {said.label}",
        f"**It means:** {said.meaning}",
        f"**You may tell the caller:** {said.caller}",
        f"**What to do:** {said.action}",
    ]
    if said.problem:
        lines.append(
            f"**The API answers meanwhile:** [`{said.problem}`](../reference/problems.md#{said.problem})"
        )
    return "\n\n".join(lines)


def situations() -> str:
    """Return every situation with its badge, leading to its page."""
    return _table(
        ("badge", "in one sentence"),
        ((f"[{ADVICE[one].label}]({one.value}.md)", ADVICE[one].meaning) for one in Situation),
    )


def actions() -> str:
    """Return what staff may do, with the permission for it and what it will do."""
    return _table(
        ("button", "permission", "what it will do and what not"),
        (
            (one.label, _code(one.permission), " ".join(one.consequences))
            for one in ACTIONS.values()
        ),
    )


def roles() -> str:
    """Return the console's groups and their permissions."""
    return _table(
        ("group", "may"),
        ((name, ", ".join(map(_code, codenames))) for name, codenames in ROLES.items()),
    )


# -- watching ----------------------------------------------------------------------------------------------------------


def counters() -> str:
    """Return what is counted, by event."""
    return _table(
        ("counter", "labels", "counts"),
        (
            (_code(f"idempotency_{name}_total"), ", ".join(map(_code, kind.LABELS)), meaning)
            for kind, (name, meaning) in metrics.COUNTERS.items()
        ),
    )


def django_signals() -> str:
    """Return the signals with what each tells."""
    docs = docs_of_names(Path(inspect.getfile(signals)))
    return _table(("signal", "is sent when"), ((_code(n), doc) for n, doc in docs.items()))


def testing_kit() -> str:
    """Return what works in which kind of test."""
    text = inspect.getdoc(testing) or ""
    return "\n".join(line for line in text.splitlines() if line.startswith("|"))


# -- testing -----------------------------------------------------------------------------------------------------------


def fault_points() -> str:
    """Return the fault points and actions, as their module names them."""
    text = inspect.getdoc(faultpoints) or ""
    told = dict(re.findall(r"^ {4}(\w+) {2,}(.+?)(?: {4,}|$)", text, re.MULTILINE))
    points = _table(("point", "when"), ((_code(p), told[p]) for p in faultpoints.POINTS))
    return f"{points}\n\nActions: {', '.join(map(_code, faultpoints.ACTIONS))}."


def client_policy() -> str:
    """Return the policy for keys as the project's settings have it."""
    return re.sub(r"^#", "###", policy.markdown().split("\n\n", 1)[1], flags=re.MULTILINE).replace(
        "####", "###"
    )


# -- the simulator -----------------------------------------------------------------------------------------------------


def simulator_tokens() -> str:
    """Return the tables of test tokens, as the simulator's own docstring has them."""
    lines = (simulator.__doc__ or "").splitlines()
    tables: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("| |"):
            tables[-1][-1] = tables[-1][-1].rstrip("| ") + line.replace("| |", "", 1)
        elif line.startswith("|"):
            tables[-1].append(line)
        elif tables[-1]:
            tables.append([])
    return "\n\n".join("\n".join(table) for table in tables if table)


def simulator_faults() -> str:
    """Return every kind of fault: what becomes of the effect, and what is done to the line."""
    return _table(
        ("kind", "the effect is", "the answer"),
        ((_code(kind.name), kind.applied.value, _answer(kind)) for kind in KINDS.values()),
    )


def _answer(kind: Any) -> str:
    said = ""
    if kind.instead is not None and kind.framing.name != "NONE":
        who = "the gateway's own" if kind.by_gateway else "a page by something in between,"
        said = f"{who} {kind.instead.status}; "
    return said + ", then ".join(step.value for step in kind.wire)


def simulator_config() -> str:
    """Return what can be configured, with the defaults."""
    about = re.sub(r"\s+", " ", (inspect.getdoc(Config) or "").partition("\n\n")[2])
    table = _table(
        ("name", "default"), ((_code(f.name), _code(json.dumps(f.default))) for f in fields(Config))
    )
    return table + "\n\n" + re.sub(r"[.] (?=`)", ".\n", about)


MAKERS: dict[str, Callable[..., str]] = {
    "settings": settings,
    "payments-settings": payments_settings,
    "checks": all_checks,
    "problems": problems,
    "problem-table": problem_table,
    "events": events,
    "commands": commands,
    "outcomes": outcomes,
    "advice": advice,
    "situations": situations,
    "actions": actions,
    "roles": roles,
    "metrics": counters,
    "signals": django_signals,
    "testing-kit": testing_kit,
    "fault-points": fault_points,
    "policy": client_policy,
    "simulator-tokens": simulator_tokens,
    "simulator-faults": simulator_faults,
    "simulator-config": simulator_config,
    "measured": performance.measured,
    "carried": performance.carried,
}
