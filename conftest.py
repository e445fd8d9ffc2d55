"""What nbval compares of a stored output, for every notebook."""

import os

PICTURES = ("image/svg+xml", "image/png", "image/jpeg")
ON_CPU = os.environ.get("POSENC_DEVICE", "cpu") == "cpu"


def pytest_itemcollected(item):
    """Compare pictures too, which nbval would not for PNG; on a GPU machine none.

    Such a machine brings its own matplotlib and NumPy, and a picture's bytes depend on both.
    """
    notebook = item.parent
    if hasattr(notebook, "skip_compare"):
        others = tuple(kind for kind in notebook.skip_compare if kind not in PICTURES)
        notebook.skip_compare = others if ON_CPU else others + PICTURES
