"""Numbers in sentences are written as a sentence would, and never as noise."""

import numpy as np
import pytest
import torch

from posenc.lab import prose


@pytest.mark.parametrize(
    ("value", "spec", "words"),
    [
        (0.97312, ".4g", "0.9731"),
        (np.float64(19.2713), ".2f", "19.27"),
        (np.float32(0.5), ".4g", "0.5"),
        (torch.tensor(2.5), ".1f", "2.5"),
        (60611.4812, ",.2f", "60,611.48"),
        (262144, ",d", "262,144"),
        (262144, ".4g", "262144"),
        (np.int64(-710), ".4g", "−710"),
        (0, ".4g", "0"),
        (0.0, ".2f", "0.00"),
        (-0.0, ".2f", "0.00"),
        (-3.7138, ".3f", "−3.714"),
        (6.0312e-5, ".4g", "6.031 × 10⁻⁵"),
        (-6.0312e-5, ".2e", "−6.03 × 10⁻⁵"),
        (1.5e12, ".4g", "1.5 × 10¹²"),
        (0.00195, ".3%", "0.195%"),
        ("exactly -0", ".4g", "exactly -0"),
    ],
)
def test_a_number_is_written_as_a_sentence_writes_it(value, spec, words):
    """Catches NumPy's spelling, a hyphen for a minus, an e for a power, a negative zero."""
    assert prose.written(value, spec) == words


@pytest.mark.parametrize(
    ("value", "spec", "error", "words"),
    [
        (1e-12, ".4g", ValueError, "rounding noise below 1e-09"),
        (float("nan"), ".4g", ValueError, "value must be finite, got nan"),
        (float("inf"), ".4g", ValueError, "value must be finite, got inf"),
        (0.123456789, ".9f", ValueError, "at most 7 digits, got 0.123456789"),
        (-0.0004, ".2f", ValueError, "shows nothing of -0.0004: -0.00"),
        (True, ".4g", TypeError, "value must be a number or a string, got True"),
        (1j, ".4g", TypeError, "value must be a number or a string, got 1j"),
        (None, ".4g", TypeError, "value must be a number or a string, got None"),
    ],
)
def test_what_no_sentence_should_say_is_refused(value, spec, error, words):
    """Catches noise, a negative zero or a wrong object on its way into a sentence."""
    with pytest.raises(error) as caught:
        prose.written(value, spec)
    assert words in str(caught.value)


def test_glue_stores_for_the_page_and_shows_nothing(monkeypatch):
    """Catches a number that is shown twice, or stored under another name."""
    stored = []
    monkeypatch.setattr(prose, "_glue", lambda *given, **options: stored.append((given, options)))
    prose.glue("share-of-pairs", 123 / 256, ".1%")
    assert stored == [(("share-of-pairs", "48.0%"), {"display": False})]
    with pytest.raises(ValueError, match="name must be in kebab case, got 'Share of'"):
        prose.glue("Share of", 1)
