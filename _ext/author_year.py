"""Labels of the bibliography that read as the citations do: Vaswani et al., 2017."""

from pybtex.plugin import register_plugin
from pybtex.richtext import Text
from pybtex.style.formatting.alpha import Style
from pybtex.style.labels import BaseLabelStyle


class AuthorYear(BaseLabelStyle):
    """Surnames, at most two of them, and the year; a, b, ... for works that share both."""

    def format_labels(self, sorted_entries):
        """Yield one label for each entry."""
        plain = [f"{names(entry)}, {entry.fields['year']}" for entry in sorted_entries]
        for index, label in enumerate(plain):
            shared = plain.count(label) > 1
            yield label + chr(ord("a") + plain[:index].count(label)) * shared


def names(entry):
    """Return the surnames of an entry as a citation in the text shows them."""
    people = [" ".join(one.prelast_names + one.last_names) for one in entry.persons["author"]]
    people = [str(Text.from_latex(name)) for name in people]
    return f"{people[0]} et al." if len(people) > 2 else " and ".join(people)


class AuthorYearStyle(Style):
    """The alpha style with these labels."""

    default_label_style = AuthorYear


def setup(app):
    """Register the style under the name that the page of references gives."""
    register_plugin("pybtex.style.formatting", "author_year", AuthorYearStyle)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
