"""The client for code that waits."""

from typing import Any, cast

from idempotency.client.answer import Answer, Operation, Progress
from idempotency.client.course import Course, seen
from idempotency.client.errors import StillOpen
from idempotency.client.intents import Intent, Intents
from idempotency.client.terms import (
    DEADLINE,
    FOLLOW_DEADLINE,
    KEY_MEMORY,
    POLICY,
    Terms,
    frozen,
    headers_of,
    looking,
    monitor_of,
    readable,
)
from idempotency.client.transports import OneProcess, answer_of, sender
from idempotency.clock import SYSTEM, Clock
from idempotency.exceptions import CallFailed, CallUnknown
from idempotency.resilience import Attempt, Deadline, RetryPolicy, deadline_scope, journalled


class Client:
    """Sends operations to one server, each under one key; safe to share between threads where `http` is.

    One for each process: a fork after its first call would share its connections, and is refused.

    Args:
        base_url: the server's address. Nothing is sent to any other.
        store: where intents are kept; `SqliteIntents` survives a restart.
        http: a `requests.Session` or a `Client` of httpx or httpx2, with the credentials in its headers; by default
            one that keeps deadlines to the letter, from the extra `http`; the others bound each read, so that an answer
            which drips outlives them. It must not retry by itself.
        policy: attempts, pauses and times of one series.
        deadline: seconds for one call, with all its attempts and waits.
        key_memory: seconds for which the server surely knows a key; nothing is sent under an older one.
    """

    def __init__(
        self,
        base_url: str,
        *,
        store: Intents,
        http: Any = None,
        policy: RetryPolicy = POLICY,
        deadline: float = DEADLINE,
        key_memory: float = KEY_MEMORY,
        clock: Clock = SYSTEM,
    ) -> None:
        if http is None:
            from idempotency.resilience import http_client

            http = http_client(timeout=policy.attempt_timeout)
        self._terms = Terms(base_url, store, policy, deadline, key_memory, clock)
        self._send, self._process = sender(http), OneProcess()
        self._effects = self._terms.guard(effect=True)
        self._reads = self._terms.guard(effect=False)

    def post(self, path: str, *, intent: str, **request: Any) -> Answer:
        """POST, as `request` does."""
        return self.request("POST", path, intent=intent, **request)

    def request(
        self,
        method: str,
        path: str,
        *,
        intent: str,
        json: Any = None,
        content: bytes | None = None,
        content_type: str = "application/json",
        deadline: float | None = None,
    ) -> Answer:
        """Do the operation that the intent names, once, and return its final answer.

        Tries again, with the same key, what was not executed and what may have been; waits for what is in progress or
        unknown. A second call with the same intent gets the same answer.

        Raises:
            CallFailed: certainly nothing happened; the same intent can be used again.
            StillOpen: it may have happened, or is happening: call again with the same intent.
            IntentChanged: the intent was begun with another request.
            IntentsUnavailable: the store cannot be asked, so that nothing was sent.
            Misuse: the path leads to another server, or the client has sent in another process.
        """
        self._process.require()
        self._terms.url(path)
        wanted = frozen(method, path, json_body=json, content=content, content_type=content_type)
        return self._do(self._terms.store.begin(name=intent, request=wanted), deadline)

    def resume(
        self, *, deadline: float | None = None
    ) -> dict[str, Answer | StillOpen | CallFailed]:
        """Finish what an earlier process began: everything in the store without a final answer, by intent."""
        self._process.require()
        ends: dict[str, Answer | StillOpen | CallFailed] = {}
        for intent in self._terms.store.unanswered():
            try:
                ends[intent.name] = self._do(intent, deadline)
            except (StillOpen, CallFailed) as error:
                ends[intent.name] = error
        return ends

    def renew(self, intent: str) -> None:
        """Let an intent that was refused for good be tried again under a new key. Raises: NotRenewable."""
        self._terms.store.renew(name=intent)

    def follow(
        self, answer: Answer, *, progress: Progress | None = None, deadline: float = FOLLOW_DEADLINE
    ) -> Operation:
        """Return the operation that a 202 has promised, once it is done; `progress` is told each look.

        Raises:
            StillOpen: it is not done within the deadline, in seconds, or cannot be looked at; the work goes on.
            CallRejected: the monitor does not show it (any more).
        """
        self._process.require()
        url, clock = self._terms.url(monitor_of(answer)), self._terms.clock
        limit, looks = Deadline.after(deadline, clock), 0
        while True:
            with looking(url), deadline_scope(limit):
                told = readable(self._reads.call(lambda attempt: self._look(url, attempt)))
                operation = Operation.of(told)
            if progress is not None:
                progress(operation)
            if operation.done:
                return operation
            word = told.wait(now=clock.wall())
            pause = self._terms.policy.pause(looks, word=word, clock=clock)
            looks += 1
            if pause > limit.left():
                raise StillOpen(f"{url} is not done yet", intent="", retry_after=pause)
            clock.wait(None, pause)

    # -- one operation -------------------------------------------------------------------------------------------------

    def _do(self, intent: Intent, deadline: float | None) -> Answer:
        if intent.answer is not None:
            return intent.answer
        course = Course(intent, policy=self._terms.policy, clock=self._terms.clock)
        course.require_known(self._terms.key_memory)
        limit = Deadline.after(deadline or self._terms.deadline, self._terms.clock)
        while True:
            with deadline_scope(limit), journalled(course.before_send):
                answer = self._series(course)
            pause = course.pause(answer, limit)
            if pause is None:
                return self._keep(course, answer)
            self._terms.clock.wait(None, pause)

    def _series(self, course: Course) -> Answer:
        try:
            found = self._effects.call(lambda attempt: self._attempt(course, attempt))
        except (CallFailed, CallUnknown) as error:
            ending = course.ended(error)
            if isinstance(ending, CallFailed) and not self._terms.loosen(course.intent):
                ending = course.shared()
            raise ending from error
        return cast(Answer, found)

    def _attempt(self, course: Course, attempt: Attempt) -> object:
        intent = course.intent
        raw = self._send(
            intent.request.method,
            self._terms.url(intent.request.path),
            headers_of(intent.request, intent.key),
            intent.request.body,
            attempt.timeout,
        )
        return course.take(answer_of(raw), raw)

    def _keep(self, course: Course, answer: Answer) -> Answer:
        if course.is_final(answer):
            self._terms.keep(course.intent, answer)
        elif course.is_free(answer):
            self._terms.loosen(course.intent)
        return answer

    def _look(self, url: str, attempt: Attempt) -> object:
        raw = self._send("GET", url, {"Accept": "application/json"}, None, attempt.timeout)
        return seen(answer_of(raw), raw, clock=self._terms.clock)
