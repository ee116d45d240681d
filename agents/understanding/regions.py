"""Countries and cities that something is sent to or ordered from: by name, or capitalised where one is expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import islice

import yaml

from agents.understanding.lexicon import FLAGS
from agents.understanding.money import MOST, Hit

_WAY = (
    r"\b(?:deliver(?:y|ies|ing)?|ship(?:s|ping|ments?|ped)?|send|order(?:s|ing|ed)?|purchase|buy|sell|available|post"
    r"|liv(?:e|ing))(?: [a-z]{1,10}){0,2} (?:to|from|in)|\b[a-z]{0,4}(?:deliver|ship)[a-z]{0,7} to"
)
_EXPECTED = re.compile(
    rf"(?:{_WAY}) (?:the )?(?P<place>(?-i:[A-Z])[A-Za-z\u00c0-\u024f]{{2,20}}(?: (?-i:[A-Z])[a-z]{{2,20}})?)"
    r"(?![A-Za-z0-9]| ?(?:street|st|road|rd|avenue|ave|lane|drive|address)\b)",
    FLAGS,
)


@cache
def _known() -> tuple[dict[str, tuple[str, str]], re.Pattern[str], re.Pattern[str]]:
    """Every name in lower case with its field and usual name, and a pattern of all of them by script."""
    text = (files("agents.understanding") / "lexicons" / "regions.yaml").read_text("utf-8")
    known: dict[str, tuple[str, str]] = {}
    for section, field in (("countries", "country"), ("states", "state"), ("cities", "city")):
        for entry in yaml.safe_load(text)[section]:
            names = [name.replace("_", " ") for name in entry.split()]
            known |= {name.lower(): (field, names[0]) for name in names}
    longest = sorted(known, key=len, reverse=True)
    english = "|".join(re.escape(name) for name in longest if name.isascii())
    chinese = "|".join(name for name in longest if not name.isascii())
    return known, re.compile(rf"(?<![A-Za-z0-9])(?:{english})(?![A-Za-z0-9])", FLAGS), re.compile(chinese)


def regions(text: str) -> Iterator[Hit]:
    """Countries and cities in the text; a capitalised word that is not known is a city where one is expected."""
    known, english, chinese = _known()
    taken: set[int] = set()
    for pattern in (english,) if text.isascii() else (english, chinese):
        for match in islice(pattern.finditer(text), MOST):
            field, usual = known[match[0].lower()]
            taken.update(range(*match.span()))
            yield field, usual, *match.span()
    for match in islice(_EXPECTED.finditer(text), MOST):
        if match.start("place") not in taken:
            yield "city", match["place"], *match.span("place")
