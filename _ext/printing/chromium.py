"""Where a Chromium is found: the reader's, an installed one, or Playwright's own."""

import os
import shutil

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
CANDIDATES = [
    "/usr/lib/chromium/chromium",  # Debian's /usr/bin/chromium is a wrapper around this
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
]
MISSING = (
    "no Chromium found: install one (Debian: apt-get install chromium; elsewhere: "
    "python -m playwright install chromium), or name it: CHROMIUM=/path/to/chromium make site"
)


def find(own):
    """Return the program's path, or None; `own` is where Playwright would keep its Chromium."""
    named = os.environ.get("CHROMIUM")
    if named:
        if not shutil.which(named):
            raise LookupError(f"CHROMIUM names no program: {named}")
        return shutil.which(named)
    return next(filter(None, map(shutil.which, [*CANDIDATES, own])), None)
