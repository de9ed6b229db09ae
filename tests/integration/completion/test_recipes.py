"""The receivers of the documentation, as programs of their own: each event once, and only ours."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from payments import completion
from payments.gateway.fake import FakeGateway
from payments.models import Delivery
from tests.docs.blocks import ROOT, blocks
from tests.integration.completion.conftest import listen, work
from tests.integration.payments.conftest import Shop

RECIPES = ROOT / "tests" / "recipes"


@dataclass(frozen=True)
class Recipe:
    """A receiver: how it is started, and what it has done."""

    words: tuple[str, ...]
    effects: Callable[[Path], list[str]]


def in_sqlite(home: Path) -> list[str]:
    with closing(sqlite3.connect(home)) as database:
        return [kind for (kind,) in database.execute("SELECT type FROM effects")]


def in_folder(home: Path) -> list[str]:
    return (home / "effects").read_text().split()


PYTHON = Recipe((sys.executable, str(RECIPES / "receive.py")), in_sqlite)
NODE = Recipe(("node", str(RECIPES / "receive.mjs")), in_folder)
NO_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="no Node is installed")


@contextmanager
def running(recipe: Recipe, *, port: int, secret: str, home: Path) -> Iterator[None]:
    environment = {"PATH": os.environ["PATH"], "WEBHOOK_SECRET": secret}
    process = subprocess.Popen(
        [*recipe.words, str(port), str(home)], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", [pytest.param(PYTHON, id="python"), pytest.param(NODE, id="node", marks=NO_NODE)]
)
def test_a_receiver_takes_each_event_in_once_and_no_other(
    recipe: Recipe, shop: Shop, fake: FakeGateway, no_broker: None, tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hearing = listen(shop, f"http://127.0.0.1:{port}/")
    home = tmp_path / "received"
    with running(recipe, port=port, secret=hearing.secret, home=home):
        paid = shop.pay().json()
        shop.post(f"/api/payments/{paid['id']}/refunds/", {"amount": 100})
        shop.client.post(f"{hearing.path}secrets/")
        work()
        for delivery in Delivery.objects.all():
            assert completion.send_again(delivery)
        work()
        forged = httpx2.post(
            f"http://127.0.0.1:{port}/",
            content=json.dumps({"type": "payment.succeeded"}),
            headers={
                "webhook-id": "msg_1",
                "webhook-timestamp": str(int(time.time())),
                "webhook-signature": "v1,AAAA v2,x nonsense",
            },
            trust_env=False,
        )
        assert forged.status_code == 400
        assert httpx2.post(f"http://127.0.0.1:{port}/", content="{}", trust_env=False).is_error
    assert Delivery.objects.filter(status="delivered").count() == 2
    assert sum(delivery.attempts.count() for delivery in Delivery.objects.all()) == 4
    assert Counter(recipe.effects(home)) == {"payment.succeeded": 1, "refund.succeeded": 1}


def test_the_page_shows_the_recipes() -> None:
    held = blocks(held="tests/integration/completion/test_recipes.py")
    assert len(held) == 3
    whole = {"python": RECIPES / "receive.py", "js": RECIPES / "receive.mjs"}
    for block in held:
        assert block.body in whole[block.language].read_text(), block.label
