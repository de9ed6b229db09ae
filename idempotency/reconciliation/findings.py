"""What the other side's answers prove."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from idempotency.ledger.evidence import Snapshot, StepView
from idempotency.types import Absent, Applied, Ending, LookUp, OutsideResult, Pending, Rejected


@dataclass(slots=True)
class Findings:
    """What is proven of each step, or why nothing can be settled yet."""

    applied: dict[int, OutsideResult] = field(default_factory=dict)
    ended: dict[int, tuple[Ending, Mapping[str, object]]] = field(default_factory=dict)
    endings: dict[str, LookUp] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)
    """The other side's id of a second time, and of the one that is on record."""
    tolerated: bool = False
    stop: str | None = None
    needs_person: str = ""
    """With the stop `needs-person`: why."""
    retry_after: float | None = None


def judge(seen: Snapshot, answers: Mapping[int, LookUp]) -> Findings:
    findings = Findings()
    for step in seen.steps:
        if step.result is not None:
            findings.endings[step.name] = Applied(step.result)
        elif step.id in answers:
            _judge_step(seen, step, answers[step.id], findings)
        elif step.was_rejected:
            findings.endings[step.name] = _recorded_rejection(step)
        else:
            findings.endings[step.name] = Absent()
    refused = any(isinstance(ending, Rejected) for ending in findings.endings.values())
    if findings.stop is None and refused and findings.tolerated:
        findings.stop = "needs-person"
        findings.needs_person = (
            "The other side refused it, but a sender that is not proven dead may still act."
        )
    return findings


def _judge_step(seen: Snapshot, step: StepView, answer: LookUp, findings: Findings) -> None:
    findings.endings[step.name] = answer
    match answer:
        case Applied():
            findings.applied[step.id] = answer.result
            findings.again |= dict.fromkeys(answer.again, answer.result.reference)
        case Pending():
            findings.stop = findings.stop or "pending"
        case Rejected() | Absent():
            absence = step.absence_counts(looked_at=seen.looked_at)
            if absence.needs_person:
                findings.stop = "needs-person"
                findings.needs_person = (
                    "A sender may still act, and the other side honours no keys."
                )
            elif absence.wait_until is not None:
                wait = (absence.wait_until - seen.looked_at).total_seconds()
                findings.stop = findings.stop or "not-yet"
                findings.retry_after = max(findings.retry_after or 0, wait)
            ending = Ending.REJECTED if isinstance(answer, Rejected) else Ending.ABSENT
            for sender in absence.proven:
                findings.ended[sender] = (ending, _evidence(answer))
            findings.tolerated |= absence.tolerated
        case _:
            assert_never(answer)


def _evidence(answer: Rejected | Absent) -> dict[str, object]:
    if isinstance(answer, Absent):
        return {"looked-up": "absent"}
    return {
        "looked-up": "rejected",
        "code": answer.code,
        "error": answer.detail,
        "reference": answer.result.reference,
        "record": dict(answer.result.record),
    }


def _recorded_rejection(step: StepView) -> Rejected:
    kept = step.senders[-1].evidence
    return Rejected(
        detail=str(kept.get("error", "")),
        code=str(kept.get("code", "")),
        result=OutsideResult(str(kept.get("reference", "")), kept.get("record", {})),
    )
