"""The settings: one typed property each, read live from the one dict `settings.PAYMENTS`.

    from payments.conf import conf

    conf.GATEWAY_TIMEOUT  # 3.0

`SETTINGS` is the same list as data: the environment is read and the checks are made by it.
"""

from django.conf import settings

from idempotency.setting import Count, Number, Setting, Settings

DEMO_URL = "http://127.0.0.1:12111"
DEMO_SECRET = "whsec_demo_only"  # noqa: S105 - public on purpose: it is refused outside DEBUG


class Flag(Setting[bool]):
    """Yes or no."""

    def read(self, raw: object) -> bool:
        if raw not in (True, False):
            raise ValueError(f"true or false is wanted, not {raw!r}")
        return bool(raw)


class InDebug(Flag):
    """Yes or no; what DEBUG is where the host says nothing."""

    def fallback(self) -> bool:
        return bool(settings.DEBUG)


class Text(Setting[str]):
    """A string; `demo` is its value in DEBUG where the host says nothing."""

    def __init__(self, default: str, doc: str, *, demo: str = "") -> None:
        super().__init__(default, doc)
        self.demo = demo

    def fallback(self) -> str:
        return self.demo if settings.DEBUG and self.demo else self.default

    def read(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise ValueError("a string is wanted")
        return raw


class Conf(Settings):
    """The settings, live. Durations are seconds as float."""

    dict_name = "PAYMENTS"

    GATEWAY_URL = Text("", "Address of the payment gateway.", demo=DEMO_URL)
    GATEWAY_API_KEY = Text("", "Secret key of our account at it.", demo="sk_test_demo_only")
    DEPENDENCIES_URL = Text(
        "", "Address of the sources of rates and offers; the gateway's own where it is empty."
    )
    GATEWAY_KEYED = Flag(
        True, "Whether it honours idempotency keys; if not, an ambiguous send is never repeated."
    )
    GATEWAY_TIMEOUT = Number(3, "Time that one attempt of a call may take.", least=0.01)
    GATEWAY_ATTEMPTS = Count(3, "Attempts of one call, the first included.")
    GATEWAY_SETTLING_TIME = Number(
        20, "Time after which a call that was going to be applied can be found by a look-up."
    )
    GATEWAY_KEY_TTL = Number(86_400, "Time for which the gateway remembers an idempotency key.")
    GATEWAY_BULKHEAD = Count(32, "Calls to it at the same time, per process.")
    GATEWAY_RETRY_BASE = Number(0.05, "First pause between two attempts; doubled each time.")
    GATEWAY_RETRY_CAP = Number(1, "Longest of these pauses.")
    BREAKER_WINDOW = Number(30, "Time over which the breaker counts calls.", least=0.1)
    BREAKER_MIN_CALLS = Count(10, "Calls in the window below which the breaker stays closed.")
    BREAKER_RATIO = Number(
        0.5, "Share of failed calls at which the breaker opens.", least=0.01, most=1
    )
    BREAKER_OPEN = Number(10, "Time for which an open breaker refuses every call.", least=0.1)
    BREAKER_PROBES = Count(2, "Calls let through at the same time by a half-open breaker.")
    BREAKER_SUCCESSES = Count(2, "Successes that close it.")
    ONE_OPEN_PAYMENT_PER_ORDER = Flag(
        False, "Whether a payment is refused while another of the same order is open."
    )
    WEBHOOK_SECRET = Text("", "Secret that the gateway signs its events with.", demo=DEMO_SECRET)
    WEBHOOK_TOLERANCE = Number(
        300, "Age beyond which a signed event is refused as a replay.", least=1
    )
    ENDPOINT_TIMEOUT = Number(
        10, "Time that one try of a delivery to a merchant's endpoint may take.", least=0.1, most=20
    )
    ENDPOINT_GIVE_UP = Number(259_200, "Time after which a delivery is given up.", least=1)
    ENDPOINT_DISABLE_AFTER = Number(
        432_000, "Time of nothing but failures after which an endpoint is disabled.", least=1
    )
    ENDPOINT_OVERLAP = Number(
        86_400, "Time for which a replaced secret of an endpoint goes on signing."
    )
    ENDPOINT_PRIVATE = InDebug(
        False,
        "Whether endpoints may be at loopback or private addresses and without TLS; for development, as in DEBUG.",
    )
    DELIVERY_TTL = Number(2_592_000, "Time for which a delivery that has ended is kept.", least=1)
    TIDY_EVERY = Number(300, "Pause between two purges of deliveries.", least=1)
    FOLLOW_EVERY = Number(
        30, "Pause between two looks at what the gateway has not decided yet.", least=0.1
    )


SETTINGS = Conf.known()
conf = Conf()
