"""Every kind of fault, as data: a new kind is one more entry in `KINDS`.

Names are `<what>_<before|after>`. *Before*: nothing was applied. *After*: the effect was applied,
and the answer was lost or spoiled. An effect that was applied is also remembered under its
idempotency key, together with the true answer unless `kept` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from payments.simulator.api import errors
from payments.simulator.wire.http import Answer, Framing


class Applied(Enum):
    """What becomes of the request's effect."""

    NEVER = "nothing is applied"
    NOW = "applied before the answer"
    LATER = "applied `seconds` later"


class Step(Enum):
    """One thing done to the connection when answering."""

    SEND_HALF_HEAD = "send half of the head: the status line and some headers"
    SEND_HEAD = "send the rest of the head"
    SEND_HALF_BODY = "send half of the body"
    SEND_ALL = "send the rest"
    DRIP = "send the rest byte by byte, evenly over `seconds`"
    STALL = "do nothing for `seconds`, or until the client leaves"
    CLOSE = "close the connection in order"
    RESET = "reset the connection"


SENDING = frozenset(
    {Step.SEND_HALF_HEAD, Step.SEND_HEAD, Step.SEND_HALF_BODY, Step.SEND_ALL, Step.DRIP}
)


@dataclass(frozen=True)
class FaultKind:
    """How one kind of fault behaves.

    Attributes:
        name: as given to POST /_sim/faults.
        applied: what becomes of the effect.
        wire: what is done to the connection, in order.
        instead: what is said in place of the true answer.
        by_gateway: whether `instead` is the gateway's own word, marked with a Request-Id; a page
            by something between carries none.
        kept: whether `instead` is remembered under the idempotency key, as the true answer is.
        unread: strikes when the head has been read, before the body is.
        framing: how the answer's length is told.
        seconds: how long it lasts when the fault does not say.
    """

    name: str
    applied: Applied
    wire: tuple[Step, ...] = (Step.SEND_ALL,)
    instead: Answer | None = None
    by_gateway: bool = True
    kept: bool = False
    unread: bool = False
    framing: Framing = Framing.TRUE
    seconds: float = 30.0

    @property
    def tells_status(self) -> bool:
        """Tell whether a status line leaves this server."""
        return self.framing is not Framing.NONE and not SENDING.isdisjoint(self.wire)


def _page(status: int, title: str) -> Answer:
    html = f"<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>"
    return Answer(status, html.encode(), content_type="text/html")


_NEVER, _NOW, _LATER = Applied.NEVER, Applied.NOW, Applied.LATER
_HALF_HEAD, _HEAD, _HALF_BODY = Step.SEND_HALF_HEAD, Step.SEND_HEAD, Step.SEND_HALF_BODY
_ALL, _DRIP, _STALL, _CLOSE, _RESET = (
    Step.SEND_ALL, Step.DRIP, Step.STALL, Step.CLOSE, Step.RESET,
)  # fmt: skip
_GARBAGE = Answer(200, b"\x00\x01\x02 this is no HTTP\r\n\r\n")

NO_FAULT = FaultKind("none", _NOW)

