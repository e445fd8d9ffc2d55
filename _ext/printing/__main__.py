"""Print the one-page book: ``PYTHONPATH=_ext python -m printing book.html BOOK.pdf``."""

import sys
from pathlib import Path

from .press import main

main(*map(Path, sys.argv[1:]))
