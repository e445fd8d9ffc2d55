"""Every numbered equation has a test that bears its label, and no edge of the map dangles."""

import os
import subprocess
import sys

from reading import ROOT

from posenc.lab import equations

FOUND = equations.read(ROOT)


def collected(tests):
    """Return the ids, without parameters, of what pytest collects from these tests' files."""
    files = sorted({test.partition("::")[0] for test in tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [*command, *files],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}


def test_no_edge_dangles():
    """Catches a label without a test, a test or docstring of no label, a label given twice."""
    assert not equations.dangling(FOUND)


def test_every_test_on_the_map_is_collected():
    """Catches a test that bears a label and never runs: misnamed, shadowed or not imported."""
    borne = {test for equation in FOUND for test in equation.tests}
    assert borne <= (collected(borne) if borne else set())


def test_a_test_that_is_not_there_is_not_collected():
    """Catches a comparison with a collection that holds everything, or nothing."""
    here = "tests/book/test_equations.py"
    ids = collected([f"{here}::test_no_edge_dangles"])
    assert f"{here}::test_no_edge_dangles" in ids
    assert f"{here}::test_another" not in ids
