"""What the screen folds: solutions stand behind all chapters, answers stand open."""

from .pdf import bare, beginning


def misplaced_solutions(leaves):
    """List the solutions that are missing, without a way back, or not behind all chapters."""
    found = []
    opened = [part["id"] for part in leaves.soup.select(".part") if part.h1.text == "Solutions"]
    if not opened:
        return ["there is no part with the solutions"]
    start = leaves.places[opened[0]]
    for exercise in leaves.soup.select("div.exercise"):
        link = exercise.select_one(".to-solution a")
        if link is None:
            found.append(f"no solution to {exercise['id']}")
        elif leaves.places.get(link["href"][1:], 0) <= start:
            found.append(f"not behind the chapters: {link['href'][1:]}")
    for solution in leaves.soup.select("div.solution"):
        back = solution.select_one("p.admonition-title a")
        if back is None or leaves.places.get(back["href"][1:], start) >= start:
            found.append(f"no way back from {solution['id']}")
        title = bare(beginning(solution.select_one("p.admonition-title")).partition("(page")[0])
        if not any(title in text for text in leaves.bare_texts[start:]):
            found.append(f"no page has {title!r}")
    return found


def folded(leaves):
    """List what nobody can open on paper, and boxes with a name and nothing in them."""
    found = [f"on paper: {e.name}" for e in leaves.soup.select("details, input, button, audio")]
    for box in leaves.soup.select(".answer, .admonition, .highlight, .cell, figure"):
        said = box.get_text(strip=True).removeprefix("Answer")
        if not said and not box.find(["img", "svg"]):
            found.append(f"an empty box: {' '.join(box['class'])}")
    return found
