"""Show the important lines of the parts' logs on the terminal."""

import json
import re
from pathlib import Path

LOUD = frozenset({"WARNING", "ERROR", "CRITICAL"})
# A line that is no JSON comes from before logging was set up, or from a library's last words.
SUSPICIOUS = re.compile(r"(^|\s)(Traceback|[\w.]*Error:|CRITICAL|ERROR|WARNING)(\W|$)")


class Follower:
    """Reads what a log has got since the last look; starts at its end."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._seen = log.stat().st_size if log.exists() else 0
        self._rest = b""

    def news(self) -> list[str]:
        """Return the important new lines, shortened for reading."""
        if not self._log.exists():
            return []
        if self._log.stat().st_size < self._seen:
            # It was set aside and begun anew.
            self._seen, self._rest = 0, b""
        with self._log.open("rb") as file:
            file.seek(self._seen)
            fresh = file.read()
        self._seen += len(fresh)
        *lines, self._rest = (self._rest + fresh).split(b"\n")
        found = (important(line.decode(errors="replace")) for line in lines)
        return [line for line in found if line]


def important(line: str) -> str:
    """Return the line as a person wants to read it, or "" where it is of no interest."""
    try:
        record = json.loads(line)
    except ValueError:
        return line.strip() if SUSPICIOUS.search(line) else ""
    if not isinstance(record, dict) or record.get("level") not in LOUD:
        return ""
    if (record["level"], record.get("logger")) == ("WARNING", "django.request"):
        # A 4xx: the caller was told, and it is his affair.
        return ""
    exception = str(record.get("exception", "")).strip().rpartition("\n")[2]
    text = f"{record['level']} {record.get('logger', '')}: {record.get('message', '')}"
    return f"{text} ({exception})" if exception else text
