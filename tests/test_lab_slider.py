"""The slider needs no kernel and no network, repeats byte for byte and speaks to everyone."""

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from posenc.lab import figures
from posenc.lab.figures.marks import View, number

PAPER = View(0, 320, 0, 180, 180)


def frames(noise=0.0):
    """Return three frames with one of each mark."""
    return [
        figures.Frame(
            f"{k} tokens",
            f"At {k} the hand </script><!-- points up & right.",
            [
                figures.line([0, 1 / 3 + noise], [k, k + noise]),
                figures.dots([1 + noise], [2], kind="fast"),
                figures.bars([1, 2], [3 + noise, -4]),
                figures.cells([[1, -0.5 - noise], [0, -1]], x=10, y=10, size=5),
                figures.text(10 + noise, 10, "</script><b> & ü"),
                figures.circle(1, 1, 1 / 3 + noise, full=True, kind="seen"),
                figures.arc(1, 1, 5, 0, math.pi / 6 + noise, full=True, kind="slow"),
                figures.segment(0, 0, 1 + noise, 1, kind="muted"),
            ],
        )
        for k in range(3)
    ]


def html(**options):
    """Return the HTML of a sound slider, or of one with other options."""
    given = {"name": "one", "label": "offset k", "frames": frames(), "alt": "A hand."}
    return figures.slider(**{**given, **options}).data


