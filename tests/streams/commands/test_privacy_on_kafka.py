"""The privacy commands on a real broker that holds a customer: what a user types, and what is left to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson
import pytest
from typer.testing import CliRunner, Result

from memory.key_file import open_key_store
from memory.sealing import HeldError
from streams.cli import build
from streams.commands import forget
from streams.privacy.rights import NotAllowedError
from streams.privacy.unseal import NothingSealedError
from streams.reader import KafkaSource
from streams.replay.rebuild import read_history
from streams.runtime.ports import Outgoing
from streams.runtime.virtual import run_virtual
from streams.scenario.local import local_world
from streams.settings import Settings
from streams.writer import write_all
from tests.brokers import cluster
from tests.promises.stand import Stand, isolated
from tests.streams.privacy.office import ADDRESS, NAME, PHONE, told

pytestmark = pytest.mark.kafka
Run = Callable[..., Result]
CUSTOMER = "demo/web/c-zh-address"
ROLES = '{"eye": ["investigator"], "law": ["privacy"]}'
WHY = ("--reason", "case 7")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A cluster of this module's own with one customer's records, and the keys of their seals."""
    with cluster(tmp_path_factory.mktemp("privacy")) as chosen:
        write_all(chosen, run_virtual(_story(chosen)))
        yield chosen


async def _story(settings: Settings) -> list[Outgoing]:
    keys = open_key_store(settings.data_dir)
    async with local_world(isolated(partitions=settings.partitions), keys=keys) as world:
        stand = Stand(world)
        await told(stand)
        await stand.pass_ms(10_000)
        records = [one for one in stand.everything() if one.headers]
    keys.close()
    return [Outgoing(one.topic, one.partition, one.key, one.value, one.headers) for one in records]


@pytest.fixture
def run(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line as a user does."""
    monkeypatch.setattr(forget, "WAIT_S", 0.5)  # no worker runs here
    env = {"INTERLOCK_BOOTSTRAP_SERVERS": settings.bootstrap_servers, "INTERLOCK_DATA_DIR": str(settings.data_dir),
           "INTERLOCK_UNSEAL_ROLES": ROLES}  # fmt: skip

    def call(*arguments: str, status: int = 0) -> Result:
        result = CliRunner().invoke(build(), list(arguments), env=env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert status == result.exit_code, result.output
        return result

    return call


def test_from_a_look_to_oblivion(run: Run, settings: Settings) -> None:
    """Unsealed with a role, held, refused, released, forgotten and proved on the broker's topics (promise 9, X1)."""
    with pytest.raises(NotAllowedError):
        run("unseal", CUSTOMER, *WHY, "--by", "law")
    shown = run("unseal", CUSTOMER, *WHY, "--by", "eye", "--field", "address", "--field", "phone", "--json").output
    assert {PHONE, f"上海市浦东新区{ADDRESS}"} == {orjson.loads(line)["clear"] for line in shown.splitlines()}
    assert NAME in run("unseal", CUSTOMER, *WHY, "--by", "eye").output
    run("hold", CUSTOMER, *WHY, "--by", "law")
    with pytest.raises(HeldError, match="case 7"):
        run("forget", CUSTOMER, *WHY, "--by", "law", "--yes")
    run("hold", CUSTOMER, *WHY, "--by", "law", "--release")

    dry = run("forget", CUSTOMER, *WHY, "--by", "law").output
    assert "nothing was done" in dry
    done = run("forget", CUSTOMER, *WHY, "--by", "law", "--yes", "--drop-open-work").output
    assert "none is readable in any topic, snapshot or store, and no seal opens" in done
    with pytest.raises(NothingSealedError):
        run("unseal", CUSTOMER, *WHY, "--by", "eye")
    with KafkaSource(settings) as source:
        assert read_history(source, CUSTOMER).newest > 0, "the history stays, masked"
        place = [("system.events", number, 0) for number in range(settings.partitions)]
        kinds = [orjson.loads(one.value or b"")["kind"] for one in source.read(place)]
    assert ["unsealed", "unsealed", "held", "hold_released", "forgotten"] == kinds


def test_retention_is_compared_with_the_broker(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the manifests ask for is what the broker has; a changed setting shows as a difference (X7)."""
    assert "plans: 180 days" in run("retention", "check").output
    monkeypatch.setenv("INTERLOCK_TOPIC_RETENTION_DAYS", '{"plans": 30}')
    shorter = run("retention", "check", status=1).output
    assert "plans: 30 days, on the broker 180 days; an audit needs 180 days" in shorter
