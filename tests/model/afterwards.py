"""The steps of time, of the reconciler, and of those who know better: webhooks, staff, the caller who cancels."""

from collections.abc import Iterator

from tests.model.claimants import Claimants, Step
from tests.model.world import LookUp, Process, World


class Life(Claimants):
    """Everything that can happen to one key."""

    def steps(self, w: World) -> Iterator[Step]:
        yield from self.requests(w)
        yield from self.processes(w)
        yield from self.wire(w)
        yield from self.time(w)
        yield from self.look_up_begins(w)
        if not self.is_locked(w):
            yield from self.look_up_ends(w)
            yield from self.settles_without_asking(w)
            yield from self.others(w)

    # -- time ----------------------------------------------------------------------------------------------------------

    def time(self, w: World) -> Iterator[Step]:
        on_the_wire = bool(w.wire) or any(
            p.owns and p.place == "sends" and not p.word and not p.halted for p in w.processes
        )
        if w.held == "lease" and (self.setting.late or not on_the_wire):
            out = (p._replace(in_time=p.in_time and not p.owns) for p in w.processes)
            yield Step("the lease is over", self.put(w, tuple(out), held="lapsed"))
        if w.held == "lapsed" and not self.is_locked(w):
            yield Step("lapse: unknown", self.mark_unknown(w))
        sending = any(p.place in ("checked", "sends") and not p.halted for p in w.processes)
        fresh = self.setting.forgets and self.setting.keyed and w.memory == "fresh"
        if fresh and (w.endings or w.processes) and not w.wire and not sending:
            over = w._replace(memory="over", declines=frozenset(), lookup=None)
            yield Step("the gateway's key memory is over", over, False)

    # -- the reconciler ------------------------------------------------------------------------------------------------

    def look_up_begins(self, w: World) -> Iterator[Step]:
        asked = (w.state == "unknown" and self.may_contradict(w)) or (w.watched and not w.news)
        if not asked or w.state == "none" or w.lookup is not None:
            return
        ended_ambiguous = any(row[2] == "maybe" for row in w.endings)
        look = LookUp(
            found=frozenset(step for step, _ in w.effects),
            declined=frozenset(step for step, r in w.declines if r == w.rotations[step]),
            quiet="all" if not w.wire else "no" if ended_ambiguous else "ended",
            live=self._live(w),
        )
        yield Step(f"a look-up begins, sees {len(w.effects)}", w._replace(lookup=look))

    def _live(self, w: World) -> int:
        return sum(p.step >= 0 for p in w.processes)

    def look_up_ends(self, w: World) -> Iterator[Step]:
        if w.lookup is None:
            return
        look, w = w.lookup, w._replace(lookup=None)
        if w.state != "unknown":
            if w.watched:
                yield self._watched(w, look)
            return
        for step in look.found:
            w = self.record(w, step, w.rotations[step], "applied")
        if look.quiet == "no" and self.rules.settling_time and self.may_contradict(w):
            yield Step("the look-up was too early", w)
            return
        w, tolerated = self._believe_absence(w, look), False
        if self.may_contradict(w):
            if not self.setting.keyed:
                yield Step("not found, a send open, no keys: needs a person", w)
                return
            tolerated = True
        if w.crashes:
            yield Step(
                "the look-up's proof is recorded, its reconciler dies",
                w._replace(crashes=w.crashes - 1),
                False,
            )
        refused = look.declined - look.found
        yield from self._settle(w, tolerated=tolerated, refused=bool(refused))

    def _believe_absence(self, w: World, look: LookUp) -> World:
        """End the senders that certainly did nothing, and will do nothing (Note [Qualified look-ups])."""
        late_proof = not self.rules.dead_first
        dead = self.setting.proof and self._live(w) == 0
        dead &= late_proof or (look.quiet == "all" and look.live == 0)
        ended = set()
        for step, rotation, ending in w.endings:
            believed = ending == "maybe" or (ending == "open" and dead)
            word = "no" if step in look.declined else "nothing"
            ended.add((step, rotation, word if believed else ending))
        return w._replace(endings=frozenset(ended))  # type: ignore[arg-type]

    def _settle(self, w: World, *, tolerated: bool, refused: bool) -> Iterator[Step]:
        """Settle on what is proven (`reconciliation.ending.settle`)."""
        statuses = self.statuses(w)
        if set(statuses) == {"applied"}:
            yield Step(
                "reconciler: applied, completes", self.complete(self.new_owner(w), "success")
            )
        elif "applied" in statuses and self.setting.deferred:
            if "open" not in statuses and w.attempts < self.setting.attempts:
                waits = self.wait_again(self.new_owner(w))
                yield Step("reconciler: unfinished, waits for a run", waits)
        elif "applied" in statuses:
            if self.has_room(w) and "open" not in statuses:
                yield Step("reconciler resumes", self.join(w, Process("phase one", False)))
            elif self.has_room(w):
                after = self.first_phase(w)
                yield Step(f"reconciler resumes, {after.label}", after.after)
        elif refused and "open" in statuses:
            yield Step("refused, a send open: needs a person", self.mark_unknown(w))
        elif refused:
            yield Step(
                "reconciler: completes with the verdict", self.complete(self.new_owner(w), "no")
            )
        else:
            yield Step("reconciler: not applied", self.not_applied(w, tolerated=tolerated))

    def settles_without_asking(self, w: World) -> Iterator[Step]:
        if w.state == "unknown" and not self.may_contradict(w):
            yield from self._settle(w, tolerated=False, refused=False)
            if any("no" in self.endings(w, step) for step in range(self.setting.steps)):
                yield from self._settle(w, tolerated=False, refused=True)

    def _watched(self, w: World, look: LookUp) -> Step:
        """A settled key that one of its senders may still contradict (`reconciliation.watch`)."""
        news = False
        for step in look.found:
            news |= self.status(w, step) != "applied" and w.state in ("released", "completed")
            w = self.record(w, step, w.rotations[step], "applied")
        if look.quiet != "no":
            w = self._believe_absence(w, look)
        still = self.has_open_sender(w) or self.may_contradict(w)
        return Step("watch: " + "late news" * news, w._replace(news=w.news or news, watched=still))

    # -- others --------------------------------------------------------------------------------------------------------

    def others(self, w: World) -> Iterator[Step]:
        for message in set(w.effects) - w.reported if self.setting.webhooks else ():
            yield Step("a webhook says: applied", self._webhook(w, message), False)
        if w.decisions and w.state == "unknown":
            yield from self._staff(w._replace(decisions=w.decisions - 1))
        applied = "applied" in self.statuses(w)
        unsafe = self.may_contradict(w) and self.rules.cancel_guard
        if self.setting.cancels and w.held == "due" and not applied and not unsafe:
            yield Step("cancelled", self.complete(self.new_owner(w), "no"), False)

    def _webhook(self, w: World, message: tuple[int, int]) -> World:
        step, rotation = message
        settled = w.state in ("released", "completed") and self.status(w, step) != "applied"
        w = self.moved(self.record(w, step, rotation, "applied"))
        w = w._replace(reported=w.reported | {message}, news=w.news or settled)
        if w.state == "unknown" and self.next_step(w) is None:
            return self.complete(self.new_owner(w), "success")
        return w

    def _staff(self, w: World) -> Iterator[Step]:
        """A person decides on what a look-up of the moment shows (`reconciliation.byhand`)."""
        if w.lookup is None:
            return
        look, w = w.lookup, w._replace(lookup=None)
        open_steps = [k for k, status in enumerate(self.statuses(w)) if status == "open"]
        if len(open_steps) == 1 and open_steps[0] in look.found:
            happened = self.record(w, open_steps[0], w.rotations[open_steps[0]], "applied")
            yield from self._by_hand("it happened", happened, look)
        if look.found or "applied" in self.statuses(w):
            return
        unsettled = look.quiet == "no" or (self.setting.deferred and look.quiet != "all")
        may_act = look.quiet != "all" or look.live or not self.setting.proof
        if not self.setting.keyed and may_act and self.may_contradict(w):
            if self.rules.staff_bound and not self.setting.deferred:
                watched = self.rules.watch_by_hand or self.has_open_sender(w)
                closed = self.complete(self.new_owner(w), "no")._replace(watched=watched)
                yield Step("staff: did not happen, closed and watched", closed, False)
            elif not self.rules.staff_bound:
                ended = frozenset((step, rotation, "nothing") for step, rotation, _ in w.endings)
                released = self.not_applied(w._replace(endings=ended))  # type: ignore[arg-type]
                yield Step("staff: did not happen, released", released, False)
        elif not unsettled or not self.rules.staff_wait:
            yield from self._by_hand("did not happen", self._believe_absence(w, look), look)

    def _by_hand(self, label: str, w: World, look: LookUp) -> Iterator[Step]:
        tolerated = self.may_contradict(w)
        if tolerated and not self.setting.keyed:
            return
        for step in self._settle(w, tolerated=tolerated, refused=False):
            yield Step(f"staff: {label}; {step.label}", step.after, False)
