"""Take the picture of the console that the README shows, from a running `make run`: needs Chromium and its driver.

python -m docs.picture http://127.0.0.1:8000
"""

import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

TARGET = Path(__file__).resolve().parent / "img" / "overview.png"
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


def main(address: str) -> int:
    """Log in as the demo's `support` and photograph the overview."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}", "--window-size=1280,1020"):
            options.add_argument(flag)
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        browser = webdriver.Chrome(options=options, service=service)
        try:
            browser.get(f"{address}/admin/login/?next=/admin/idempotency/heartbeat/")
            browser.find_element(By.NAME, "username").send_keys("support")
            browser.find_element(By.NAME, "password").send_keys("support")
            browser.find_element(By.CSS_SELECTOR, "[type=submit]").click()
            WebDriverWait(browser, 15).until(lambda it: it.find_elements(By.ID, "idem-live"))
            TARGET.parent.mkdir(exist_ok=True)
            browser.save_screenshot(str(TARGET))
        finally:
            browser.quit()
    sys.stdout.write(f"{TARGET.name}: {TARGET.stat().st_size // 1000} kB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"))
