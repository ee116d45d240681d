"""The demo's own scenario files, played in memory on virtual time: the files that `make demo` plays over HTTP."""

from __future__ import annotations

import pytest

from streams.demo.run import SCENARIOS, SHORT
from streams.demo.shop.seed import customers
from streams.scenario.format import Scenario, load, load_folder
from streams.scenario.local import play_in_memory
from streams.scenario.player import Played
from streams.settings import Settings

FILES = sorted(SCENARIOS.glob("*.yaml"))
SETTINGS = Settings().model_copy(update=SHORT)


@pytest.fixture(scope="module")
def played() -> dict[str, Played]:
    """All of them at once in one pipeline, as the demo plays them."""
    return {one.scenario.name: one for one in play_in_memory(load_folder(SCENARIOS), SETTINGS)}


@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_scripted_customer_comes_out_as_expected(name: str, played: dict[str, Played]) -> None:
    """Refunds, address changes, logistics, recalls, repeats and lost answers end as their files say (case F01, H07)."""
    assert [] == played[name].faults


def test_customer_alone_comes_out_as_among_others(played: dict[str, Played]) -> None:
    """Customers at once do not disturb each other: alone, the same is said and done (promise 1)."""
    alone = play_in_memory([load(SCENARIOS / "en-lost-response.yaml")], SETTINGS)[0]
    among = played["en-lost-response"]

    assert alone.seen.templates == among.seen.templates
    assert [row["order_id"] for row in alone.seen.effects] == [row["order_id"] for row in among.seen.effects]


def test_playing_again_gives_the_same_records() -> None:
    """The same script on the same virtual clock gives the same topics, record by record (promise 5)."""
    scenario = load(SCENARIOS / "zh-refund-with-order.yaml")

    first, second = (play_in_memory([scenario], SETTINGS)[0].seen.records for _ in range(2))

    assert first["delivery.states"] == second["delivery.states"]
    assert first["plans"] == second["plans"]


def _scenarios() -> list[Scenario]:
    return load_folder(SCENARIOS)


def test_scenarios_are_many_and_half_of_them_chinese() -> None:
    """At least twelve conversations, about half in each language, each of a customer that the shop knows."""
    scenarios = _scenarios()
    chinese = sum(scenario.language == "zh" for scenario in scenarios)

    assert len(scenarios) >= 12
    assert abs(2 * chinese - len(scenarios)) <= 1
    assert {one.sender for one in scenarios} <= {customer.customer_id for customer in customers()}


def test_expectation_that_does_not_hold_is_a_fault() -> None:
    """A scenario that expects another outcome than what came is told so: the comparison can fail."""
    scenario = load(SCENARIOS / "en-logistics.yaml")
    wrong = scenario.model_copy(update={"expect": scenario.expect.model_copy(update={"outcome": "refunded"})})

    assert ["outcome answered, expected refunded"] == play_in_memory([wrong], SETTINGS)[0].faults
