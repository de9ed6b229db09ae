"""A consumer as a process of its own, to be killed: pays once, under an intent that it finds again.

python client_process.py <address> <file of intents> <token of the gateway>
"""

import sys

import requests

from idempotency.client import Client, SqliteIntents


def main(address: str, path: str, source: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = "Token demo-merchant-a"
        client = Client(address, http=session, store=SqliteIntents(path))
        order = {"order_id": "881", "amount": 1200, "currency": "EUR", "source": source}
        answer = client.post("/api/payments/", json=order, intent="charge order 881")
    print(answer.status, answer.replayed, answer.json()["id"])


if __name__ == "__main__":
    main(*sys.argv[1:])
