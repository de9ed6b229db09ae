"""What each situation means and what to do about it: written for somebody with a caller on the line."""

from dataclasses import dataclass, replace

from idempotency import tracing
from idempotency.admin.situations import Situation
from idempotency.conf import conf


@dataclass(frozen=True, slots=True)
class Advice:
    """What is shown beside a key."""

    label: str
    """The badge: two words at most."""
    tone: str
    """`good`, `busy`, `wait`, `warn` or `bad`: a colour, never without its label."""
    meaning: str
    caller: str
    """What may be said to the caller."""
    action: str
    """What to do."""
    problem: str = ""
    """The code of the problem that the API answers meanwhile."""


ADVICE = {
    Situation.RUNNING: Advice(
        "running",
        "busy",
        "A request or a worker is working on it right now, or waits for the other side's answer.",
        "It is being processed. Please do not send it again under another key.",
        "Nothing. If it does not end by itself it becomes unknown and is looked up.",
        "in-progress",
    ),
    Situation.LAPSED: Advice(
        "no word",
        "warn",
        "The process that had it has not come back in time. Whether the call outside was made is looked up now.",
        "We are checking with the other side whether it went through. Please do not send it again.",
        "Wait for the next look-up, a few seconds. If this does not change, ask the gateway now, and see whether the "
        "reconciler runs.",
        "outcome-unknown",
    ),
    Situation.WAITING: Advice(
        "waiting",
        "wait",
        "The work was accepted and waits for its time, or for another try after one that did not succeed.",
        "It is accepted and will be done; nothing has to be sent again.",
        "Nothing. It can be cancelled while it waits and nothing of it has happened yet.",
        "in-progress",
    ),
    Situation.OVERDUE: Advice(
        "overdue",
        "bad",
        "The work was accepted and its time has come, but no worker has taken it.",
        "It is accepted and delayed on our side; nothing has to be sent again.",
        "See whether workers and beat run (overview). Nothing is lost: it is taken as soon as one does.",
        "in-progress",
    ),
    Situation.UNKNOWN: Advice(
        "unknown",
        "warn",
        "A call to the other side was made and its answer was lost. It may have happened, and it may not.",
        "We are checking with the other side whether it went through. Never send it again under another key: "
        "that could do it twice.",
        "Usually nothing: it is looked up by itself. Ask the gateway now if the caller waits. Settle by hand only "
        "after a look-up, and only on what the other side's own records say.",
        "outcome-unknown",
    ),
    Situation.UNFINISHED: Advice(
        "half done",
        "warn",
        "The other side has accepted it, or a part of it, and the rest has not followed yet: our own books, or a later "
        "step. The timeline says what was accepted.",
        "The other side has accepted it, or a part of it; the rest follows by itself. Please do not send it again "
        "under another key.",
        "Usually nothing: the next look-up or the next identical request finishes it. "
        "Ask the gateway now to do it at once.",
        "outcome-unknown",
    ),
    Situation.STUCK_HALFWAY: Advice(
        "stuck halfway",
        "bad",
        "The other side has accepted it, or a part of it; the rest has not followed and cannot by itself. The line "
        "above says why; the timeline says what was accepted.",
        "The other side has accepted it, or a part of it, and a colleague is completing the rest. Please do not send "
        "it again under another key.",
        "Read in the timeline which step was accepted. Where every step is known, retry the operation, or, where there "
        "is no such button, ask the gateway now once the cause is mended: what was accepted is not sent again. "
        "Otherwise ask the gateway now, and settle by hand only what its own records show.",
        "outcome-unknown",
    ),
    Situation.NEEDS_PERSON: Advice(
        "needs a person",
        "bad",
        "It could not be settled without a person: the look-ups gave no verdict, or none that proves enough.",
        "A colleague is clearing it up with the other side. Please do not send it again under another key.",
        "Look the reference up in the gateway's own console. Ask the gateway now; if that does not settle it, "
        "settle by hand with what you saw there. It never expires, so there is no hurry to guess.",
        "outcome-unknown",
    ),
    Situation.COMPLETED: Advice(
        "completed",
        "good",
        "It happened, once. Every repeat of the request gets this first answer again.",
        "It is done. Repeats of the same request did nothing more.",
        "Nothing. Two payments for one order are two different keys: search for the order to see both.",
    ),
    Situation.REFUSED: Advice(
        "refused",
        "good",
        "It was refused, by our rules or by the other side, and nothing happened. Repeats get the same refusal.",
        "It was refused and nothing was charged. For another try use a new key.",
        "Nothing. The timeline says why it was refused, or the stored answer does.",
    ),
    Situation.GAVE_UP: Advice(
        "gave up",
        "bad",
        "The work was tried as often as it may be, and every run failed without an effect. It was not done.",
        "It was not done. We can start it again, under the same key.",
        "Read the error in the timeline. Once its cause is gone, retry the operation.",
    ),
    Situation.CANCELLED: Advice(
        "cancelled",
        "wait",
        "The work was cancelled while it waited. Nothing of it has happened, and nothing will.",
        "It was cancelled and nothing was done. For another try use a new key.",
        "Nothing. The timeline says who cancelled it. A cancellation is final: a new request needs a new key.",
    ),
    Situation.RELEASED: Advice(
        "released",
        "good",
        "A call outside was begun and certainly changed nothing. The key is free for another try.",
        "It did not go through and nothing was charged. The same request, with the same key, may be sent again.",
        "Nothing. The caller repeats the request with the same key.",
    ),
    Situation.TAKEN_IN: Advice(
        "taken in",
        "good",
        "A message from another system was taken in, once. Copies of it did nothing more.",
        "We have heard of it from the other side. What it is about is listed below, where our books know it.",
        "Nothing here; an alarm that it raised is on the overview. If what it tells is not in our books all the same, "
        "run it again: what is in them already stays.",
    ),
    Situation.LATE_NEWS: Advice(
        "contradicted",
        "bad",
        "It was settled one way, and then the other side said otherwise. What it said is in the timeline.",
        "Something does not add up and a colleague is looking at it.",
        "Compare the timeline with the gateway's own console and correct the business side, e.g. by a refund. "
        "Then mark the alarm as handled. The key keeps its settlement; the events stay as evidence.",
    ),
    Situation.DONE_TWICE: Advice(
        "done twice",
        "bad",
        "The other side says that it did this a second time, with another id of its own. Our books know the first one "
        "only. Both ids are in the timeline.",
        "It may have been charged twice; a colleague is looking at it, and what was taken twice is given back.",
        "Look both ids up in the gateway's own console. If both took money, refund the second one there: our books do "
        "not know it. Then mark the alarm as handled.",
    ),
    Situation.DONE_DIFFERENTLY: Advice(
        "amounts differ",
        "bad",
        "The other side did something else than was asked for: another amount, another currency, or it failed after "
        "it had been done. What both sides say is in the timeline.",
        "The amounts at both sides differ; a colleague is looking at it.",
        "Look the id up in the gateway's own console. Give back what was taken too much, or ask for what is missing; "
        "what came back is sent again as a new operation. Then mark the alarm as handled.",
    ),
}


