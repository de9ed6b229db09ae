"""Where merchants' addresses may lead: to the public internet and nowhere else, whatever their names mean (SSRF)."""

import socket
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import override_settings

from payments.completion import sending
from payments.models import DeliveryAttempt
from tests.integration.completion.conftest import Hearing, Receiver, work_now
from tests.integration.payments.conftest import Shop
from tests.support import faultserver
from tests.support.faultserver import FaultServer

NAMES = ["localhost", "127.1", "2130706433", "0x7f000001"]


def test_a_name_is_judged_by_what_it_means(
    shop: Shop, hearing: Hearing, receiver: Receiver, settings: LazySettings
) -> None:
    """Whatever the resolver makes of it: it passes at registration, and is not connected to."""
    port = hearing.row.url.rpartition(":")[2].partition("/")[0]
    for name in NAMES:
        changed = shop.client.patch(hearing.path, {"url": f"http://{name}:{port}/"}, format="json")
        assert changed.status_code == 200, changed.content
        with override_settings(PAYMENTS=settings.PAYMENTS | {"ENDPOINT_PRIVATE": False}):
            shop.client.post(f"{hearing.path}ping/")
            work_now()
    assert receiver.arrived == []
    errors = set(DeliveryAttempt.objects.values_list("error", flat=True))
    assert len(errors) == len(NAMES)
    assert all("not connected to" in error for error in errors), errors


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A name that means another address at each look; 127.0.0.2 stands for the one that is admitted."""
    found: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host != "rebind.example":
            return real(host, port, *args, **options)
        found.append("127.0.0.2" if len(found) % 2 == 0 else "127.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found[-1], port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return found


def test_what_was_judged_is_connected_to(
    looks: list[str], server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the server listens on 127.0.0.1 only, which is refused, so nothing may ever arrive there."""
    judged: list[str] = []

    def admitted(address: str) -> bool:
        judged.append(address)
        return address == "127.0.0.2"

    monkeypatch.setattr(sending, "admitted", admitted)
    sending._made.cache_clear()
    url = f"http://rebind.example:{server.port}/"
    try:
        first = sending.post(url=url, body=b"{}", headers={})
        second = sending.post(url=url, body=b"{}", headers={})
    finally:
        sending._made.cache_clear()
    assert first.status is None
    assert "not connected to" not in first.error, (
        "the admitted address was tried, and refused there"
    )
    assert "not connected to" in second.error
    assert judged == looks == ["127.0.0.2", "127.0.0.1"], "asked once for each connection"
    assert server.connections == 0


def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    certificate = str(Path(faultserver.__file__).with_name("loopback.pem"))
    with faultserver.serving(faultserver.tls(certificate)) as server:
        tried = sending.post(
            url=server.url.replace("http:", "https:"), body=b"{}", headers={"webhook-id": "x"}
        )
    assert tried.status is None
    assert "CERTIFICATE" in tried.error.upper()
    assert server.requests == []
