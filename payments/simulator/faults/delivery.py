"""Sending an answer: whole, or as a fault wants it."""

from __future__ import annotations

import time

from payments.simulator.faults.kinds import NO_FAULT, Step
from payments.simulator.faults.queue import Fault
from payments.simulator.wire.http import Answer, frame
from payments.simulator.wire.peer import Peer

# Long enough for the client to read what was sent: a reset throws away what it has not.
_READING_SECONDS = 0.05

WHOLE = Fault(NO_FAULT, 0.0, ())


def deliver(peer: Peer, answer: Answer, *, fault: Fault, keep_alive: bool) -> bool:
    """Send an answer; return whether the connection can serve a further request.

    Raises:
        PeerGone: the client left before the end.
    """
    kind = fault.kind
    head, body = frame(answer, framing=kind.framing, keep_alive=keep_alive)
    octets = head + body
    marks = {
        Step.SEND_HALF_HEAD: len(head) // 2,
        Step.SEND_HEAD: len(head),
        Step.SEND_HALF_BODY: len(head) + len(body) // 2,
        Step.SEND_ALL: len(octets),
    }
    sent = 0
    for step in kind.wire:
        match step:
            case Step.DRIP:
                peer.drip(octets[sent:], seconds=fault.seconds)
            case Step.STALL:
                peer.stall(fault.seconds)
            case Step.CLOSE:
                peer.close()
                return False
            case Step.RESET:
                if sent:
                    time.sleep(_READING_SECONDS)
                peer.reset()
                return False
            case _:
                peer.send(octets[sent : marks[step]])
                sent = marks[step]
    return keep_alive
