"""Retries by tenacity: the key comes from outside the function that is repeated.

def pay(order):                          # WRONG: every attempt has a key of its own
    key = str(uuid.uuid4())
"""

import requests
import tenacity

AGAIN = {429, 500, 502, 503, 504}


class NotYet(Exception):
    """It is worth another try, with the same key."""

    def __init__(self, wait: float | None) -> None:
        super().__init__()
        self.wait = wait


def _pause(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    own = tenacity.wait_random_exponential(multiplier=0.2, max=5)(state)
    return getattr(error, "wait", None) or own


@tenacity.retry(
    # Errors by name: "anything but" would also repeat what stops the program.
    retry=tenacity.retry_if_exception_type((NotYet, requests.ConnectionError, requests.Timeout)),
    wait=_pause,
    stop=tenacity.stop_after_delay(60),
    reraise=True,
)
def pay(session: requests.Session, address: str, *, key: str, order: object) -> requests.Response:
    """POST the order under a key that the caller has kept."""
    answer = session.post(address, json=order, headers={"Idempotency-Key": key}, timeout=15)
    problem = answer.json() if "json" in answer.headers.get("Content-Type", "") else {}
    if answer.status_code in AGAIN or (not answer.ok and problem.get("retryable")):
        word = answer.headers.get("Retry-After", "")
        raise NotYet(float(word) if word.isdigit() else None)
    return answer
