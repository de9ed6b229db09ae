"""Write a log record as one line of JSON."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

# What every record carries; the rest came with `extra=` and is part of the message.
ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Turn a record into one JSON object: time, level, logger, process, message, extras."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        line |= {
            name: value
            for name, value in vars(record).items()
            if name not in ORDINARY and name not in UNWANTED
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = record.stack_info
        return json.dumps(line, default=str, ensure_ascii=False)


class WithoutProbes(logging.Filter):
    """Drop Django's error about a probe that was told "not ready": that is an answer, no error."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to keep the record."""
        request = getattr(record, "request", None)
        return getattr(request, "path", "") != "/readyz/"


# Django attaches the whole request, and Celery the task's arguments, which may be a customer's.
UNWANTED = frozenset({"request", "data", "server_time"})
