"""Take the pictures of the tutorial about a bank: trains as the page does, and photographs parts of the report.

`python tools/pictures.py` writes docs/images/analyst-*.png.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PARTS = {"analyst-report": ("score", "ranking"), "analyst-finding": ("finding", "importance")}
"""The first and the last section of every picture."""
WIDTH, MOST = 1000, 1100


def main() -> None:
    """Train, open the report, take the pictures."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tables = [str(folder / "bank" / f"{name}.csv") for name in ("nodes", "payments", "devices")]
        pegfan("datasets", "transactions", "-o", str(folder / "bank"), "--set", "n=2000", "--set", "n_payments=20000")
        pegfan("train", *tables, "--label", "fraud", "-o", str(folder / "out"), "--budget", "60")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
            page.goto((folder / "out" / "report.html").as_uri())
            for name, (first, last) in PARTS.items():
                boxes = [page.locator(f"#{section}").bounding_box() for section in (first, last)]
                top, end = boxes[0]["y"], boxes[1]["y"] + boxes[1]["height"]
                clip = {"x": 0, "y": top, "width": WIDTH, "height": min(end - top, MOST)}
                page.screenshot(path=IMAGES / f"{name}.png", clip=clip, full_page=True)
                print(IMAGES / f"{name}.png")
            browser.close()


def pegfan(*words: str) -> None:
    """Run a command."""
    subprocess.run([sys.executable, "-m", "pegfan", *words], check=True)


def chromium() -> str | None:
    """A browser of the system where there is one."""
    return next((path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if Path(path).exists()), None)


if __name__ == "__main__":
    main()
