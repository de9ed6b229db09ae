"""A console with people of each role, and a browser for each of them, in both themes."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command

from idempotency.management.commands.idempotency_roles import ENGINEERS, OPERATIONS, SUPPORT
from tests.support.browser import DESKTOP, Browser, database_url, served

PEOPLE = {"support": SUPPORT, "ops": OPERATIONS, "engineer": ENGINEERS}
Open = Callable[..., Browser]


@pytest.fixture(scope="session", params=["plain", "unfold"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def address(
    theme: str, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    log = tmp_path_factory.mktemp(theme) / "server.log"
    settings = f"tests.support.settings_console_{theme}"
    with served(settings_module=settings, database_url=database_url(), log=log) as address:
        yield address


@pytest.fixture
def people(transactional_db: None) -> dict[str, User]:
    call_command("idempotency_roles", verbosity=0)
    made = {}
    for name, group in PEOPLE.items():
        made[name] = User.objects.create_user(name, is_staff=True)
        made[name].groups.add(Group.objects.get(name=group))
    return made


@pytest.fixture
def open_as(
    address: str, people: dict[str, User], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    browsers: list[Browser] = []

    def open_browser(name: str, *, width: int = DESKTOP, dark: bool = False) -> Browser:
        profile = tmp_path_factory.mktemp("profile")
        browser = Browser(address=address, profile=profile, width=width, dark=dark)
        browsers.append(browser)
        browser.log_in(people[name])
        return browser

    yield open_browser
    for browser in browsers:
        browser.close()