class Reader(HTMLParser):
    """Collect the elements with their attributes, and the text inside each kind of them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), list(self.open)))
        if tag != "input":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), list(self.open)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.text[self.open[-1]] = self.text.get(self.open[-1], "") + data


def test_the_same_frames_give_the_same_bytes_on_another_machine():
    """Catches random ids, and the last bits of a sine on their way into the page."""
    assert html() == html()
    assert html(frames=frames(1e-9)) == html()
    assert not re.search(r"(?<![\d.])-0(?![\d.])", html())


@pytest.mark.parametrize("edge", [12.25, 0.05, -0.05, 0.0, 319.95])
def test_noise_at_the_edge_of_a_decimal_does_not_tip_it(edge):
    """Catches a place on paper that the last bit of a sine rounds up here and down there."""
    written = {number(edge + noise) for noise in (-1e-12, 0.0, 1e-12)}
    assert len(written) == 1
    assert written != {"-0"}


def test_words_may_hold_any_character():
    """Catches a quotation mark that ends an attribute."""
    page = Reader(html(alt='A "hand" < & >', label="<k>"))
    found = {tag: attrs for tag, attrs, _ in page.elements}
    assert found["svg"]["aria-label"] == 'A "hand" < & >'
    assert page.text["span"] == "<k>"


def test_it_can_be_read_and_moved_by_everyone():
    """Catches an input without a name, a mute picture, a change that no listener hears of."""
    page = Reader(html(start=1))
    assert not page.open
    found = {tag: attrs for tag, attrs, _ in page.elements}
    inside = {tag: parents for tag, _, parents in page.elements}
    assert inside["input"][-1] == inside["output"][-1] == "label"
    assert page.text["span"] == "offset k"
    assert (found["svg"]["role"], found["svg"]["aria-label"]) == ("img", "A hand.")
    assert (found["input"]["type"], found["input"]["max"]) == ("range", "2")
    assert found["input"]["aria-valuetext"] == page.text["output"] == "1 tokens"
    assert found["p"]["aria-live"] == "polite"
    assert page.text["p"] == "At 1 the hand </script><!-- points up & right."


def test_without_a_script_the_first_picture_stands_and_the_slider_is_still():
    """Catches an empty page where scripts are off."""
    text = html(start=2, fixed=[figures.circle(1, 2, 3)])
    first = re.search(r"<g>(.*?)</g>", text)[1]
    stored = json.loads(re.search(r"json\">(.*?)</script>", text)[1])
    assert stored[2][2] == first
    assert "disabled" in re.search(r"<input[^>]*>", text)[0]
    assert text.count(figures.circle(1, 2, 3)(PAPER)) == 1


def test_it_asks_for_nothing_and_shares_no_id():
    """Catches a request to the network, and two sliders that move each other."""
    assert not re.search(r"https?:|//\w|url\(|@import|src=|href=|\bfetch", html())
    assert re.findall(r'id="([^"]+)"', html()) == ["slider-one"]
    assert 'getElementById("slider-one")' in html()


def test_words_in_a_frame_cannot_end_the_script():
    """Catches a frame whose text closes the element that stores it."""
    text = html()
    assert text.count("</script>") == 2
    stored = json.loads(re.search(r"json\">(.*?)</script>", text)[1])
    assert [frame[0] for frame in stored] == ["0 tokens", "1 tokens", "2 tokens"]
    assert "&lt;/script&gt;&lt;b&gt; &amp; ü" in stored[0][2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "One two"}, "name must be in kebab case, got 'One two'"),
        ({"frames": frames()[:1]}, "frames must be at least 2, got 1"),
        ({"start": 3}, "start must be the index of a frame, got 3 of 3"),
        ({"start": -1}, "start must be the index of a frame, got -1 of 3"),
        ({"alt": " "}, "alt must say something, got ' '"),
        ({"label": ""}, "label must say something, got ''"),
        ({"frames": [figures.Frame("", "A.", [])] * 2}, "value must say something"),
        ({"frames": [figures.Frame("1", "A hand", [])] * 2}, "one sentence with its full stop"),
    ],
)
def test_what_would_leave_a_reader_out_is_refused(options, words):
    """Catches a slider without a name, words or anything to slide through."""
    with pytest.raises(ValueError, match=re.escape(words)):
        html(**options)


@pytest.mark.parametrize(
    ("mark", "svg"),
    [
        (figures.line([-1, 1], [0, 1]), "<polyline class='ink' points='0,90 320,0'/>"),
        (figures.segment(0, 0, 1, -1), "<polyline class='ink' points='160,90 320,180'/>"),
        (figures.circle(0, 0, 0.5), "<circle class='ink' cx='160' cy='90' r='80'/>"),
        (
            figures.bars([0], [-0.5], width=1),
            "<rect class='ink full' x='80' y='90' width='160' height='45'/>",
        ),
        (
            figures.arc(0, 0, 0.5, 0, math.pi / 2),
            "<path class='ink' d='M 240 90 A 80 80 0 0 0 160 10'/>",
        ),
        (
            figures.arc(0, 0, 0.5, 0, 3 * math.pi / 2, full=True),
            "<path class='ink full' d='M 240 90 A 80 80 0 1 0 160 170 L 160 90 Z'/>",
        ),
        (figures.arc(0, 0, 0.5, 1, 8), "<circle class='ink' cx='160' cy='90' r='80'/>"),
        (
            figures.dots([-1, 0], [1, 0.5]),
            "<path class='ink' style='stroke-width:6' d='M0 0h0M160 45h0'/>",
        ),
    ],
)
def test_x_grows_to_the_right_y_upwards_and_angles_anticlockwise(mark, svg):
    """Catches a mirrored picture, the fault that no byte comparison finds."""
    assert mark(View(-1, 1, -1, 1, 180)) == svg


def test_cells_start_in_the_upper_left_corner_and_mark_the_negative_ones():
    """Catches a transposed matrix, and signs told apart by colour alone."""
    svg = figures.cells(np.array([[0, 1.0], [-1, 0.0]]), y=2)(View(0, 2, 0, 2, 320))
    assert "<path class='fast full' d='M160 0h160v160h-160z'/>" in svg
    assert "<path class='slow full' d='M0 160h160v160h-160z'/>" in svg
    assert svg.count("<path") == 2
    assert svg.count("<polyline") == 1


def test_cells_that_look_alike_are_one_path():
    """Catches a matrix of many cells that is stored cell by cell, or cells of another look lost."""
    svg = figures.cells([[0.5, 0.25], [0.5, -0.5]], y=2)(View(0, 2, 0, 2, 320))
    paths = re.findall(r"<path class='(\w+) full' fill-opacity='([\d.]+)' d='(.*?)'/>", svg)
    assert [(kind, shade, d.count("M")) for kind, shade, d in paths] == [
        ("fast", "0.5", 2),
        ("fast", "0.25", 1),
        ("slow", "0.5", 1),
    ]
    assert svg.endswith("/>")
    assert svg.index("<polyline") > svg.rindex("<path")


@pytest.mark.parametrize(
    ("xs", "ys", "points"),
    [
        ([0, 1, 2, 3], [1, 1, 1, 0], "0,1 2,1 3,0"),
        ([0, 2, 1], [1, 1, 1], "0,1 2,1 1,1"),
        ([0, 1, 2], [1, 1.04, 1], "0,1 2,1"),
        ([0, 1, 2], [1, 1.06, 1], "0,1 1,1.1 2,1"),
        ([1, 1, 1], [0, 1, 2], "1,0 1,1 1,2"),
        ([2, 2], [1, 1], "2,1 2,1"),
    ],
)
def test_a_line_stores_no_point_that_draws_nothing(xs, ys, points):
    """Catches a corner lost with the points of a level stretch, or a way back that is cut off."""
    assert figures.line(xs, ys)(View(0, 320, 180, 0, 180)) == (
        f"<polyline class='ink' points='{points}'/>"
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: figures.line([0, 1], [0]), "xs and ys must be equally many, got 2 and 1"),
        (lambda: figures.line([0], [math.nan])(PAPER), "must lie at finite coordinates, got nan"),
        (lambda: figures.dots([0], [0], kind="red"), "kind must be one of ink, fast, slow"),
        (lambda: figures.cells([[2.0]]), r"values must be a matrix with entries in \[-1, 1\]"),
        (lambda: figures.arc(0, 0, 1, 2, 1), "end must not be below start, got 2 and 1"),
    ],
)
def test_a_mark_that_cannot_be_drawn_is_refused(make, words):
    """Catches a silent gap in a picture."""
    with pytest.raises(ValueError, match=words):
        make()
