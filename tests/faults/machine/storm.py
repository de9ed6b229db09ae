"""The storm: clients that insist, while everything under them breaks. What is done when is in `storm_plan.py`."""

import contextlib
import queue
import random
import threading
import time
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from django.db import DatabaseError, InterfaceError, connection

from tests.faults.machine.blows import BLOWS
from tests.faults.machine.deployment import Deployment
from tests.faults.machine.facts import Facts, World, gather
from tests.faults.machine.healing import Healed, Strike, healed
from tests.faults.machine.invariants import check, open_keys
from tests.faults.machine.storm_plan import Blow, Intent, Script
from tests.faults.machine.talk import Heard, Talk, ask

WORDS_OF_MONEY = {"source": "pm_card_visa", "currency": "EUR"}
# Seconds after the last blow within which all must be settled, on a machine that does other things too.
CALM = 90.0
LAST_WORD = 15.0


class Storm:
    """One run of a script."""

    def __init__(
        self, deployment: Deployment, script: Script, *, clients: int, replay: str
    ) -> None:
        self.deployment = deployment
        self.script = script
        self.blown: list[str] = []
        self._strikes: list[Strike] = []
        self._clients = clients
        self._replay = replay
        self._intents: queue.SimpleQueue[Intent] = queue.SimpleQueue()
        for intent in script.intents:
            self._intents.put(intent)
        self._talks: dict[int, Talk] = {}
        self._looked_at: set[int] = set()
        self._bought: list[Heard] = []
        self._lock = threading.Lock()
        self._calm = threading.Event()

    def rage(self, *, seconds: float) -> World:
        """Run it: blows for so long, then calm; return what there is to know at the end."""
        self._accounts = accounts_of(self.deployment.url)
        began = time.monotonic()
        blows = list(self.script.blows)
        looked = began
        with ThreadPoolExecutor(self._clients + 8) as pool:
            working = [pool.submit(self._client, pool) for _ in range(self._clients)]
            while time.monotonic() - began < seconds and not all(w.done() for w in working):
                # One at a time: on a slow machine the last ones are left out, and the storm ends all the same.
                if blows and blows[0].at <= time.monotonic() - began:
                    self._strike(blows.pop(0))
                with self._patient():
                    self.deployment.revive()
                if time.monotonic() - looked > 5:
                    self._look()
                    looked = time.monotonic()
                time.sleep(0.1)
            self._calm.set()
            self.deployment.thaw_all()
            for each in working:
                each.result()
            self._settle()
            words = [pool.submit(self._last_word, intent) for intent in self.script.intents]
            while not all(word.done() for word in words):
                # What the last blow told to stop may take until now to do so.
                with self._patient():
                    self.deployment.revive()
                time.sleep(0.5)
            for word in words:
                word.result()
            self._settle()
        return self._gather()

    @property
    def asked(self) -> int:
        return len(self._talks)

    # -- clients ---------------------------------------------------------------------------------

    def _client(self, pool: ThreadPoolExecutor) -> None:
        """Take one intent after another, each to its end or to the calm."""
        while not self._calm.is_set():
            try:
                intent = self._intents.get_nowait()
            except queue.Empty:
                return
            self._pursue(intent, pool)

    def _pursue(self, intent: Intent, pool: ThreadPoolExecutor) -> None:
        talk = self._talk(intent)
        if talk is None:
            return
        with self._lock:
            self._talks[intent.number] = talk
        chance = random.Random(intent.number)
        twins = [pool.submit(self._say, talk, intent) for _ in range(intent.twins - 1)]
        while not self._calm.is_set():
            self._say(talk, intent)
            if talk.final is not None:
                break
            self._calm.wait(chance.uniform(0.1, 0.8))
        for twin in twins:
            twin.result()
        final = talk.final
        if final is not None and final.status == 201 and intent.kind == "payment":
            with self._lock:
                self._bought.append(final)

    def _say(self, talk: Talk, intent: Intent) -> None:
        talk.say(self.deployment.url, timeout=intent.patience)

    def _talk(self, intent: Intent) -> Talk | None:
        """Return what the client asks for; None where there is nothing to ask it of yet."""
        match intent.kind:
            case "payment":
                source = "pm_card_chargeDeclined" if intent.declined else "pm_card_visa"
                body = {**WORDS_OF_MONEY, "source": source, "amount": 1000 + intent.amount}
                return Talk(
                    intent.key, "/api/payments/", {**body, "order_id": f"o-{intent.number}"}
                )
            case "payout":
                to = "acct_invalid" if intent.declined else "acct_1Storm"
                body = {"amount": intent.amount, "currency": "EUR", "destination": to}
                return Talk(intent.key, "/api/payouts/", body)
            case "transfer":
                one, other = self._accounts[:2]
                body = {"from_account": one, "to_account": other, "amount": intent.amount}
                return Talk(intent.key, "/api/transfers/", body)
        payment = self._some_payment(intent)
        if payment is None:
            return None
        if intent.kind == "receipt":
            body = {
                "payment": payment,
                "email": "a@example.org",
                "text": f"Thanks, {intent.number}",
            }
            return Talk(intent.key, "/api/receipts/", body)
        return Talk(intent.key, f"/api/payments/{payment}/refunds/", {"amount": intent.amount})

    def _some_payment(self, intent: Intent) -> str | None:
        with self._lock:
            if not self._bought:
                return None
            return str(self._bought[intent.number % len(self._bought)].json["id"])

    def _last_word(self, intent: Intent) -> None:
        """Come back after the storm: ask until there is an answer, and once more; perhaps for something else."""
        talk = self._talks.get(intent.number)
        if talk is None:
            return
        # By now all is settled or shown to a person, for whom no client waits.
        url, end = self.deployment.url, time.monotonic() + LAST_WORD
        talk.insist(url, until=end, stop=threading.Event(), chance=random.Random(1))
        talk.say(url)
        if intent.changes_its_mind and talk.final is not None and talk.final.status != 400:
            other = Talk(talk.key, talk.path, _changed(talk.body))
            end = time.monotonic() + LAST_WORD
            other.insist(url, until=end, stop=threading.Event(), chance=random.Random(1))
            if other.final is not None and other.final.code != "key-reused":
                raise AssertionError(f"another body under {talk}: {other}; {self._replay}")

    # -- blows -----------------------------------------------------------------------------------

    def _strike(self, blow: Blow) -> None:
        self.blown.append(f"{blow.at:.1f} {blow.name} {dict(blow.more)}")
        if blow.name != "gateway_fault":
            # When and whom a fault of the gateway strikes, the gateway's own log says.
            self._strikes.append(Strike(time.time(), blow.name))
        with self._patient():
            BLOWS[blow.name].act(self.deployment, **blow.more)

    # -- looking ---------------------------------------------------------------------------------

    def _look(self) -> None:
        """Check what must hold at any time, of each key until it has been seen with its last word."""
        with self._lock:
            now = {number for number in self._talks if number not in self._looked_at}
            ended = {number for number in now if self._talks[number].final is not None}
        with self._patient():
            check(self._gather(now), replay=self._replay, ended=False)
            self._looked_at |= ended

    def _settle(self) -> None:
        end = time.monotonic() + CALM
        while time.monotonic() < end:
            with self._patient():
                self.deployment.revive()
                if not open_keys():
                    return
            time.sleep(0.5)

    def healed(self, world: World) -> list[Healed]:
        """Return how long it took the keys whose outcome was lost to be settled."""
        spoiled: dict[str, list[Strike]] = defaultdict(list)
        for sent in self.deployment.stack.simulate("GET", "/_sim/requests"):
            status = sent["status"]
            if sent["method"] == "POST" and (status is None or status == 429 or status >= 500):
                strike = Strike(sent["at"], f"gateway: {status or 'no answer'}")
                spoiled[sent["idempotency_key"]].append(strike)

        def strikes(facts: Facts) -> list[Strike]:
            own = [strike for step in facts.steps for strike in spoiled[step.downstream_key]]
            return own + self._strikes

        return [each for facts in world.facts for each in healed(facts, strikes(facts))]

    def _gather(self, numbers: Container[int] | None = None) -> World:
        """Return what there is to know of all intents, or of those that are named."""
        # What was heard so far, before it is compared with what has happened by now.
        with self._lock:
            heard = [
                (i, replace(talk, heard=list(talk.heard), told=list(talk.told)))
                for i in self.script.intents
                if (talk := self._talks.get(i.number)) is not None
                and (numbers is None or i.number in numbers)
            ]
        effects = self.deployment.effects()
        return gather([(str(i), talk, i.effect) for i, talk in heard], effects)

    @contextlib.contextmanager
    def _patient(self) -> Iterator[None]:
        """Let the test's own connection break with the database, and a process be slow to start."""
        try:
            yield
        except (DatabaseError, InterfaceError):
            connection.close()
        except TimeoutError:
            # It goes on starting; what never comes up is seen in the calm.
            return


def _changed(body: Mapping[str, object]) -> Mapping[str, object]:
    """Return another request than this one."""
    if "text" in body:
        return {**body, "text": f"{body['text']} "}
    return {**body, "amount": int(str(body["amount"])) + 1}


def accounts_of(url: str) -> list[str]:
    """Return the ids of the caller's local accounts."""
    return [str(each["id"]) for each in ask("GET", f"{url}/api/accounts/").json["results"]]
