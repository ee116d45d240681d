"""Fitting the intent model: linear support vectors on rarity-weighted n-grams; the same data, the same model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from agents.understanding.model.calibrate import Floats, Ints, best_temperature, calibration_error, log_shares
from agents.understanding.model.classify import IntentModel, Stamp
from agents.understanding.model.examples import Example, ExampleError, data_hash
from agents.understanding.model.features import damped, grams

Grams = Counter[str]

FOLDS = 5
MANY = 4_000  # sentences, above which one fold is held out instead of each in turn: the figures are steady enough
MIN_EXAMPLES = FOLDS  # of an intent: one for each fold
_SEEN = 2  # sentences that a gram must stand in
_LOOSE = 3.0  # inverse of the pull towards zero; 0.3 and 1 read a little worse on sentences of no test set
_STEPS = 32_767  # of a weight: what two bytes hold


@dataclass(frozen=True, slots=True)
class _Machine:
    """Weights (a row a gram, a column an intent) and what they are weights of."""

    intents: tuple[str, ...]
    vocabulary: Mapping[str, int]
    rarity: Floats
    unknown: float
    weights: Floats
    bias: Floats

    def powers(self, documents: Sequence[Grams]) -> Floats:
        scores: Floats = _matrix(documents, self.vocabulary, self.rarity, self.unknown) @ self.weights + self.bias
        return scores


def fit(examples: Sequence[Example]) -> IntentModel:
    """The model of labelled sentences, stamped. Raises ExampleError where an intent has too few of them."""
    ordered = sorted(examples)
    labels = [example.intent for example in ordered]
    _check(Counter(labels))
    documents = [grams(example.text) for example in ordered]
    powers, right = _held_out(documents, labels)
    temperature = best_temperature(powers, right)
    found = _machine(documents, labels)
    stamp = Stamp(data_hash(ordered), len(ordered), tuple(sorted({example.language for example in ordered})),
                  f"scikit-learn {sklearn.__version__}", _metrics(powers, right, temperature))  # fmt: skip
    scale = np.maximum(np.abs(found.weights).max(axis=0), 1e-9) / _STEPS
    weights = np.rint(found.weights / scale).astype(np.int16)
    return IntentModel(
        found.intents, found.vocabulary, found.rarity, weights, scale, found.bias, temperature, found.unknown, stamp
    )


def _check(counts: Mapping[str, int]) -> None:
    few = sorted(intent for intent, count in counts.items() if count < MIN_EXAMPLES)
    if few:
        message = f"intent: {few[0]!r} has {counts[few[0]]} examples, and needs at least {MIN_EXAMPLES}"
        raise ExampleError(message)
    if len(counts) < 2:
        message = f"intent: there is only {', '.join(counts) or 'nothing'}, and at least two are needed"
        raise ExampleError(message)


def _held_out(documents: Sequence[Grams], labels: Sequence[str]) -> tuple[Floats, Ints]:
    """Scores of sentences by models that have not seen them, and the right columns."""
    powers, right = [], []
    for train, test in _folds(labels):
        found = _machine([documents[row] for row in train], [labels[row] for row in train])
        powers.append(found.powers([documents[row] for row in test]))
        right += [found.intents.index(labels[row]) for row in test]
    return np.concatenate(powers), np.array(right)


def _folds(labels: Sequence[str]) -> Iterator[tuple[list[int], list[int]]]:
    split = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(labels, labels)
    for number, (train, test) in enumerate(split):
        if number and len(labels) > MANY:
            return
        yield train.tolist(), test.tolist()


def _machine(documents: Sequence[Grams], labels: Sequence[str]) -> _Machine:
    seen = Counter(gram for document in documents for gram in document)
    vocabulary = {gram: row for row, gram in enumerate(sorted(gram for gram, count in seen.items() if count >= _SEEN))}
    rarity = np.array([math.log((1 + len(documents)) / (1 + seen[gram])) + 1 for gram in vocabulary])
    rarity = rarity.astype(np.float32).astype(np.float64)  # as the file gives it back
    unknown = round(math.log((1 + len(documents)) / _SEEN) + 1, 4)  # the rarity of a gram that one sentence holds
    matrix = _matrix(documents, vocabulary, rarity, unknown)
    machine = LinearSVC(C=_LOOSE, random_state=0).fit(matrix, labels)
    weights, bias = machine.coef_.T, machine.intercept_
    if len(machine.classes_) == 2:  # scikit-learn then keeps the second column's lead only
        weights, bias = np.hstack([-weights, weights]) / 2, np.array([-bias[0], bias[0]]) / 2
    return _Machine(tuple(map(str, machine.classes_)), vocabulary, rarity, unknown, weights, bias)


def _matrix(documents: Sequence[Grams], vocabulary: Mapping[str, int], rarity: Floats, unknown: float) -> sp.csr_matrix:
    values: list[float] = []
    columns: list[int] = []
    ends = [0]
    for document in documents:
        known: list[tuple[int, float]] = []
        squares = 0.0
        for gram, count in document.items():
            row = vocabulary.get(gram)
            value = damped(count) * (unknown if row is None else float(rarity[row]))
            squares += value * value
            if row is not None:
                known.append((row, value))
        length = math.sqrt(squares) or 1.0
        columns += [row for row, _ in known]
        values += [value / length for _, value in known]
        ends.append(len(values))
    return sp.csr_matrix((values, columns, ends), shape=(len(documents), len(vocabulary)))


def _metrics(powers: Floats, right: Ints, temperature: float) -> dict[str, float]:
    shares = np.exp(log_shares(powers / temperature))
    correct = shares.argmax(axis=1) == right
    return {
        "held_out": float(len(right)),
        "held_out_accuracy": round(float(correct.mean()), 4),
        "held_out_calibration_error": round(calibration_error(shares.max(axis=1).tolist(), correct.tolist()), 4),
    }
