"""Intents on Bitext: with the shipped sentences only, and trained on its train split; a linear SVM beside each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC

from agents.understanding.model.examples import Example
from agents.understanding.model.fit import fit
from bench.evals.data import NoDataError, map_of, read, reader, table_of
from bench.report import Result, missing

ROWS = {"intent_zero_shot": "%", "intent_zero_shot_noisy": "%", "intent_trained": "%"}
FEW = 10  # labelled sentences an intent that the zero-shot baseline is given
NOISY = "Z"  # the tag of rows with misspellings and lost spaces
OUT = "out_of_scope"
Rows = Sequence[Mapping[str, str]]


def rows() -> list[Result]:
    """The three rows, or the reason why there are none."""
    try:
        test, train = table_of("bitext-intents", "test.csv"), table_of("bitext-intents", "train.csv")
    except NoDataError as error:
        return [missing(name, unit, str(error)) for name, unit in ROWS.items()]
    return [*_zero_shot(test, train), _trained(test, train)]


@cache
def names() -> Mapping[str, str]:
    """The data set's intents as ours; those that are not there are out of scope."""
    found: Mapping[str, str] = map_of("bitext")
    return found


def _zero_shot(test: Rows, train: Rows) -> list[Result]:
    ours = reader()
    mapped = [row for row in test if row["intent"] in names()]
    few = _few(train)
    svm = _svm([row["utterance"] for row in few], [names()[row["intent"]] for row in few])
    results = []
    for name, wanted in (("intent_zero_shot", False), ("intent_zero_shot_noisy", True)):
        part = [row for row in mapped if (NOISY in row["tags"]) is wanted]
        texts, right = [row["utterance"] for row in part], [names()[row["intent"]] for row in part]
        value = share([read(ours, text).wishes[0].intent for text in texts], right)
        baseline = share(svm.predict(texts), right)
        note = f"{len(names())} of 27 intents mapped; baseline: linear SVM on TF-IDF, {FEW} sentences an intent"
        results.append(_better(name, value, baseline, len(part), note))
    return results


def _few(train: Rows) -> Rows:
    taken: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for row in train:
        if row["intent"] in names() and len(taken[row["intent"]]) < FEW:
            taken[row["intent"]].append(row)
    return [row for part in taken.values() for row in part]


def _trained(test: Rows, train: Rows) -> Result:
    model = fit([Example("en", row["intent"], row["utterance"]) for row in train])
    texts, right = [row["utterance"] for row in test], [row["intent"] for row in test]
    value = share([model.guesses(text)[0].intent if model.guesses(text) else OUT for text in texts], right)
    learnt = [row["utterance"] for row in train], [row["intent"] for row in train]
    svm, letters = _svm(*learnt), share(_svm(*learnt, letters=True).predict(texts), right)
    note = ("27 intents, fitted by the code of `interlock train`; baseline: linear SVM on TF-IDF of words, same rows"
            f" (of words and letters: {letters:.2f})")  # fmt: skip
    return _better("intent_trained", value, share(svm.predict(texts), right), len(test), note)


def _svm(texts: Sequence[str], labels: Sequence[str], *, letters: bool = False) -> LinearSVC:
    parts = [TfidfVectorizer(ngram_range=(1, 2))]
    if letters:
        parts.append(TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5)))
    return make_pipeline(make_union(*parts), LinearSVC(random_state=0)).fit(texts, labels)


def share(found: Sequence[str], right: Sequence[str]) -> float:
    """How many of a hundred are right."""
    return 100 * sum(one == other for one, other in zip(found, right, strict=True)) / len(right)


def _better(name: str, value: float, baseline: float, count: int, note: str) -> Result:
    # not rounded to three digits: the goal has four
    return Result(name, round(value, 2), "%", round(baseline, 2), round(value / baseline, 4), count, note)
