"""Sends every read to a replica, as many hosts do."""

from typing import Any


class ReadsElsewhere:
    def db_for_read(self, model: type, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: type, **hints: Any) -> str:
        return "default"

    def allow_relation(self, one: object, other: object, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == "default"
