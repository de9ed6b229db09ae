"""`manage.py idempotency_inspect`: the story of a key, what is stuck, which routes honour no key; in a terminal."""

import dataclasses
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from idempotency.admin import detail, search
from idempotency.admin.detail import Look
from idempotency.checks import walk
from idempotency.ledger.writing import key_hash
from idempotency.management.base import DatabaseCommand

_MOST = 200


class Command(DatabaseCommand):
    """Read and print; change nothing, ask nobody outside."""

    help = "Print the whole story of a key, or what is stuck, or the unsafe routes without @idempotent."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the choices."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "key", nargs="?", help=f"{search.HELP[0].lower()}{search.HELP[1:].rstrip('.')}"
        )
        what.add_argument("--stuck", action="store_true", help="keys that somebody may have to see")
        what.add_argument(
            "--routes",
            action="store_true",
            help="unsafe routes on which no key counts",
        )
        parser.add_argument("--json", action="store_true", help="one JSON document")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what was asked for."""
        self._as_json = options["json"]
        if options["stuck"]:
            self._stuck()
        elif options["routes"]:
            self._routes()
        else:
            self._keys(options["key"])

    # -- one key, or the few that a reference stands for -------------------------------------------------------------

    def _keys(self, term: str) -> None:
        ids = search.keys_for(term)
        looks = detail.looks(ids[:_MOST])
        if not looks:
            raise CommandError("No key has that name, reference, request id or operation_ref.")
        if self._as_json:
            self._print_json([_story(seen) for seen in looks])
            return
        for seen in looks:
            self._print_story(seen)
        if len(ids) > _MOST:
            self.stdout.write(f"… and {len(ids) - _MOST} more")

    def _print_story(self, seen: Look) -> None:
        story = _story(seen)
        self.stdout.write(self.style.MIGRATE_HEADING(story["line"]))
        self.stdout.write(f"  {story['meaning']}\n  To do: {story['to_do']}\n")
        for name, value in story["facts"].items():
            self.stdout.write(f"  {name + ':':20} {value}")
        self.stdout.write("")
        for line in story["timeline"]:
            told = [line["what"], line["who"], *(f"{k}: {v}" for k, v in line["facts"].items())]
            self.stdout.write(f"  {line['at']}  {'; '.join(part for part in told if part)}")
        self.stdout.write("")

    # -- what is stuck -----------------------------------------------------------------------------------------------

    def _stuck(self) -> None:
        stuck = [s for s in detail.glances(search.open_keys()) if s.is_open_matter]
        if self._as_json:
            self._print_json([_line(seen) for seen in stuck])
            return
        for seen in stuck:
            self.stdout.write(f"{seen.key.pk}  {seen.situation.value:13} {seen.line}")
        self.stdout.write(f"{len(stuck)} key(s)")

    # -- routes ------------------------------------------------------------------------------------------------------

    def _routes(self) -> None:
        bare = sorted(set(walk.bare_handlers()))
        if self._as_json:
            self._print_json([dataclasses.asdict(one) for one in bare])
            return
        for one in bare:
            self.stdout.write(f"{one.method:7} /{one.route}  {one.label}")
        self.stdout.write(f"{len(bare)} unsafe route(s) honour no key")

    def _print_json(self, value: object) -> None:
        self.stdout.write(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def _line(seen: Look) -> dict[str, Any]:
    return {
        "operation_ref": str(seen.key.pk),
        "situation": seen.situation.value,
        "state": seen.key.state,
        "line": seen.line,
        "created_at": seen.key.created_at.isoformat(),
    }


def _story(seen: Look) -> dict[str, Any]:
    page = detail.page(seen)
    return _line(seen) | {
        "meaning": seen.advice.meaning,
        "to_do": seen.advice.action,
        "facts": dict(page["facts"]) | {"Key hash": key_hash(seen.key.key)},
        "timeline": [
            {
                "at": line.at.isoformat(timespec="milliseconds"),
                "what": line.what,
                "who": line.who,
                "facts": dict(line.facts),
                "evidence": line.evidence,
            }
            for line in page["timeline"]
        ],
        "runbook": page["runbook"],
        "trace": page["trace"],
    }
