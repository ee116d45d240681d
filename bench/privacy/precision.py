"""How much of what masking hides is what it says: public texts of a shop's customers and of a travel guide.

Right is a span that the data itself knows as such: a name that Bitext has labelled, a phone or address of a CrossWOZ
venue (whose it is can't be seen in a text: an address is an address). All else counts as wrong, also what nobody minds.
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterator

from bench.evals.data import NoDataError, data_file, json_of
from bench.report import Result, missing
from memory.masking import Masked, mask

GOAL = 99.0


def rows() -> list[Result]:
    """masking_precision on both, and each alone."""
    try:
        bitext, crosswoz = list(_bitext()), list(_crosswoz())
    except NoDataError as error:
        return [missing("masking_precision", "%", str(error))]
    return [
        _row("masking_precision", [*bitext, *crosswoz], f"both; goal at least {GOAL:g}"),
        _row("masking_precision_bitext", bitext, "Bitext, all 8,100 texts; right: a labelled person_name"),
        _row("masking_precision_crosswoz", crosswoz, "CrossWOZ test; right: stands in the venues' data base"),
    ]


def _row(name: str, judged: list[bool], note: str) -> Result:
    value = round(100 * sum(judged) / len(judged), 2) if judged else None
    return Result(name, value, "%", None, None, len(judged), note)


def _bitext() -> Iterator[bool]:
    for split in ("train", "dev", "test"):
        with data_file("bitext-intents", f"{split}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for found in mask(row["utterance"])[1]:
                    start, end = (int(row[name] or -1) for name in ("start_offset", "end_offset"))
                    yield row["entity_type"] == "person_name" and found.start < end and start < found.end


def _crosswoz() -> Iterator[bool]:
    known = "\n".join(_venues())
    with zipfile.ZipFile(data_file("crosswoz", "test.json.zip")) as archive:
        dialogues = json.loads(archive.read(archive.namelist()[0]))
    for dialogue in dialogues.values():
        for message in dialogue["messages"]:
            for found in mask(message["content"])[1]:
                yield _hidden(found) in known


def _hidden(found: Masked) -> str:
    """The part that is hidden, with what stands between it; of a phone all: its middle alone is found anywhere."""
    if found.kind != "address":
        return found.value
    return found.value[found.shown.index("*") : found.shown.rindex("*") + 1]


def _venues() -> Iterator[str]:
    for kind in ("attraction", "hotel", "restaurant"):
        for _, entry in json_of("crosswoz", "database", f"{kind}_db.json"):
            yield from (str(entry.get(name)) for name in ("地址", "电话"))
