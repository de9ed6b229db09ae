"""A real Chromium without a window, and a real server for it to look at."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from project.embedded.server import HOST, free_port

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_START_SECONDS = 40.0
DESKTOP, PHONE = 1280, 390


@contextmanager
def served(*, settings_module: str, database_url: str, log: Path) -> Iterator[str]:
    """Serve the project under these settings; give its address."""
    port = free_port()
    command = [sys.executable, "-m", "django", "runserver", "--noreload", f"{HOST}:{port}"]
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": settings_module,
        "DATABASE_URL": database_url,
        "DEBUG": "1",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            address = f"http://{HOST}:{port}"
            _wait_for(f"{address}/admin/login/", process, log)
            yield address
        finally:
            process.terminate()
            process.wait(10)


def _wait_for(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < until and process.poll() is None:
        try:
            opener.open(address, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"The server did not start:\n{log.read_text()[-3000:]}")


class Browser:
    """One window, and what a person does in it."""

    def __init__(self, *, profile: Path) -> None:
        self.address, self.width = "", DESKTOP
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM or ""
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))

    def begin(self, *, address: str, width: int = DESKTOP, dark: bool = False) -> None:
        """Look at a server as somebody who has never been there."""
        self.address, self.width = address, width
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        everything = {"origin": address, "storageTypes": "all"}
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", everything)
        self._size(900)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.complaints()

    def _size(self, height: int) -> None:
        size = {
            "width": self.width,
            "height": height,
            "deviceScaleFactor": 1,
            "mobile": self.width == PHONE,
        }
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def close(self) -> None:
        """Close the window."""
        self.driver.quit()

    def log_in(self, user: User) -> None:
        """Log in by a session that is made here: the server hashes passwords otherwise than the tests do."""
        client = Client()
        client.force_login(user)
        self.go("/admin/login/")
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        self.driver.add_cookie({"name": settings.SESSION_COOKIE_NAME, "value": session})

    def go(self, path: str) -> None:
        """Open a page of the server."""
        self.driver.get(self.address + path)

    def one(self, selector: str) -> WebElement:
        """Return the element, once it is there."""
        try:
            return WebDriverWait(self.driver, 10).until(
                lambda driver: driver.find_element(By.CSS_SELECTOR, selector)
            )
        except TimeoutException:
            raise AssertionError(f"No {selector} on {self._page()}") from None

    def _page(self) -> str:
        return f"{self.driver.current_url}:\n{self.text[:3_000]}"

    def all(self, selector: str) -> list[WebElement]:
        """Return all such elements that are there now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def follow(self, text: str) -> None:
        """Press the link that contains the text."""
        self.submit(self.driver.find_element(By.PARTIAL_LINK_TEXT, text))

    def submit(self, element: WebElement) -> None:
        """Press it, and wait until another page is there."""
        before = self.one("html").id
        element.click()
        WebDriverWait(self.driver, 15).until(
            lambda driver: (
                driver.find_element(By.CSS_SELECTOR, "html").id != before
                and driver.execute_script("return document.readyState") == "complete"
            )
        )

    @property
    def text(self) -> str:
        """What can be read on the page; read at once, as a page may be replaced by another meanwhile."""
        seen: str = self.driver.execute_script(
            "return document.body ? document.body.innerText : ''"
        )
        return seen

    def wait_for(self, text: str) -> None:
        """Wait until the page says so, and is whole."""
        try:
            WebDriverWait(self.driver, 15).until(
                lambda driver: (
                    text in self.text
                    and driver.execute_script("return document.readyState") == "complete"
                )
            )
        except TimeoutException:
            raise AssertionError(f"{text!r} is not on {self._page()}") from None

    def complaints(self) -> list[str]:
        """Return what the browser's console complained about since the last look."""
        entries = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if "favicon" not in entry["message"]]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        wider: int = self.driver.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return wider

    def shoot(self, path: Path) -> None:
        """Take a picture of the whole page."""
        height = self.driver.execute_script("return document.documentElement.scrollHeight")
        self._size(min(int(height), 4_000))
        self.driver.save_screenshot(str(path))
        self._size(900)
