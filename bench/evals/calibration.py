"""Whether a confidence is what it says: Bitext's test rows, those of no intent of ours as out of scope."""

from __future__ import annotations

from agents.understanding.model.calibrate import BINS, answered_at, calibration_error
from bench.evals.data import NoDataError, read, reader, table_of
from bench.evals.intents import OUT, names
from bench.report import Result, missing

ROWS = {"calibration_error": "", "answered_at_95": "%"}
PRECISION = 0.95
_NOTHING = frozenset({"inform", OUT})  # a reading that claims no wish


def rows() -> list[Result]:
    """Both rows, or the reason why there are none."""
    try:
        test = table_of("bitext-intents", "test.csv")
    except NoDataError as error:
        return [missing(name, unit, str(error)) for name, unit in ROWS.items()]
    ours = reader()
    sure: list[float] = []
    right: list[bool] = []
    for row in test:
        wish = read(ours, row["utterance"]).wishes[0]
        sure.append(wish.confidence)
        right.append((OUT if wish.intent in _NOTHING else wish.intent) == names().get(row["intent"], OUT))
    out = sum(row["intent"] not in names() for row in test)
    share, least = answered_at(sure, right, PRECISION)
    told = f"{BINS} bins; {len(test) - out} mapped rows and {out} out of scope; accuracy {sum(right) / len(right):.3f}"
    return [
        Result("calibration_error", round(calibration_error(sure, right), 4), "", n=len(test), note=told),
        Result("answered_at_95", round(100 * share, 1), "%", n=len(test),
               note=f"largest share answered at 95 % precision, confidence from {least:.2f}"),
    ]  # fmt: skip
