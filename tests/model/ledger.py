"""What the ledger reads and writes, on a `World`: one function for each guarded statement of `idempotency.ledger`."""

from typing import Literal

from tests.model.world import (
    HOLDS_A_LOCK,
    SENDERS,
    UNSETTLED,
    Ending,
    Process,
    Rules,
    Setting,
    World,
)

Status = Literal["new", "open", "applied", "ended"]


class Ledger:
    def __init__(self, setting: Setting, rules: Rules) -> None:
        self.setting, self.rules = setting, rules

    # -- read ----------------------------------------------------------------------------------------------------------

    def status(self, w: World, step: int) -> Status:
        """What the journal says of a step (`OPEN_STEP`, `APPLIED_STEP`)."""
        endings = self.endings(w, step)
        if "applied" in endings:
            return "applied"
        if endings & UNSETTLED or (
            self.rules.row_per_sender
            and any(
                p.step == step and p.place in SENDERS and (self.rules.all_claims or p.owns)
                for p in w.processes
            )
        ):
            return "open"
        return "ended" if endings else "new"

    def statuses(self, w: World) -> list[Status]:
        return [self.status(w, step) for step in range(self.setting.steps)]

    def endings(self, w: World, step: int) -> frozenset[Ending]:
        return frozenset(ending for s, _, ending in w.endings if s == step)

    def next_step(self, w: World) -> int | None:
        return next((k for k, s in enumerate(self.statuses(w)) if s != "applied"), None)

    def is_locked(self, w: World) -> bool:
        """Whether the key's row, or its identity, is locked by a phase that is not committed."""
        return any(p.place in HOLDS_A_LOCK for p in w.processes)

    def has_room(self, w: World) -> bool:
        return sum(not p.halted for p in w.processes) < self.setting.at_once

    # -- write: the journal --------------------------------------------------------------------------------------------

    def record(self, w: World, step: int, rotation: int, ending: Ending) -> World:
        """Write how a sender ended; `applied` is never overwritten, and makes the step's other rows irrelevant."""
        if "applied" in self.endings(w, step):
            return w
        kept = {
            row
            for row in w.endings
            if row[0] != step
            or (ending != "applied" and (self.rules.row_per_sender or row[1] != rotation))
        }
        return w._replace(endings=frozenset(kept | {(step, rotation, ending)}))

    def moved(self, w: World) -> World:
        """The key or its journal moved: a look-up under way settles nothing (R36)."""
        return w._replace(lookup=None) if self.rules.version else w

    def next_rotation(self, w: World, step: int) -> int | None:
        """Under which downstream key a step may be sent now; None: under none (`claim._next_rotation`, R23)."""
        rotation, endings = w.rotations[step], self.endings(w, step)
        is_open = self.status(w, step) == "open"
        if not endings and not is_open:
            return rotation
        if not is_open and "no" in endings:
            return rotation + 1
        if is_open and not self.setting.keyed and self.rules.one_send_unkeyed:
            return None
        if not is_open and not self.rules.absence_keeps_the_key:
            return rotation + 1
        if w.memory != "over" or not self.rules.old_key_forbidden:
            return rotation
        return None if is_open else rotation + 1

    def begin(self, w: World, step: int, rotation: int, *, rows: range) -> World:
        """Commit a phase: its rows, and this claim's sender (`journal.begin`)."""
        if rotation != w.rotations[step]:
            endings = frozenset(row for row in w.endings if row[0] != step)
            rotations = tuple(rotation if k == step else r for k, r in enumerate(w.rotations))
            renewed = "renewed" if w.memory == "over" else w.memory
            w = w._replace(endings=endings, rotations=rotations, memory=renewed)
        if not self.rules.row_per_sender:
            w = self.record(w, step, rotation, "open")
        found_again = self.rules.rows_found_again
        counts = ((1 if found_again else n + 1) if k in rows else n for k, n in enumerate(w.rows))
        sender = Process("journalled", True, True, step, rotation, self.setting.sends - 1)
        return self.moved(self.put(w, (*w.processes, sender), rows=tuple(counts)))

    # -- write: the key ------------------------------------------------------------------------------------------------

    def put(self, w: World, processes: tuple[Process, ...], **changes: object) -> World:
        return w._replace(processes=tuple(sorted(processes)), **changes)  # type: ignore[arg-type]

    def new_owner(self, w: World) -> World:
        """The token moves: nobody who works on the key owns it any more (R12)."""
        return self.moved(self.put(w, tuple(p._replace(owns=False) for p in w.processes)))

    def complete(self, w: World, told: Literal["success", "no"]) -> World:
        success = told == "success"
        watched = w.watched and not success
        done = w._replace(state="completed", told=told, held="", watched=watched)
        return self.moved(done._replace(follow_ups=w.follow_ups + success))

    def mark_unknown(self, w: World) -> World:
        """`settlement.mark_unknown` and `lapse`. Within a bounded time a person is asked (R38)."""
        return self.new_owner(w)._replace(state="unknown", held="")

    def is_unfinished(self, w: World) -> bool:
        statuses = self.statuses(w)
        return w.state == "unknown" and "applied" in statuses and "open" not in statuses

    def not_applied(self, w: World, *, tolerated: bool = False) -> World:
        """Certainly nothing happened: release; deferred work waits again, or gives up at its limit."""
        w = self.new_owner(w)
        if self.setting.deferred:
            return self.wait_again(w, tolerated=tolerated)
        watched = w.watched or (self.rules.watch and self.has_open_sender(w))
        return w._replace(state="released", held="", watched=watched)

    def wait_again(self, w: World, *, tolerated: bool = False) -> World:
        if w.attempts < self.setting.attempts:
            return w._replace(state="in_progress", held="due")
        if tolerated and self.rules.open_never_gives_up:
            return self.mark_unknown(w)
        return self.complete(w, "no")

    def has_open_sender(self, w: World) -> bool:
        """Whether a sender has no ending: it may be alive, or died without a word."""
        return any(p.place in SENDERS for p in w.processes) or any(
            row[2] == "open" for row in w.endings
        )

    def may_contradict(self, w: World) -> bool:
        """Whether a step is open at all: also by a send that ended ambiguous."""
        return "open" in self.statuses(w)
