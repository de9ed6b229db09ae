"""One round of the matrix: many cells at once on one deployment, from the first request to the last word."""

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

from django.core.management import call_command
from django.db import connection

from idempotency import reconciliation
from idempotency.ledger import settlement
from idempotency.models import Key
from idempotency.reconciliation import Refused
from idempotency.types import State
from tests.faults.machine.axes import BY_HAND, Cell
from tests.faults.machine.deployment import SETTLING, Deployment
from tests.faults.machine.facts import BOOKS, World, gather
from tests.faults.machine.healing import Healed
from tests.faults.machine.invariants import SETTLED, open_keys
from tests.faults.machine.talk import Talk

# On a machine that does other things too; what it really took is reported.
PATIENCE = 90.0
# More than any amount of the matrix: a payment out of which one refund is made.
PRICE = 1_000_000


class Round:
    """Cells that are played together."""

    def __init__(self, deployment: Deployment, cells: list[Cell], *, seed: int) -> None:
        self.deployment = deployment
        self.cells = cells
        self._chance = random.Random(seed)
        self._stop = threading.Event()
        self.talks: dict[int, Talk] = {}
        self._keys = [cell.key for cell in cells]

    def play(self) -> World:
        """Play it; return all that there is to know at its end."""
        by_hand = all(cell.settler in BY_HAND for cell in self.cells)
        self._prepare()
        with ThreadPoolExecutor(16) as clients:
            list(clients.map(self._first_word, self.cells))
            insisting = [cell for cell in self.cells if cell.settler == "client"]
            running = [clients.submit(self._insist, self.talks[c.number]) for c in insisting]
            with self._stopping():
                self._settle(by_hand=by_hand)
            for each in running:
                each.result()
            self._stop.clear()
            # Everybody comes back and asks; where something was left to do, more than once.
            for _ in range(3):
                list(clients.map(self._last_word, self.cells))
                self._settle(by_hand=by_hand)
                if all(talk.done for talk in self.talks.values()):
                    break
        return self._gather()

    def healed(self, world: World) -> Iterator[Healed]:
        """Generate, by strike, the time from it to the first settlement after it.

        A strike that left no key behind has left nothing to heal: its client asks again, whenever it wants.
        """
        for cell, facts in zip(self.cells, world.facts, strict=True):
            at = self.deployment.struck(cell.key)
            moves = [move for move in facts.moves if move.table == "idempotency_key"]
            if at is None or not any(move.at < at.at for move in moves):
                continue
            settled = [move.at for move in moves if move.new in SETTLED and move.at >= at.at]
            if settled:
                yield Healed(str(cell), str(cell.strike), settled[0] - at.at)

    # -- the clients -----------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Pay what is to be refunded, then let the gateway fail where the cells say so."""
        stack = self.deployment.stack
        webhooks = "twice" if any(cell.settler == "webhook" for cell in self.cells) else "off"
        stack.simulate("PUT", "/_sim/config", {"webhooks": webhooks, "lookup_lag": SETTLING / 2})
        with ThreadPoolExecutor(8) as clients:
            for cell, talk in clients.map(self._open, self.cells):
                self.talks[cell.number] = talk
        for cell in self.cells:
            if cell.fault is not None:
                stack.simulate(
                    "POST",
                    "/_sim/faults",
                    {
                        "path": cell.work.gateway_path,
                        "kind": cell.fault,
                        # Alone it must outlast a series of attempts; with a strike once is enough.
                        "times": 2 if cell.strike is None else 1,
                        "seconds": 1.2,
                        "match": {"amount": cell.amount, "method": "POST"},
                    },
                )

    def _open(self, cell: Cell) -> tuple[Cell, Talk]:
        match cell.work.name:
            case "payment":
                body = _order(cell, cell.amount)
                return cell, Talk(cell.key, "/api/payments/", body)
            case "payout":
                body = {"amount": cell.amount, "currency": "EUR", "destination": "acct_1Machine"}
                return cell, Talk(cell.key, "/api/payouts/", body)
        payment = Talk(f"price-{cell.number}", "/api/payments/", _order(cell, PRICE))
        end = time.monotonic() + PATIENCE
        payment.insist(self.deployment.url, until=end, stop=self._stop, chance=self._chance)
        if payment.final is None or payment.final.status != 201:
            raise AssertionError(f"{cell}: there is nothing to refund: {payment}")
        path = f"/api/payments/{payment.final.json['id']}/refunds/"
        return cell, Talk(cell.key, path, {"amount": cell.amount})

    def _first_word(self, cell: Cell) -> None:
        talk = self.talks[cell.number]
        talk.say(self.deployment.armed_url)

    def _insist(self, talk: Talk) -> None:
        end = time.monotonic() + PATIENCE
        talk.insist(self.deployment.url, until=end, stop=self._stop, chance=self._chance)

    def _last_word(self, cell: Cell) -> None:
        talk = self.talks[cell.number]
        end = time.monotonic() + 5
        talk.insist(
            self.deployment.url, until=end, stop=self._stop, chance=random.Random(cell.number)
        )
        if talk.final is not None:
            # What is settled is told again, byte for byte.
            talk.say(self.deployment.url)

    # -- who settles -----------------------------------------------------------------------------

    def _settle(self, *, by_hand: bool) -> None:
        """Wait until every key is settled or shown to a person, and no process is frozen any more."""
        restarted = not any(cell.settler == "worker" for cell in self.cells)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            thawed = self.deployment.thaw(self._keys)
            if not restarted and self._worker_cells_ran():
                self.deployment.restart("worker")
                restarted = True
            if by_hand:
                self._by_hand()
            if thawed and restarted and not open_keys():
                return
            time.sleep(0.2)
        # What is still open is told by the invariants, key by key.

    def _worker_cells_ran(self) -> bool:
        mine = [cell.key for cell in self.cells if cell.settler == "worker"]
        begun = Key.objects.filter(key__in=mine, work__attempts__gte=1).count()
        return begun == Key.objects.filter(key__in=mine).count()

    def _by_hand(self) -> None:
        """Let leases lapse as a sweep does; let staff decide, and then the command."""
        lapsed = settlement.lapse(connection=connection, limit=1000)
        unknown = Key.objects.filter(key__in=self._keys, state=State.UNKNOWN)
        mine = [cell.key for cell in self.cells if cell.settler == "staff"]
        for key in unknown.filter(key__in=mine, needs_person_since=None):
            self._by_staff(key)
        if lapsed:
            self.deployment.manage("idempotency_reconcile", "--all")
        elif open_keys():
            # Again and again: in this process, which starts faster.
            call_command("idempotency_reconcile", "--all", stdout=StringIO())
        call_command("idempotency_wake", "--run", stdout=StringIO())

    def _by_staff(self, key: Key) -> None:
        """Ask, and if the gateway's look-up does not know, decide by what its books show."""
        report = reconciliation.ask_now(key_id=key.id, actor="staff")
        if report.state is not State.UNKNOWN:
            return
        found = (books.objects.filter(key_id=key.id).first() for books in BOOKS.values())
        row = next(filter(None, found), None)
        mine = [e for e in self.deployment.effects() if row and e["reference"] == str(row.pk)]
        evidence = {"reference": mine[0]["id"]} if mine else {"seen": "nothing"}
        with contextlib.suppress(Refused):
            reconciliation.settle_by_hand(
                key_id=key.id,
                happened=bool(mine),
                actor="staff",
                reason="The gateway's own books say so.",
                evidence=evidence,
            )

    # -- the end ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _stopping(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._stop.set()

    def _gather(self) -> World:
        asked = [(str(cell), self.talks[cell.number], cell.work.effect) for cell in self.cells]
        return gather(asked, self.deployment.effects())


def _order(cell: Cell, amount: int) -> dict[str, object]:
    return {
        "order_id": f"order-{cell.number}",
        "amount": amount,
        "currency": "EUR",
        "source": "pm_card_visa",
    }


def rounds(cells: list[Cell], *, size: int) -> Iterator[list[Cell]]:
    """Part the cells into rounds: those settled by hand, while beat is off, come first."""
    for hand in (True, False):
        mine = [cell for cell in cells if (cell.settler in BY_HAND) is hand]
        for begin in range(0, len(mine), size):
            yield mine[begin : begin + size]
