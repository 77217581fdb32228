"""The verdict in plain English, and the limits of what a release promises.

A class is a group of records that share all of their quasi-identifiers. Column names are data: every name in a sentence
is escaped and isolated, so that a right-to-left name does not reorder the text around it. The limits are sentences of
docs/promise.md, by their numbers.
"""

from __future__ import annotations

from markupsafe import Markup

from kinfold.errors import plural
from kinfold.models import Finding
from kinfold.release.report.facts import Facts
from kinfold.release.report.wording import format_count, format_distinct, format_number, format_share, make_visible

LIMITS = {
    16: "Several releases about the same people can be combined.",
    17: "Under k alone, what is confidential can be inferred.",
    18: "Background knowledge can rule out records.",
    20: "Columns released as they are stay as they are.",
    21: "A small or complete population is hidden less.",
    22: "Checksums detect accidental changes, not tampering.",
    29: "Someone who knows the method can conclude more from what it chose than the classes show.",
}

HEADLINES = ("k", "combinations")  # models that the headline has
MAX_SENTENCES = 3  # below the headline; the table of promises has all
UPPER_LIMIT_MODELS = (  # models with an upper limit
    *("t", "alpha", "beta", "average_risk", "risk_share", "confidence", "presence", "uniques"),
)


MEANINGS = {
    "k": "Each combination of quasi-identifiers that occurs is shared by at least {required} records.",
    "t": "In each class, the distribution of {column} differs from the whole release by at most {required} of 1.",
    "p": "Each class has at least {required} different values of {column}.",
    "alpha": "No value of {column} makes up more than {share} of a class.",
    "basic": "No value of {column} gains more than {required} times its share of the release in a class.",
    "enhanced": "No value of {column} gains more than {required} times its share in a class; frequent ones gain less.",
    "delta": "Each class has every value of {column}; its share differs from the release by less than 2^{required}.",
    "average_risk": "The mean of 1 / (size of the class) over all records is at most {required}.",
    "risk_share": "At most the share {required} of the records is in a class that is smaller than the limit allows.",
    "combinations": "Each combination of at most so many quasi-identifiers is shared by at least {required} records.",
    "confidence": "No value of {column} makes up more than {share} of the records that share so few quasi-identifiers.",
    "estimated_kmap": "Each class has at least {required} records: by an estimate, enough people share its values.",
    "kmap": "At least {required} people of the population share each class: a statement of the data holder.",
    "individual_risk": "By an estimate from sampling weights, no record is found with a chance above {required}.",
    "presence": "At most {share} of the people of each class are in the table: a statement of the data holder.",
    "uniques": "At most the share {required} of the people is unique in the population, by an estimate.",
    "distinct": "Each class has at least {required} different values of {column}.",
    "entropy": "In each class, {column} is as varied as {required} equally frequent values, or more.",
    "recursive": "In no class does the most frequent value of {column} dominate, even if other values are ruled out.",
}


def explain_model(kind: str, letter: str) -> str:
    """Return the meaning of a promise, with a letter in place of its level.

    >>> explain_model("k", "k")
    'Each combination of quasi-identifiers that occurs is shared by at least k records.'
    """
    return MEANINGS[kind].format(required=letter, share=letter, column="a confidential column")


def holds(facts: Facts) -> bool:
    """Whether there are promises and all of them hold."""
    return bool(facts.findings) and all(finding.holds for finding in facts.findings)


def write_headline(facts: Facts) -> Markup:
    """Return the verdict in one sentence."""
    if not facts.released:
        return Markup("No record was released.")
    if not facts.findings:
        return Markup("Nothing was promised about the {} of this table.").format(plural(facts.released, "record"))
    broken = [finding for finding in facts.findings if not finding.holds]
    if broken:
        return Markup("This table must not be released: {}.").format(_write_broken_promise(broken[0], facts))
    for finding in facts.findings:
        if finding.model == "k":
            return _write_k_sentence(int(finding.found), facts.released)
        if finding.model == "combinations":
            text = Markup("{} holds for the {}: the rarest combination has {}.")
            records = plural(facts.released, "released record"), plural(int(finding.found), "record")
            return text.format(make_visible(finding.promise), *records)
    return Markup("Every promise about the {} holds.").format(plural(facts.released, "released record"))


