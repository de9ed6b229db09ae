"""A console with people of each role, and a browser for each of them, in both themes."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command

from idempotency.management.commands.idempotency_roles import ENGINEERS, OPERATIONS, SUPPORT
from tests.support.browser import DESKTOP, Browser, served
from tests.support.stack import database_url

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


@pytest.fixture(scope="session")
def idle_browsers() -> Iterator[list[Browser]]:
    """Give the browsers that no test is using: to start one takes longer than most tests."""
    browsers: list[Browser] = []
    yield browsers
    for browser in browsers:
        browser.close()


@pytest.fixture
def open_as(
    address: str,
    people: dict[str, User],
    idle_browsers: list[Browser],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Open]:
    browsers: list[Browser] = []

    def open_browser(name: str, *, width: int = DESKTOP, dark: bool = False) -> Browser:
        idle = idle_browsers.pop() if idle_browsers else None
        browser = idle or Browser(profile=tmp_path_factory.mktemp("profile"))
        browsers.append(browser)
        browser.begin(address=address, width=width, dark=dark)
        browser.log_in(people[name])
        return browser

    yield open_browser
    idle_browsers += browsers
