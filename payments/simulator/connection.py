"""One connection: requests in, answers out, until either side ends it."""

from __future__ import annotations

import socket

from payments.simulator.admission import Received
from payments.simulator.control import PREFIX, Control
from payments.simulator.exchange import Exchange, Forgotten
from payments.simulator.faults.delivery import WHOLE, deliver
from payments.simulator.record.store import RecordClosed
from payments.simulator.wire.http import Answer, Malformed, Request, json_answer, read_head
from payments.simulator.wire.peer import Peer, PeerGone


def converse(connection: socket.socket, *, exchange: Exchange, control: Control) -> None:
    """Serve a client until its connection ends."""
    peer = Peer(connection)
    try:
        while (head := peer.read_head()) is not None:
            if not _serve_one(peer, read_head(head), exchange=exchange, control=control):
                break
    except Malformed as error:
        _refuse_malformed(peer, error)
    except (Forgotten, RecordClosed):
        peer.reset()
    except PeerGone:
        # Nobody is left to be told.
        pass
    finally:
        peer.close()


def _serve_one(peer: Peer, request: Request, *, exchange: Exchange, control: Control) -> bool:
    """Answer one request; return whether the connection can serve another."""
    length = request.content_length
    if request.path.startswith(PREFIX):
        answer = control.answer(request.with_body(peer.read_body(length)))
        return deliver(peer, answer, fault=WHOLE, keep_alive=request.keep_alive)
    received = exchange.receive_unread(request)
    if received is None:
        received = exchange.receive(request.with_body(peer.read_body(length)))
    answer = exchange.answer(received)
    return _send(peer, received, answer, exchange=exchange)


def _send(peer: Peer, received: Received, answer: Answer, *, exchange: Exchange) -> bool:
    try:
        return deliver(peer, answer, fault=received.fault, keep_alive=received.request.keep_alive)
    except PeerGone:
        if not peer.has_sent:
            exchange.unsent(received)
        raise


def _refuse_malformed(peer: Peer, error: Malformed) -> None:
    answer = json_answer(400, {"error": {"type": "invalid_request_error", "message": str(error)}})
    try:
        deliver(peer, answer, fault=WHOLE, keep_alive=False)
    except PeerGone:
        return
