"""`interlock train`: a user's own data become a model file that the product then reads with."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agents.understanding.embedded import embedded
from agents.understanding.model.examples import ExampleError
from agents.understanding.model.file import ModelFileError, load
from agents.understanding.port import Context
from streams.announce import model_loaded
from streams.cli import build
from streams.commands import CommandError
from streams.settings import Settings

NOW = 1_767_578_400_000
PLACES = ("in Rome", "in Oslo", "today", "here", "please")
SENTENCES = {"shop_finder": "where is the nearest shop", "seat_question": "is my seat reserved"}
ROWS = [f"{text} {place},{intent}" for intent, text in SENTENCES.items() for place in PLACES]


def _train(*arguments: str) -> Result:
    return CliRunner().invoke(build(), ["train", *arguments])


@pytest.fixture(name="own")
def _own(tmp_path: Path) -> Path:
    data, model = tmp_path / "own.csv", tmp_path / "own.model"
    data.write_text("text,intent\n" + "\n".join(ROWS), "utf-8")
    done = _train(str(data), "--out", str(model))
    assert 0 == done.exit_code, done.output
    assert "2 intents, 10 examples" in done.stdout
    return model


def test_own_data_make_a_model_with_its_stamp(own: Path) -> None:
    """The file carries the data's hash, the library and the accuracy on what was held out."""
    stamp = load(own).stamp

    assert (64, 10) == (len(stamp.data_hash), stamp.examples)
    assert stamp.library.startswith("scikit-learn ")
    assert {"held_out", "held_out_accuracy", "held_out_calibration_error"} == stamp.metrics.keys()


def test_the_setting_loads_it(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With understanding_model set, the product knows the user's own intents."""
    monkeypatch.setenv("INTERLOCK_UNDERSTANDING_MODEL", str(own))
    reader = embedded(Settings().understanding_model)

    assert "shop_finder" == reader.read("where is the nearest shop in Bern", Context()).wishes[0].intent


def test_loading_it_is_told_to_the_register(own: Path) -> None:
    """A worker's start is an event that names the version it reads with (R-002-48)."""
    version = load(own).stamp.version
    told, default = (model_loaded(Settings(understanding_model=path), NOW).value or b"" for path in (own, None))

    assert version.encode() in told
    assert version.encode() not in default
    assert b"model_loaded" in told


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("text,intent\nhi,\n", "line 2: intent"),
        ("text\nhi\n", "line 1: intent"),
        ("text,intent\nhi,a\n", "intent: 'a'"),
    ],
)
def test_wrong_data_name_file_line_and_field(tmp_path: Path, table: str, said: str) -> None:
    """An error of the data names the file and what to change, and nothing is written (habit 3)."""
    data = tmp_path / "own.csv"
    data.write_text(table, "utf-8")
    done = _train(str(data), "--out", str(tmp_path / "out.model"))

    assert isinstance(done.exception, CommandError | ExampleError)
    assert str(done.exception).startswith(f"{data}: {said}")
    assert not (tmp_path / "out.model").exists()


def test_other_bytes_name_their_line(tmp_path: Path) -> None:
    """A table in another encoding is refused at its line."""
    data = tmp_path / "own.csv"
    data.write_bytes("text,intent\nhi,a\n退款,b\n".encode("gb18030"))

    assert "line 3: is no UTF-8" in str(_train(str(data)).exception)


def test_a_broken_model_is_refused_at_the_start(tmp_path: Path) -> None:
    """A worker that is given a wrong file does not start with another model in its place."""
    wrong = tmp_path / "wrong.model"
    wrong.write_bytes(b"nothing")

    with pytest.raises(ModelFileError, match=r"wrong.model"):
        model_loaded(Settings(understanding_model=wrong), NOW)
