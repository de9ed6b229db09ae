"""A client as real ones are: one key per intent, a new connection for each try, and patience."""

import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import requests

# Told with these, the same request is to be tried again; anything else is a final word.
NOT_YET = frozenset({"in-progress", "outcome-unknown"})
TRY_AGAIN = frozenset({0, 500, 502, 503, 504})


@dataclass(frozen=True)
class Heard:
    """What one try heard; status 0: no answer, or not the whole of it."""

    at: float
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def code(self) -> str:
        """Return the problem's code, or ""."""
        return str(self.json.get("code", "")) if isinstance(self.json, dict) else ""

    @property
    def replayed(self) -> bool:
        return self.headers.get("Idempotent-Replayed") == "true"

    @property
    def final(self) -> bool:
        return self.status not in TRY_AGAIN and self.code not in NOT_YET

    def __str__(self) -> str:
        replayed = " replayed" if self.replayed else ""
        return f"{self.status or self.error} {self.code}{replayed}"


def ask(
    method: str,
    url: str,
    *,
    body: object = None,
    key: str | None = None,
    token: str = "demo-merchant-a",
    timeout: float = 6.0,
) -> Heard:
    """Send one request on a connection of its own."""
    headers = {"Authorization": f"Token {token}", "Connection": "close"}
    if key is not None:
        headers["Idempotency-Key"] = key
    with requests.Session() as http:
        http.trust_env = False
        try:
            answer = http.request(
                method, url, json=body, headers=headers, timeout=timeout, allow_redirects=False
            )
        except requests.RequestException as error:
            return Heard(time.time(), 0, error=type(error).__name__)
        return Heard(time.time(), answer.status_code, answer.content, dict(answer.headers))


@dataclass
class Talk:
    """All that one client says and hears about one intent."""

    key: str
    path: str
    body: Mapping[str, object]
    token: str = "demo-merchant-a"
    heard: list[Heard] = field(default_factory=list)
    told: list[Heard] = field(default_factory=list)
    """What the status monitor has said, where the work is deferred."""

    def say(self, url: str, *, timeout: float = 6.0) -> Heard:
        """Send the request once more."""
        heard = ask(
            "POST", url + self.path, body=self.body, key=self.key, token=self.token, timeout=timeout
        )
        self.heard.append(heard)
        return heard

    def insist(
        self, url: str, *, until: float, stop: threading.Event, chance: random.Random
    ) -> None:
        """Repeat the request, and then ask the monitor, until there is a final word or the time is over."""
        while time.monotonic() < until and not stop.is_set():
            if self.final is None:
                self.say(url)
            if self.final is not None and (not self.deferred or self.look(url)):
                return
            stop.wait(chance.uniform(0.1, 0.6))

    def look(self, url: str) -> bool:
        """Ask the status monitor; return whether it says that all is done."""
        final = self.final
        if final is None or not self.deferred:
            return False
        heard = ask("GET", url + final.headers["Location"], token=self.token)
        self.told.append(heard)
        return heard.status == 200 and bool(heard.json["done"])

    @property
    def final(self) -> Heard | None:
        """Return the first final word, or None."""
        return next((each for each in self.heard if each.final), None)

    @property
    def deferred(self) -> bool:
        return self.final is not None and self.final.status == 202

    @property
    def done(self) -> bool:
        """Whether there is a final word, and nothing left to wait for."""
        return self.final is not None and (not self.deferred or bool(self.outcome))

    @property
    def outcome(self) -> Mapping[str, Any]:
        """Return what the monitor says of work that is done, else nothing."""
        done = [each.json for each in self.told if each.status == 200 and each.json["done"]]
        return done[-1] if done else {}

    @property
    def told_success(self) -> bool:
        """Whether the client may believe that it happened."""
        if any(each.status in (200, 201) for each in self.heard):
            return True
        result = self.outcome.get("result")
        return isinstance(result, dict) and result.get("status", "succeeded") == "succeeded"

    @property
    def told_failure(self) -> bool:
        """Whether the client's final word is that it did not happen."""
        final = self.final
        return "error" in self.outcome or (final is not None and 400 <= final.status < 500)

    def __str__(self) -> str:
        words = "; ".join(map(str, self.heard))
        return f"key {self.key!r}: {words}" + (f" | done: {self.outcome}" if self.deferred else "")