KINDS: dict[str, FaultKind] = {
    kind.name: kind
    for kind in (
        # Refusals: the gateway's own word that nothing was executed.
        FaultKind("refuse_503", _NEVER, instead=errors.unavailable().answer),
        FaultKind("rate_limit_429", _NEVER, instead=errors.rate_limited().answer),
        # Errors of the gateway.
        FaultKind("error_500_before", _NEVER, instead=errors.broke_down().answer),
        FaultKind("error_500_kept_before", _NEVER, instead=errors.broke_down().answer, kept=True),
        FaultKind("error_500_after", _NOW, instead=errors.broke_down().answer, kept=True),
        FaultKind(
            "error_400_kept_before",
            _NEVER,
            instead=errors.account_not_enabled().answer,
            kept=True,
        ),
        # Pages by something between client and gateway.
        FaultKind("bad_gateway_502_before", _NEVER, instead=_page(502, "502 Bad Gateway"),
                  by_gateway=False),
        FaultKind("bad_gateway_502_after", _NOW, instead=_page(502, "502 Bad Gateway"),
                  by_gateway=False),
        FaultKind("proxy_503_before", _NEVER, instead=_page(503, "503 Service Unavailable"),
                  by_gateway=False),
        FaultKind("proxy_503_after", _NOW, instead=_page(503, "503 Service Unavailable"),
                  by_gateway=False),
        FaultKind("proxy_429_after", _NOW, instead=_page(429, "429 Too Many Requests"),
                  by_gateway=False),
        FaultKind("gateway_timeout_504_after", _NOW, instead=_page(504, "504 Gateway Timeout"),
                  by_gateway=False),
        FaultKind("html_200_before", _NEVER, instead=_page(200, "Please sign in"),
                  by_gateway=False),
        FaultKind("html_200_after", _NOW, instead=_page(200, "Please sign in"),
                  by_gateway=False),
        # Silence, at every stage; then the connection is closed.
        FaultKind("hang_sending_before", _NEVER, wire=(_STALL, _CLOSE), unread=True),
        FaultKind("hang_before", _NEVER, wire=(_STALL, _CLOSE)),
        FaultKind("hang_after", _NOW, wire=(_STALL, _CLOSE)),
        FaultKind("hang_mid_headers_after", _NOW, wire=(_HALF_HEAD, _STALL, _CLOSE)),
        FaultKind("hang_mid_body_after", _NOW, wire=(_HEAD, _HALF_BODY, _STALL, _CLOSE)),
        # Resets, at every stage.
        FaultKind("reset_sending_before", _NEVER, wire=(_RESET,), unread=True),
        FaultKind("reset_before", _NEVER, wire=(_RESET,)),
        FaultKind("reset_after", _NOW, wire=(_RESET,)),
        FaultKind("reset_mid_headers_after", _NOW, wire=(_HALF_HEAD, _RESET)),
        FaultKind("reset_mid_body_after", _NOW, wire=(_HEAD, _HALF_BODY, _RESET)),
        # Orderly closes without a whole answer.
        FaultKind("close_before", _NEVER, wire=(_CLOSE,)),
        FaultKind("close_after", _NOW, wire=(_CLOSE,)),
        FaultKind("truncate_after", _NOW, wire=(_HEAD, _HALF_BODY, _CLOSE)),
        FaultKind("truncate_headers_after", _NOW, wire=(_HALF_HEAD, _CLOSE)),
        FaultKind("truncate_chunked_after", _NOW, wire=(_ALL, _CLOSE), framing=Framing.CHUNKED),
        # Answers that cannot be read.
        FaultKind("garbage_after", _NOW, wire=(_ALL, _CLOSE), instead=_GARBAGE, by_gateway=False,
                  framing=Framing.NONE),
        FaultKind("length_short_after", _NOW, wire=(_ALL, _CLOSE), framing=Framing.SHORT),
        FaultKind("length_long_after", _NOW, wire=(_ALL, _CLOSE), framing=Framing.LONG),
        # Slow, but whole.
        FaultKind("drip", _NOW, wire=(_DRIP,), seconds=10.0),
        FaultKind("drip_body_after", _NOW, wire=(_HEAD, _DRIP), seconds=10.0),
        FaultKind("slow_after", _NOW, wire=(_STALL, _ALL), seconds=1.0),
        # Whole, but the connection that promised to stay open is gone.
        FaultKind("idle_close_after", _NOW, wire=(_ALL, _CLOSE)),
        FaultKind("idle_reset_after", _NOW, wire=(_ALL, _RESET)),
        # The answer is lost at once, and the effect comes `seconds` later.
        FaultKind("late_success", _LATER, wire=(_RESET,), seconds=5.0),
    )
}  # fmt: skip