def write_details(facts: Facts) -> list[Markup]:
    """Return sentences on the other promises; if some are broken, on the other broken ones only."""
    broken = [finding for finding in facts.findings if not finding.holds]
    if not facts.released or broken:
        sentences = [Markup("Also, {}.").format(_write_broken_promise(finding, facts)) for finding in broken[1:]]
    else:
        sentences = [_write_kept_promise(finding) for finding in facts.findings if finding.model not in HEADLINES]
    if len(sentences) <= MAX_SENTENCES:
        return sentences
    left = plural(len(sentences) - MAX_SENTENCES + 1, "further promise")
    return [*sentences[: MAX_SENTENCES - 1], Markup("{} {}; see below.").format(left, "broken" if broken else "kept")]


def _write_k_sentence(k: int, released: int) -> Markup:
    records = plural(released, "released record")
    if k == released:
        return Markup("All {} share the same quasi-identifiers.").format(records)
    text = Markup("Every one of the {} shares its quasi-identifiers with at least {}.")
    return text.format(records, plural(k - 1, "other"))


def _write_broken_promise(finding: Finding, facts: Facts) -> Markup:
    """Return a clause that says what is wrong."""
    if finding.model == "k":
        text = Markup("{} of its {} {} fewer than {} records; the smallest has {}")
        verb, failing = "has" if finding.failing == 1 else "have", format_count(finding.failing)
        classes, smallest = plural(facts.classes, "class", "classes"), format_count(finding.smallest)
        return text.format(failing, classes, verb, format_number(finding.asked), smallest)
    required, value = format_distinct(finding.asked, finding.found)
    text = Markup("{} does not hold in {} ({} found, {} {} required)")
    classes = plural(finding.failing, "class", "classes")
    return text.format(make_visible(finding.promise), classes, value, describe_limit(finding), required)


def _write_kept_promise(finding: Finding) -> Markup:
    """Return a sentence on a promise that holds, with the measured value."""
    value, column = format_number(finding.found), mark_name(finding.column)
    texts = {
        "t": Markup("In every class, the distribution of {column} differs from the whole release by at most {value}."),
        "l": Markup("Every class has at least {value} different values of {column}."),
        "p": Markup("Every class has at least {value} different values of {column}."),
        "beta": Markup("In no class does a value of {column} gain more than {value} times its share of the release."),
        "delta": Markup(
            "Every class has every value of {column}; its share differs from that of the release by at most 2^{value}."
        ),
        "alpha": Markup("In no class does a value of {column} make up more than {share}."),
    }
    if finding.model not in texts or (finding.model == "l" and not finding.promise.startswith("distinct")):
        return Markup("{} holds; the value is {}.").format(make_visible(finding.promise), value)
    return texts[finding.model].format(column=column, value=value, share=format_share(finding.found))


def explain_promise(finding: Finding) -> Markup:
    """Return the meaning of a promise, for the table of promises."""
    kind = finding.promise.split(" ")[0] if finding.model == "l" else finding.model
    kind = finding.promise.split("(")[1].split(")")[0] if finding.model == "beta" else kind
    text = Markup(MEANINGS.get(kind, ""))  # noqa: S704  one of the sentences above
    return text.format(
        required=format_number(finding.asked), column=mark_name(finding.column), share=format_share(finding.asked)
    )


def describe_limit(finding: Finding) -> str:
    """Return "at most", "at least" or "less than": the direction of the required value."""
    if finding.model == "delta":
        return "less than"
    return "at most" if finding.model in UPPER_LIMIT_MODELS else "at least"


def mark_name(column: str | None) -> Markup:
    """Return the name of a column as an isolated element."""
    return Markup('<bdi class="name">{}</bdi>').format(make_visible(column)) if column is not None else Markup("")
