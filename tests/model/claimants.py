"""The steps of those who claim a key and call outside, and of the other side that answers them."""

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.ledger import Ledger
from tests.model.world import HOLDS_A_LOCK, SENDERS, Ending, Process, World


class Step(NamedTuple):
    """One thing that can happen."""

    label: str
    after: World
    helpful: bool = True
    """It is bound to happen at last, if nothing else does; faults, callers and staff are not."""


class Claimants(Ledger):
    def requests(self, w: World) -> Iterator[Step]:
        """A caller repeats the request at will; a runner takes what is due."""
        if self.is_locked(w) or not self.has_room(w):
            return
        if self.setting.deferred:
            if w.state == "none":
                yield Step("POST: 202, waits", w._replace(state="in_progress", held="due"), False)
        elif w.state in ("none", "released") or self.is_unfinished(w):
            yield Step("a request claims", self.join(w, Process("phase one", False)), False)
        elif w.held == "lapsed" and not self.rules.lapse_is_unknown:
            yield Step("a request claims over the lapsed lease", self.join(w, _NEW), False)
        if w.held == "due" and w.attempts < self.setting.attempts:
            taken = self.new_owner(w)._replace(held="lease", attempts=w.attempts + 1)
            yield Step("a runner takes it", self.join(taken, Process("runs", True)))

    def join(self, w: World, process: Process) -> World:
        return self.put(w, (*w.processes, process))

    def processes(self, w: World) -> Iterator[Step]:
        for p in dict.fromkeys(w.processes):
            without = list(w.processes)
            without.remove(p)
            alone = self.put(w, tuple(without))
            if p.halted:
                yield from self._halted(alone, p)
                continue
            yield from self._faults(alone, p)
            match p.place:
                case "phase one":
                    yield Step("the handler refuses, rolled back", alone, False)
                    yield self.first_phase(alone)
                case "runs":
                    yield self._run(alone, p)
                case "journalled":
                    if p.in_time and (w.memory != "over" or not self.rules.old_key_forbidden):
                        yield Step(
                            "checks its deadline", self.join(alone, p._replace(place="checked"))
                        )
                    else:
                        yield from self._ends(alone, p, "maybe" if p.maybe else "nothing")
                case "checked":
                    sent = self.join(alone, p._replace(place="sends"))
                    yield Step(f"SENDS step {p.step} under key {p.rotation}", sent)
                case "sends":
                    yield from self._answered(alone, p) if p.word else self._on_the_wire(alone, p)

    def _faults(self, alone: World, p: Process) -> Iterator[Step]:
        if alone.crashes:
            dead = alone._replace(crashes=alone.crashes - 1)
            if p.place in SENDERS:
                if self.rules.row_per_sender:
                    dead = self.record(dead, p.step, p.rotation, "open")
                if p.place == "sends" and not p.word:
                    dead = dead._replace(wire=tuple(sorted((*dead.wire, p.message))))
            yield Step(f"crash of one that {p.place} {p.word}", dead, False)
        if alone.halts:
            in_last_phase = (
                p.place == "sends" and p.word and p.owns and alone.state == "in_progress"
            )
            still = p._replace(halted=True, place="last phase" if in_last_phase else p.place)
            halted = self.join(alone._replace(halts=alone.halts - 1), still)
            yield Step(f"halt of one that {p.place} {p.word}", halted, False)

    def _halted(self, alone: World, p: Process) -> Iterator[Step]:
        if p.place in HOLDS_A_LOCK and self.rules.idle_limit:
            back = alone if p.place == "phase one" else self.join(alone, p._replace(place="sends"))
            yield Step("the server ends an idle phase", back)
        if p.place == "sends" and not p.word and not self.replays(alone, p):
            applied = alone._replace(effects=tuple(sorted((*alone.effects, p.message))))
            yield Step(
                "APPLIED, its sender is halted", self.join(applied, p._replace(word="applied"))
            )

    # -- phases --------------------------------------------------------------------------------------------------------

    def first_phase(self, w: World) -> Step:
        """Commit the claim and the intent; or finish at once, where all was applied before."""
        w = self.new_owner(w)
        step = self.next_step(w)
        if step is None:
            return Step("all was applied: completes", self.complete(w, "success"))
        return self._begins(w, step, range(step + 1))

    def _begins(self, w: World, step: int, rows: range) -> Step:
        rotation = self.next_rotation(w, step)
        if rotation is None:
            return Step("may not be sent: needs a person", self.mark_unknown(w))
        begun = self.begin(w, step, rotation, rows=rows)
        return Step(
            f"commits a phase, step {step} under key {rotation}",
            begun._replace(state="in_progress", held="lease"),
        )

    def _run(self, alone: World, p: Process) -> Step:
        if p.owns and alone.state == "in_progress" and alone.held == "lease":
            return self.first_phase(alone)
        return Step("the run was superseded", alone)

    def _ends(self, alone: World, p: Process, ending: Ending) -> Iterator[Step]:
        """The series has ended: its ending, and what R14 makes of it (`journal.end`, `execution`)."""
        owns = (p.owns and alone.state == "in_progress") or not self.rules.fenced
        w = alone
        if owns or self.rules.evidence_from_anyone:
            first = ending == "applied" and self.status(alone, p.step) != "applied"
            w = self.moved(self.record(alone, p.step, p.rotation, ending))
            if first and not owns and alone.state in ("completed", "released"):
                w = w._replace(news=True)
        if not owns:
            yield Step(f"superseded, leaves its ending: {ending}", w)
            return
        statuses = self.statuses(w)
        following = p.step + 1
        if ending == "applied" and following < self.setting.steps:
            if w.held != "lease":
                yield Step("applied, but the lease is over: unknown", self.mark_unknown(w))
            else:
                yield self._begins(w, following, range(following, following + 1))
        elif ending == "applied" and set(statuses) == {"applied"}:
            yield Step("completes", self.complete(w, "success"))
            if self.setting.verdict_after:
                kept = self.rules.verdict_is_unfinished
                verdict = self.mark_unknown(w) if kept else self.complete(w, "no")
                yield Step("raises a verdict after it was applied", verdict)
        else:
            yield self._without_success(w, p, ending)

    def _without_success(self, w: World, p: Process, ending: Ending) -> Step:
        statuses, declined = self.statuses(w), p.word == "declined" and ending == "no"
        label = f"ends: {'declined' if declined else ending}"
        if "open" in statuses:
            waits = self.setting.deferred and self.setting.keyed and ending == "maybe"
            if waits and not self.rules.ambiguous_is_unknown:
                return Step(f"{label}: waits again, or gives up", self.not_applied(w))
            return Step(f"{label}: unknown", self.mark_unknown(w))
        if "applied" in statuses:
            if declined and not self.rules.verdict_is_unfinished:
                return Step(f"{label}: completed with the verdict", self.complete(w, "no"))
            return Step(f"{label}: unknown, unfinished", self.mark_unknown(w))
        if declined:
            return Step(f"{label}: completed with the verdict", self.complete(w, "no"))
        return Step(f"{label}: not applied", self.not_applied(w))

    # -- the wire ------------------------------------------------------------------------------------------------------

    def replays(self, w: World, p: Process) -> str:
        """What the other side answers to a downstream key that it remembers."""
        if not self.setting.keyed or w.memory == "over":
            return ""
        if p.message in w.effects:
            return "applied"
        return "declined" if p.message in w.declines else ""

    def _answered(self, alone: World, p: Process) -> Iterator[Step]:
        unclear = p.word == "lost"
        may_repeat = (p.word == "refused" and not p.maybe) or self.setting.keyed
        may_repeat |= not self.rules.one_send_unkeyed
        if p.sends_left and p.in_time and p.word in ("lost", "refused") and may_repeat:
            again = p._replace(
                place="journalled", sends_left=p.sends_left - 1, maybe=p.maybe or unclear, word=""
            )
            yield Step("resends", self.join(alone, again))
        ending: Ending = "maybe"
        if p.word == "applied":
            ending = "applied"
        elif (p.word == "refused" and not p.maybe) or (
            p.word == "declined" and (self.setting.keyed or not p.maybe)
        ):
            ending = "no"
        yield from self._ends(alone, p, ending)

    def _on_the_wire(self, alone: World, p: Process) -> Iterator[Step]:
        def answered(w: World, word: str) -> World:
            return self.join(w, p._replace(word=word))  # type: ignore[arg-type]

        word = self.replays(alone, p)
        if word:
            yield Step(f"the other side repeats: {word}", answered(alone, word))
        else:
            applied = alone._replace(effects=tuple(sorted((*alone.effects, p.message))))
            yield Step("APPLIED", answered(applied, "applied"))
            if alone.refusals:
                no = alone._replace(refusals=alone.refusals - 1)
                yield Step("refused, not executed", answered(no, "refused"), False)
                declines = no.declines | {p.message}
                yield Step("declined", answered(no._replace(declines=declines), "declined"), False)
            if alone.losses:
                unclear = "lost" if self.rules.undeclared_is_ambiguous else "refused"
                lossy = applied._replace(losses=alone.losses - 1)
                yield Step(
                    "APPLIED, answered by an undeclared 503", answered(lossy, unclear), False
                )
        if alone.losses:
            wire = tuple(sorted((*alone.wire, p.message)))
            lossy = alone._replace(losses=alone.losses - 1, wire=wire)
            yield Step("times out, the message on the wire", answered(lossy, "lost"), False)

    def wire(self, w: World) -> Iterator[Step]:
        for message in dict.fromkeys(w.wire):
            left = list(w.wire)
            left.remove(message)
            gone = w._replace(wire=tuple(left))
            yield Step("a message on the wire vanishes", gone)
            known = message in w.effects or message in w.declines
            if not (self.setting.keyed and w.memory != "over" and known):
                applied = gone._replace(effects=tuple(sorted((*w.effects, message))))
                yield Step(f"LATE: APPLIED, step {message[0]} key {message[1]}", applied)


_NEW = Process("phase one", False)
