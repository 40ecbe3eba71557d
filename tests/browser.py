"""A headless browser for tests, where there is one."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --hide-scrollbars --force-device-scale-factor=1"
)

needs_a_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here: pages are not laid out (apt-get install chromium)"
)


def browse(page: Path, folder: Path, *arguments: str) -> str:
    """Run the browser on a file, with a profile of its own and no network; what it printed."""
    assert CHROMIUM is not None
    profile = folder / f"profile-{len(list(folder.iterdir()))}"
    offline = "--host-resolver-rules=MAP * ~NOTFOUND"
    ran = subprocess.run(
        [CHROMIUM, *FLAGS.split(), offline, f"--user-data-dir={profile}", *arguments, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return ran.stdout


class TextOf(HTMLParser):
    """The text of the element with an id."""

    def __init__(self, dom: str, name: str) -> None:
        super().__init__()
        self.text, self._name, self._inside = "", name, False
        self.feed(dom)

    def handle_starttag(self, tag, attrs):
        self._inside = ("id", self._name) in attrs

    def handle_data(self, data):
        if self._inside:
            self.text += data

    def handle_endtag(self, tag):
        self._inside = False
