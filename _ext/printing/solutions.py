"""Solutions leave their chapter: behind all chapters they follow one another without a gap."""

from .markup import parsed, title_of
from .places import on_page, page_number


def taken_solutions(leaf):
    """Take the solutions off a page and return them under its title, or nothing."""
    found = leaf.select("div.solution")
    if not found:
        return None
    section = parsed('<section class="leaf solutions"><h2></h2></section>')
    section["id"] = leaf["id"] + ":solutions"
    for child in title_of(leaf):
        section.h2.append(child)
    for solution in found:
        link = solution.select_one("p.admonition-title a")
        exercise = leaf.find(id=link["href"][1:]) if link else None
        section.append(solution.extract())
        if exercise:
            exercise.append(
                parsed(
                    f'<p class="to-solution"><a href="#{solution["id"]}">Solution on page '
                    f"{page_number(solution['id'])}</a></p>"
                )
            )
            link.append(parsed(on_page(exercise["id"])))
    return section
