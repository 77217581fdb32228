"""The verdict in plain English: what was found, said so that the person who signs for it can say it again.

A class is a group of records that share all of their quasi-identifiers. Names of columns are data: sentences are
markup in which every name was escaped and stands by itself, so that a name written from right to left turns nothing
around it.
"""

from __future__ import annotations

from markupsafe import Markup

from kinfold.models import Finding
from kinfold.release.report.facts import Facts
from kinfold.release.report.wording import apart, count, plural, quantity, share, visible

MOST_SENTENCES = 3  # below the headline, so that it stays a summary
AT_MOST = ("t", "alpha")  # models whose value should be small


MEANINGS = {
    "k": "Each combination of quasi-identifiers that occurs is shared by at least {asked} records.",
    "t": "In each class, {column} is spread as in the whole release, to within {asked}; 0 is alike, 1 is far.",
    "p": "Each class holds at least {asked} different values of {column}.",
    "alpha": "No value of {column} makes up more than {share} of a class.",
    "distinct": "Each class holds at least {asked} different values of {column}.",
    "entropy": "In each class, {column} is as varied as {asked} equally frequent values, or more.",
    "recursive": "The most frequent value of {column} stands out in no class, even where others are ruled out.",
}


def meaning_of(kind: str, letter: str) -> str:
    """Return what a promise means before a level is chosen: its letter stands for it.

    >>> meaning_of("k", "k")
    'Each combination of quasi-identifiers that occurs is shared by at least k records.'
    """
    return MEANINGS[kind].format(asked=letter, share=letter, column="a confidential column")


def holds(facts: Facts) -> bool:
    """Whether something was promised and all of it holds."""
    return bool(facts.findings) and all(finding.holds for finding in facts.findings)


def headline(facts: Facts) -> Markup:
    """Return the verdict in one sentence."""
    if not facts.released:
        return Markup("No record was released.")
    if not facts.findings:
        return Markup("Nothing was promised about the {} of this table.").format(plural(facts.released, "record"))
    broken = [finding for finding in facts.findings if not finding.holds]
    if broken:
        return Markup("This table must not be released: {}.").format(_broken(broken[0], facts))
    for finding in facts.findings:
        if finding.model == "k":
            return _hidden(int(finding.found), facts.released)
    return Markup("Each of the {} keeps every promise made about it.").format(_records(facts.released))


def further(facts: Facts) -> list[Markup]:
    """Return the verdict on the other promises, or, where one is broken, on the others that are."""
    broken = [finding for finding in facts.findings if not finding.holds]
    if not facts.released or broken:
        said = [Markup("Also, {}.").format(_broken(finding, facts)) for finding in broken[1:]]
    else:
        said = [_kept(finding) for finding in facts.findings if finding.model != "k"]
    if len(said) <= MOST_SENTENCES:
        return said
    left = plural(len(said) - MOST_SENTENCES + 1, "further promise")
    return [*said[: MOST_SENTENCES - 1], Markup("{} {}; see below.").format(left, "broken" if broken else "kept")]


def _hidden(k: int, released: int) -> Markup:
    if k == released:
        return Markup("All {} share the same quasi-identifiers.").format(_records(released))
    text = Markup("Every one of the {} shares its quasi-identifiers with at least {}.")
    return text.format(_records(released), plural(k - 1, "other"))


def _records(released: int) -> str:
    return plural(released, "released record")


def _broken(finding: Finding, facts: Facts) -> Markup:
    """Return what is wrong, as a part of a sentence."""
    if finding.model == "k":
        text = Markup("{} of its {} {} fewer than {} records, the smallest {}")
        holding = "holds" if finding.failing == 1 else "hold"
        classes = plural(facts.classes, "class", "classes")
        return text.format(count(finding.failing), classes, holding, quantity(finding.asked), count(finding.smallest))
    asked, found = apart(finding.asked, finding.found)
    text = Markup("{} does not hold in {} ({} found where {} {} was asked)")
    classes = plural(finding.failing, "class", "classes")
    return text.format(visible(finding.promise), classes, found, limit(finding), asked)


def _kept(finding: Finding) -> Markup:
    """Return a sentence on a promise that holds, with the value found."""
    found, column = quantity(finding.found), named(finding.column)
    texts = {
        "t": Markup("In every class, {column} is spread as in the whole release, to within {found}."),
        "l": Markup("Every class holds at least {found} different values of {column}."),
        "p": Markup("Every class holds at least {found} different values of {column}."),
        "alpha": Markup("In no class does a value of {column} make up more than {share}."),
    }
    if finding.model not in texts or (finding.model == "l" and not finding.promise.startswith("distinct")):
        return Markup("{} holds; {} was found.").format(visible(finding.promise), found)
    return texts[finding.model].format(column=column, found=found, share=share(finding.found))


def meaning(finding: Finding) -> Markup:
    """Return what a promise means, for the table of promises."""
    kind = finding.promise.split(" ")[0] if finding.model == "l" else finding.model
    text = Markup(MEANINGS.get(kind, ""))  # noqa: S704  one of the sentences above
    return text.format(asked=quantity(finding.asked), column=named(finding.column), share=share(finding.asked))


def limit(finding: Finding) -> str:
    """Say on which side of the value asked the value found should be."""
    return "at most" if finding.model in AT_MOST else "at least"


def named(column: str | None) -> Markup:
    """Return the name of a column as an element of its own."""
    return Markup('<bdi class="name">{}</bdi>').format(visible(column)) if column is not None else Markup("")
