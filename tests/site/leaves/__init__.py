"""The printed book, leaf by leaf: what each check finds, in words.

The one HTML page that was printed says what has to be there; the PDF says what is. `pdf` reads
both; `pixels`, `text`, `links`, `contents` and `solutions` find what is wrong.
"""

from .contents import poor_outline, wrong_contents
from .links import dead_links, wrong_page_numbers
from .pdf import SOURCE, TARGET, Leaves
from .pixels import faults_of_kind
from .solutions import folded, misplaced_solutions
from .text import lost_captions, lost_numbers, other_numbers, raw_tex, uncopied

__all__ = ["CHECKS", "SOURCE", "TARGET", "Leaves", "other_numbers"]

CHECKS = {
    "raw TeX": raw_tex,
    "copying": uncopied,
    "captions": lost_captions,
    "equation numbers": lost_numbers,
    "contents": wrong_contents,
    "links": dead_links,
    "page numbers": wrong_page_numbers,
    "solutions": misplaced_solutions,
    "folded": folded,
    "outline": poor_outline,
    "blank": faults_of_kind("blank"),
    "margins": faults_of_kind("margins"),
    "boxes": faults_of_kind("boxes"),
}
