"""The settings: one typed property each, read live from the one dict `settings.IDEMPOTENCY`.

    from idempotency.conf import conf

    conf.LEASE  # 45.0

`SETTINGS` is the same list as data: the checks and the reference are made from it, not beside it.
A value of the wrong kind raises `ImproperlyConfigured` when it is read; a system check reports it
before that.
"""

from idempotency.setting import Count, Flag, Hook, Names, Number, Seconds, Secrets, Settings, Text


class Conf(Settings):
    """The settings, live. Durations are seconds as float."""

    dict_name = "IDEMPOTENCY"

    REQUEST_BUDGET = Seconds(12, "Time that one request may take, its answer included.")
    LEASE = Seconds(
        45, "Time from the first outside call after which a silent key becomes unknown."
    )
    RESULT_TTL = Seconds(259_200, "Time from settlement for which the answer is kept and replayed.")
    KEY_TTL = Seconds(2_592_000, "Time from settlement after which a key counts as new.")
    MISMATCH_STATUS = Count(
        422, "Status of the answer to a key reused for another request.", least=400, most=499
    )
    MAX_RESPONSE_BYTES = Count(
        1_048_576, "The longest answer that is kept; a longer one is not replayed."
    )
    RECONCILE_EVERY = Seconds(5, "Pause between two sweeps for unknown keys and lapsed leases.")
    WAKE_EVERY = Seconds(5, "Pause between two sweeps for deferred work that is due.")
    PURGE_EVERY = Seconds(60, "Pause between two purges of expired answers and keys.")
    OPERATION_MAX_ATTEMPTS = Count(
        3, "Runs of a deferred operation in one cycle, the first included."
    )
    OPERATION_TIME_LIMIT = Seconds(30, "Time that one run of a deferred operation may take.")
    RETRY_BASE = Seconds(
        0.1, "First pause before a deferred operation runs again; doubled each time."
    )
    RETRY_CAP = Seconds(5, "Longest of these pauses.")
    WAIT = Seconds(
        0, "Time that a repeat waits for a first request in progress; 0 answers at once.", zero=True
    )
    SCOPE = Hook(
        "idempotency.http.scope.tenant_and_user",
        "Whose key it is: gets the request, returns a string that stays the same for one caller.",
    )
    TENANT = Hook(
        None, "Which tenant the caller belongs to: gets the request, returns its id or None."
    )
    FINGERPRINT_SECRETS = Secrets(
        {},
        "Secrets by name, the current first; by default made of SECRET_KEY and its fallbacks.",
    )
    ENCRYPTION_KEYS = Names(
        (),
        "Fernet keys to keep answers and payloads under, the current first; none: readable.",
    )
    FINGERPRINT_HEADERS = Names(
        (), "Request headers that are part of what makes two requests equal."
    )
    DATABASE = Text(
        "default", "Alias of the database that holds the ledger, and what commits with it."
    )
    PROBLEM_BASE = Text("/problems/", "Address under which each problem code has its page.")
    PROBLEMS = Names(
        (), "Dotted paths of mappings from further problem codes to their description."
    )
    STORED_HEADERS = Names(
        (
            "Location",
            "Content-Location",
            "Content-Language",
            "ETag",
            "Last-Modified",
            "Link",
            "Retry-After",
        ),
        "Response headers that are kept and replayed; all others are dropped.",
    )
    DEADLINE_HEADER = Text(
        "",
        "Request header by which a caller may shorten the budget, in whole milliseconds; empty: none.",
    )
    PURGE_BATCH = Count(500, "Keys that one purge statement touches.")
    PURGE_PAUSE = Number(
        20, "Pause of a purge after each batch, in times of what the batch took; 0: none."
    )
    RECONCILE_BATCH = Count(50, "Keys that one reconciliation takes.")
    LOOKUP_BACKOFF_CAP = Seconds(300, "Longest pause between two look-ups of the same unknown key.")
    NEEDS_PERSON_AFTER = Seconds(
        3_600, "Time for which a key may be unknown before a person is asked."
    )
    NEEDS_PERSON_TRIES = Count(20, "Look-ups without a verdict before a person is asked.")
    RECORD_REPLAYS = Flag(
        False,
        "Whether the console's timeline shows replays: one a minute of a key is written, after its answer is sent.",
    )
    ADMIN_REGISTER = Flag(True, "Whether the console registers itself with Django's admin site.")
    ADMIN_BASE = Text(
        "",
        "Dotted path of the ModelAdmin class under the console; empty: that of the theme in use.",
    )
    ADMIN_BREAKERS = Hook(
        None, "Circuit breakers that the console shows: gets the request, returns them."
    )
    ADMIN_SWITCHES = Hook(
        None, "Read-only switches that console and metrics show: gets the request, returns them."
    )
    ADMIN_KNOWS = Hook(
        None,
        "What the host knows of the keys on one page: gets them, returns by id of a key a `types.Known`.",
    )
    REDACT = Names(
        ("account_number", "birth_date", "date_of_birth", "iban", "passport", "ssn", "tax_id"),
        "Fields of stored bodies and evidence that nobody is shown: names, or paths such as `customer.*.phone`.",
    )
    TRACE_URL = Text("", "Address of a trace, with `{trace_id}` in it; empty: no link.")
    RUNBOOK = Text("", "Address of the runbook that the console links; empty: no link.")


SETTINGS = Conf.known()
conf = Conf()
