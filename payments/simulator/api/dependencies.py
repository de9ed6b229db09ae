"""Two sources that are nice to have: exchange rates and offers. Faults reach them too."""

from __future__ import annotations

from payments.simulator.api.call import Call
from payments.simulator.wire.http import Json

_RATES = {"EUR": 1.0, "USD": 1.09, "GBP": 0.86, "CHF": 0.94, "JPY": 163.2}
_OFFERS = (
    {"id": "offer_shipping", "title": "Free shipping on the next order", "percent_off": 0},
    {"id": "offer_loyalty", "title": "Five percent off for returning customers", "percent_off": 5},
)


def rates(call: Call) -> Json:
    """Return `{base, as_of, rates: {currency: number}}`."""
    return {"base": "EUR", "as_of": int(call.now), "rates": _RATES}


def offers(call: Call) -> Json:
    """Return `{as_of, offers: [{id, title, percent_off}]}`."""
    return {"as_of": int(call.now), "offers": list(_OFFERS)}
