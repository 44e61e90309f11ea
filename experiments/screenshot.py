"""The picture of the explorer in the README: `python -m experiments.screenshot`, with Chromium on the path."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments import pages, script

FILE = Path(__file__).parent.parent / "docs" / "figures" / "explorer.png"


def main() -> None:
    """Capture the explorer where the learned model makes its first error."""
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "explorer.html"
        page_file.write_text(pages.explorer(), encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.goto(page_file.as_uri())
        page.get_by_role("button", name="counterexample to").click()
        page.keyboard.press("e")  # to the first wrong output
        page.screenshot(path=FILE)
        browser.close()


if __name__ == "__main__":
    script.run(main)
