"""What is published about each problem code of this package: data, one entry a code."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is published about one code.

    `retryable` says whether the same request under the same key is worth another try, and
    `safe_new_key` whether a new key can never do the same work twice. None: it depends, or neither.
    """

    code: str
    status: int
    title: str
    when: str
    client: str
    """What the client does about it."""
    retryable: bool | None = None
    safe_new_key: bool | None = None
    retry_after: float | None = None
    """Seconds that the answer asks to wait where nothing better is known."""
    also: tuple[int, ...] = ()
    """Further statuses that carry the code."""


KEYS = (
    Entry(
        code="key-missing",
        status=400,
        title="An idempotency key is required",
        when="The endpoint requires an Idempotency-Key header and the request has none.",
        client="Make one random key per operation, keep it, and send it with every try.",
        retryable=False,
        safe_new_key=True,
    ),
    Entry(
        code="key-invalid",
        status=400,
        title="The idempotency key is not well formed",
        when="The header is blank, repeated, longer than 255 characters, or not visible ASCII.",
        client="Send one key of 1 to 255 visible ASCII characters, bare or in double quotes.",
        retryable=False,
        safe_new_key=True,
    ),
    Entry(
        code="key-reused",
        status=422,
        title="The idempotency key belongs to another request",
        when="The key was used before, for a request that differs in the parts named.",
        client=(
            "Repeat the first request unchanged to learn its outcome. For another operation use a "
            "new key, but only once the first is no longer in progress or unknown."
        ),
        retryable=False,
    ),
    Entry(
        code="in-progress",
        status=409,
        title="The first request with this key is still running",
        when="A request with the same key has begun and has not ended yet.",
        client="Repeat the same request with the same key after Retry-After.",
        retryable=True,
        safe_new_key=False,
        retry_after=1,
    ),
    Entry(
        code="outcome-unknown",
        status=504,
        also=(409,),
        title="It is not known yet whether the operation happened",
        when=(
            "A call to another system may have been executed and its answer was lost. It is being "
            "looked up; the first request gets 504, repeats get 409."
        ),
        client=(
            "Repeat the same request with the same key after Retry-After. Never use a new key: the "
            "work could be done twice. Show operation_ref to support if it lasts."
        ),
        retryable=True,
        safe_new_key=False,
    ),
    Entry(
        code="result-unavailable",
        status=409,
        title="The operation is done, but its answer was not kept",
        when="The answer was too large, a stream, or could not be rendered when it was stored.",
        client="Read the resource instead. Do not repeat the operation under a new key.",
        retryable=False,
        safe_new_key=False,
    ),
    Entry(
        code="result-expired",
        status=410,
        title="The operation is done, and its answer is no longer kept",
        when="The request was repeated after the time for which answers are kept.",
        client="Read the resource instead. Do not repeat the operation under a new key.",
        retryable=False,
        safe_new_key=False,
    ),
    Entry(
        code="not-done",
        status=409,
        title="The operation was closed as not done",
        when="Nobody could tell whether it happened, and staff decided on evidence that it did not.",
        client="To have it done, send it again under a new key.",
        retryable=False,
        safe_new_key=True,
    ),
    Entry(
        code="too-late",
        status=409,
        title="The operation can no longer be cancelled",
        when="A cancellation arrived when the work had begun or was over.",
        client="Read the operation: it will show how it ended.",
        retryable=False,
        safe_new_key=False,
    ),
)

UNAVAILABLE = (
    Entry(
        code="ledger-unavailable",
        status=503,
        title="The request could not be recorded, so nothing was done",
        when="The database of idempotency keys cannot be reached.",
        client="Repeat the same request with the same key after Retry-After.",
        retryable=True,
        safe_new_key=False,
        retry_after=2,
    ),
    Entry(
        code="overloaded",
        status=503,
        title="Too much work is under way",
        when="The service, or its share of calls to another system, is full. Nothing was done.",
        client="Repeat the same request with the same key after Retry-After.",
        retryable=True,
        safe_new_key=False,
        retry_after=1,
    ),
    Entry(
        code="no-time",
        status=503,
        title="Too little time was left to do it safely",
        when="The time for the request was nearly spent before the work began. Nothing was done.",
        client="Repeat the same request with the same key after Retry-After, with more time.",
        retryable=True,
        safe_new_key=False,
        retry_after=1,
    ),
    Entry(
        code="circuit-open",
        status=503,
        title="A system that is needed is failing, so it was not called",
        when="Recent calls to the other system failed; it is left alone for a while.",
        client="Repeat the same request with the same key after Retry-After.",
        retryable=True,
        safe_new_key=True,
        retry_after=5,
    ),
    Entry(
        code="gateway-unavailable",
        status=503,
        title="A system that is needed could not do it",
        when="The other system was not reached, or said that it did nothing.",
        client="Repeat the same request with the same key after Retry-After.",
        retryable=True,
        safe_new_key=True,
        retry_after=2,
    ),
    Entry(
        code="read-only",
        status=503,
        title="The service is read-only for the moment",
        when="Writing is switched off. Reading goes on.",
        client="Repeat the same request with the same key after Retry-After.",
        retryable=True,
        safe_new_key=False,
        retry_after=30,
    ),
)

REQUESTS = (
    Entry(
        code="call-rejected",
        status=402,
        title="The other system refused",
        when="The other system understood the request and said no. Nothing happened there.",
        client="Correct what was refused and send it as a new operation, with a new key.",
        retryable=False,
        safe_new_key=True,
    ),
    Entry(
        code="body-invalid",
        status=400,
        title="The body does not mean one thing only",
        when=(
            "The body is not well formed, is nested too deeply, has a member twice, or holds a "
            "number or text that not every reader would read alike. The key was not touched."
        ),
        client="Correct the body; the same key can be used.",
        retryable=False,
    ),
    Entry(
        code="body-unreadable",
        status=400,
        title="The body did not arrive whole",
        when="The connection broke, or fewer bytes came than were announced. Nothing was done.",
        client="Repeat the same request with the same key.",
        retryable=True,
        safe_new_key=False,
    ),
    Entry(
        code="body-too-large",
        status=413,
        title="The body is too large",
        when="The body, or its number of fields or files, is beyond what the service takes.",
        client="Send less; the same key can be used.",
        retryable=False,
    ),
    Entry(
        code="length-required",
        status=411,
        title="The length of the body must be announced",
        when="The body was sent without a Content-Length, e.g. in chunks, so it would not be seen.",
        client="Send a Content-Length; the same key can be used.",
        retryable=False,
    ),
)
