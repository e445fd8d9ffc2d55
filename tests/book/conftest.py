"""A notebook to plant faults in."""

import nbformat
import pytest
from reading import Page

from posenc.lab import notebooks

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M 1.25 2.5"/></svg>'
PROSE = """# A page

Pair {glue:text}`share` of all. **Stress.** A **shift matrix** is one for all positions.

```{exercise-start} Extend: one more
:label: ex-one
```
Why?
```{exercise-end}
```

```{solution-start} ex-one
:class: dropdown
```
```{solution-end}
```
"""
CLOSE = """## What was shown

```{index} RoBERTa; offset of its rows
```

| step | what it adds | what it guarantees | cost | where it breaks | who uses it |
| --- | --- | --- | --- | --- | --- |
| one $M_k$ | a step {eq}`eq-one` | all | $2d$ products | never | {cite:t}`vaswani2017` |
"""


@pytest.fixture
def sound():
    """Return a notebook without a fault, as its own copy."""
    v4 = nbformat.v4
    about = {
        "image": {"alt": "One curve that rises."},
        "figure": {"caption": "It rises.", "name": "fig-rise"},
    }
    record = {"scrapbook": {"name": "share", "mime_prefix": "application/papermill.record/"}}
    cells = [
        ("import numpy as np\n\nfrom posenc.lab import figures\n\nfigures.use()", {}, []),
        (
            'prose.glue("share", 0.5)\nprint(0.5)',
            {"tags": ["hide-output"]},
            [
                v4.new_output(
                    "display_data",
                    {"application/papermill.record/text/plain": "'0.5'"},
                    metadata=record,
                ),
                v4.new_output("stream", name="stdout", text="0.5\n"),
            ],
        ),
        (
            "ax.plot(x, y)\nplt.show()",
            {"tags": ["hide-output"], "mystnb": about},
            [v4.new_output("display_data", {"image/svg+xml": SVG, "text/plain": "<Figure>"})],
        ),
    ]
    code = [
        v4.new_code_cell(source, metadata=metadata, outputs=outputs, execution_count=n + 1)
        for n, (source, metadata, outputs) in enumerate(cells)
    ]
    prose = [PROSE.replace("ex-one", name) for name in ("ex-one", "ex-two", "ex-three")]
    return v4.new_notebook(
        cells=[*map(v4.new_markdown_cell, prose), *code, v4.new_markdown_cell(CLOSE)]
    )


@pytest.fixture
def page(tmp_path):
    """Return a function that stores a notebook in canonical form and reads it as a page."""

    def stored(notebook):
        path = tmp_path / "planted.ipynb"
        path.write_text(notebooks.text(notebooks.canonical(notebook)), encoding="utf-8")
        return Page(path)

    return stored