def of_double(advice: Advice) -> Advice:
    """Return the advice for a key that is done, where another key has done the same for the same reference."""
    return replace(
        advice,
        tone="warn",
        meaning="It happened, once for this key; and under another key the same was done for the same reference.",
        caller="It was done more than once. Was that meant? If not, one of them is undone.",
        action="Ask the caller whether both were meant: they may be two purchases. If not, have one of them undone, "
        "e.g. refunded, and say which one stays.",
    )


def of_seen_to(advice: Advice) -> Advice:
    """Return the advice for a key that was contradicted, once a person has seen to it."""
    return replace(
        advice,
        tone="wait",
        caller="A colleague has seen to it: what was done stands in the timeline. Please do not send it again before "
        "that is clear.",
        action="Read in the timeline, at “Marked as handled”, what was done about it.",
    )


def of_undecided(advice: Advice) -> Advice:
    """Return the advice for a key that is settled, while the other side may still refuse what it has taken on."""
    return replace(
        advice,
        tone="busy",
        meaning="The other side has taken it on and has not decided yet. Repeats of the request do nothing more.",
        caller="It is taken on and not decided yet. Please do not send it again: it would be done twice.",
        action="Nothing. What is decided comes by itself, and stands here then.",
    )


def of_undone(advice: Advice) -> Advice:
    """Return the advice for a key that is settled, where what it had begun came to nothing."""
    return replace(
        advice,
        tone="wait",
        meaning="It came to nothing at the other side, which may have taken it on before: the line above says why.",
        caller="It did not go through in the end. For another try use a new key.",
        action="Nothing. Repeats under this key get its first answer again.",
    )


def of_unkept(advice: Advice) -> Advice:
    """Return the advice for a key that is done, and whose answer no repeat gets any more."""
    return replace(
        advice,
        meaning="It happened, once. Its answer is not kept, or not any more: repeats are told so, and do nothing.",
    )


def of_accepted(advice: Advice) -> Advice:
    """Return the advice for a key that was answered with a refusal after a call of it was accepted."""
    return replace(
        advice,
        tone="warn",
        meaning="It was answered with a refusal, after the other side had accepted a call of it: the timeline says "
        "which. Repeats get the same refusal.",
        caller="It was refused in the end, and a part of it may have been done before. We tell you what became of it; "
        "please do not send it again until then.",
        action="Read in the timeline which call was accepted. Where it moved money, have it undone at the other side, "
        "or finish it. Where it only asked for something, there is nothing to do.",
    )


def of_watched(advice: Advice) -> Advice:
    """Return the advice for a key that is settled while one of its sends may still arrive."""
    return replace(
        advice,
        tone="busy",
        meaning="Nothing of it has happened so far. A send of it can still arrive at the other side, so it is watched: "
        "if it happens after all, an alarm is raised here.",
        caller="It did not go through so far. Should it do so late, we see it and tell you.",
    )


def runbook_address(place: str) -> str:
    """Return where the runbook speaks about a situation, or something else that it has a section of, or ""."""
    return f"{conf.RUNBOOK}#{place}" if conf.RUNBOOK else ""


def trace_address(traceparent: str) -> str:
    """Return where the trace of the key's first request is shown, or ""."""
    trace_id = tracing.trace_id(traceparent)
    return conf.TRACE_URL.replace("{trace_id}", trace_id) if trace_id else ""
