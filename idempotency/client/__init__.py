"""A client that cannot do an operation twice: one key per intent, kept over retries and restarts. Needs no Django.

    client = Client("https://api.example.com", http=session, store=SqliteIntents("intents.db"))
    answer = client.post("/api/payments/", json=order, intent=f"charge order {order_id}")
    if answer.status == 202:
        operation = client.follow(answer, progress=print)

`intent` names what is to be done, in words that a restarted process would find again. Its key is made and written down
before the first send, and nobody ever handles it: a retry, another process, a call in a retrying decorator, all find
the same key under the same name. Every final answer is returned, whatever its status; `CallFailed` means that certainly
nothing happened, `StillOpen` that nobody knows yet: call again with the same intent.
"""

from idempotency.client.answer import Answer, Operation
from idempotency.client.asynchronous import AsyncClient
from idempotency.client.errors import IntentChanged, IntentsUnavailable, NotRenewable, StillOpen
from idempotency.client.intents import Intent, Intents, MemoryIntents, Request
from idempotency.client.sqlite import SqliteIntents
from idempotency.client.synchronous import Client

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "Intent",
    "IntentChanged",
    "Intents",
    "IntentsUnavailable",
    "MemoryIntents",
    "NotRenewable",
    "Operation",
    "Request",
    "SqliteIntents",
    "StillOpen",
]
