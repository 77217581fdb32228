"""What each measure says, for a report: its title, one sentence, its range, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Better: TypeAlias = Literal["less", "more"]


@dataclass(frozen=True)
class Entry:
    """One measure as a reader meets it."""

    title: str
    meaning: str
    range: str
    better: Better = "less"


CATALOGUE: dict[str, Entry] = {
    "risk.dr_min": Entry(
        "Minimal disclosure risk", "Share of released records unique both in the release and in the original.", "0 to 1"
    ),
    "risk.dr_max": Entry(
        "Maximal disclosure risk", "Share of records expected to be found by picking blindly in their class.", "0 to 1"
    ),
    "risk.dr_weighted": Entry(
        "Weighted disclosure risk", "The same, counting only (or mostly) the classes the weights call unsafe.", "0 to 1"
    ),
    "risk.unique_from_larger": Entry(
        "Unique only in the release",
        "Records unique in the release that were not in the original: the disclosure risk measures miss them.",
        "0 to n",
    ),
    "risk.uncounted": Entry(
        "In no disclosure risk", "Records whose class shrank: the disclosure risk measures leave them out.", "0 to n"
    ),
    "risk.prosecutor_max": Entry(
        "Highest risk of a record", "Chance to find the worst placed person known to be in the release.", "above 0 to 1"
    ),
    "risk.prosecutor_mean": Entry(
        "Mean risk of a record", "Share of people expected to be found if all are known to be in it.", "above 0 to 1"
    ),
    "risk.journalist": Entry(
        "Risk from outside", "Chance to find a person among all of the population who look alike.", "0 to 1"
    ),
    "risk.individual": Entry(
        "Individual risk", "The same, estimated from how many people each record stands for.", "0 to 1"
    ),
    "risk.above_threshold": Entry("Records above the threshold", "Share of records with a higher risk.", "0 to 1"),
    "risk.linkage": Entry(
        "Linkage", "Share of records found by linking original values to their nearest released ones.", "0 to 1"
    ),
    "risk.linkage_subsets": Entry(
        "Linkage on a few columns", "The same on those quasi-identifiers that tell the most.", "0 to 1"
    ),
    "risk.linkage_untouched": Entry(
        "Linkage with untouched columns", "The same by somebody who also knows what was released as it is.", "0 to 1"
    ),
    "risk.interval": Entry(
        "Interval disclosure", "Share of numbers that lie within a narrow interval around the released one.", "0 to 1"
    ),
    "risk.inference": Entry(
        "Attribute inference", "Share of wrong guesses of a confidential value that the release sets right.", "0 to 1"
    ),
    "risk.minimality": Entry(
        "Minimality attack",
        "Highest probability of a confidential value of a person to someone who knows the method, and by class alone.",
        "0 to 1",
    ),
    "risk.uniques": Entry(
        "Uniques", "Records alone in their class, and people estimated to be alone in the population.", "0 to N"
    ),
    "loss.overall": Entry(
        "Information lost",
        "Mean over the columns of what each has lost: variation of numbers, distance of categories, values left open.",
        "0 to 1",
    ),
    "loss.by_column": Entry("Information lost by column", "What each column has lost.", "0 to 1"),
    "loss.changed": Entry("Changed cells", "Share of the cells of each column that are not as they were.", "0 to 1"),
    "loss.sse": Entry("Squared error", "Sum of the squared gaps between original and released numbers.", "from 0 up"),
    "loss.sse_by_column": Entry("Squared error by column", "What each column adds to the former.", "from 0 up"),
    "loss.sst": Entry(
        "Total variation", "The squared error of releasing nothing but the means: the scale of the former.", "from 0 up"
    ),
    "loss.sse_ratio": Entry(
        "Lost variation", "Share of the variation of the numbers that is lost inside the classes.", "0 to 1"
    ),
    "loss.normalized_sse": Entry(
        "Normalized squared error", "Mean squared gap of a cell in units of its column's range.", "0 to 1"
    ),
    "loss.il1": Entry("Change of values", "Mean relative change of a value that is not 0.", "from 0 up"),
    "loss.il2": Entry("Change of means", "Mean relative change of a column's mean.", "from 0 up"),
    "loss.il3": Entry("Change of variances", "Mean relative change of a column's variance.", "from 0 up"),
    "loss.il4": Entry("Change of covariances", "Mean relative change of the covariance of two columns.", "from 0 up"),
    "loss.il5": Entry("Change of correlations", "Mean absolute change of the correlation of two columns.", "0 to 2"),
    "loss.il": Entry("Information loss", "100 times the mean of the five changes above.", "from 0 up"),
    "loss.il1s": Entry(
        "Change of values, scaled", "Mean change of a value in units of √2 standard deviations.", "from 0 up"
    ),
    "loss.eigenvalues": Entry(
        "Change of the spectrum", "Shift of the eigenvalues of the covariances over their total.", "0 to 2"
    ),
    "loss.pil": Entry(
        "Probabilistic loss", "How far statistics moved in units of their sampling error, as a probability.", "0 to 1"
    ),
    "loss.propensity_mse": Entry(
        "Propensity error", "How well a model tells released from original records; 0 is not at all.", "0 to 1/4"
    ),
    "loss.prec": Entry("Precision", "How far from the top of their hierarchies values stayed.", "0 to 1", "more"),
    "loss.granularity": Entry("Granularity", "Share of the detail of the values that is kept.", "0 to 1", "more"),
    "loss.granularity_by_column": Entry(
        "Granularity by column", "Share of the detail of each generalized column that is kept.", "0 to 1", "more"
    ),
    "loss.non_uniform_entropy": Entry(
        "Non-uniform entropy", "Share of the information of the original values that is lost.", "0 to 1"
    ),
    "loss.dist": Entry("Distance", "Sum of the steps between original and released categories.", "from 0 up"),
    "loss.ctbil": Entry("Contingency loss", "Sum of the relative changes of contingency table cells.", "from 0 up"),
    "loss.actbil": Entry("Mean contingency loss", "Mean relative change of a contingency table cell.", "from 0 up"),
    "loss.ebil": Entry("Entropy loss", "Bits of uncertainty about the original categories, in all.", "from 0 up"),
    "loss.discernibility": Entry(
        "Discernibility", "Sum over the records of how many each is confused with.", "n to n²"
    ),
    "loss.task": Entry(
        "Task", "Score on the original records of a fit to the original and to the release.", "at most 1", "more"
    ),
    "plausibility.vanished": Entry(
        "Categories gone", "Categories of the original that no released record has: the rare ones.", "from 0 up"
    ),
    "plausibility.outside": Entry(
        "Values outside the range", "Released numbers below the least or above the largest original one.", "0 to n"
    ),
    "plausibility.combinations": Entry(
        "Combinations that are new", "Released records whose two categories never meet in the original.", "0 to n"
    ),
    "loss.average_class_size": Entry("Average class size", "Mean number of records in a class.", "1 to n"),
}
