"""The one class of settings: environment variables `INTERLOCK_…`, or a `.env` file beside the data."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "INTERLOCK_"
_ELSEWHERE = frozenset(
    {"CRASH_AT", "FREEZE_AT", "MASTER_KEY"}
)  # read by `streams.runtime.crashpoints`, `memory.sealing`

Port = Annotated[int, Field(ge=0, le=65_535)]


class Settings(BaseSettings):
    """Every setting of Interlock; `INTERLOCK_GATEWAY_PORT=8081` sets `gateway_port`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_file=".env", extra="ignore", frozen=True)

    bootstrap_servers: str = Field(default="", description="Kafka brokers; empty: start one under data_dir")
    data_dir: Path = Field(default=Path(".interlock"), description="all local data: broker, snapshots, keys, outbox")
    kafka_port: Port = Field(default=0, description="port of the embedded broker; 0: a free one, then kept")
    group: str = Field(default="interlock", description="consumer group and prefix of transactional ids")
    partitions: int = Field(default=12, ge=1, description="partitions of every topic; the same for all (promise 1)")
    replication: int = Field(default=1, ge=1, description="replicas of every topic")
    retention_days: int = Field(default=180, ge=1, description="kept on topics that say `default` (X7)")

    session_timeout_ms: int = Field(default=6_000, ge=1_000, description="a silent worker is replaced after this")
    heartbeat_ms: int = Field(default=1_500, ge=100, description="group heartbeat interval")
    poll_limit_ms: int = Field(default=600_000, description="a worker that asks for no records so long is replaced")
    lanes_max: int = Field(default=1_000, ge=1, description="inputs in flight a partition; above, intake pauses")
    commit_max: int = Field(default=256, ge=1, description="decisions in one transaction at most")
    commit_max_bytes: int = Field(default=2_000_000, ge=1, description="bytes in one transaction at most")
    emit_linger_ms: int = Field(default=2, ge=0, description="emits and facts wait so long for a fuller batch")
    revoke_grace_ms: int = Field(default=2_000, ge=0, description="wait for commits handed over, on revoke")
    snapshot_ms: int = Field(default=30_000, ge=100, description="interval of local snapshots (R-002-13)")
    snapshot_alarm_ms: int = Field(default=60_000, ge=1, description="an older snapshot raises the alarm (R-002-16)")
    snapshot_dir: Path | None = Field(default=None, description="folder of snapshots; default data_dir/snapshots")
    snapshot_copies: str = Field(
        default="", description="where snapshots are copied to: s3://bucket/prefix, file:///folder, or off; "
        "default data_dir/snapshot-copies"
    )  # fmt: skip
    snapshot_copies_endpoint: str | None = Field(default=None, description="URL of an object storage not Amazon's")
    checkpoint_ms: int = Field(default=3_000, ge=10, description="state.updates at most this often")
    dlq_limit: int = Field(default=100, ge=1, description="dead letters in a row that pause a topic partition")
    skew_max_ms: int = Field(default=1_000, ge=0, description="above this clock skew timers stop, with an alarm")

    session_gap_ms: int = Field(default=1_800_000, ge=1, description="silence that ends a session (J13)")
    utc_offset_minutes: int = Field(default=480, ge=-840, le=840, description="the customers' clock, east of UTC")
    close_after_ms: int = Field(default=3_600_000, ge=1, description="idle time after which a conversation is closed")
    window_ms: int = Field(default=300_000, ge=1_000, description="health window (R-002-40)")
    window_grace_ms: int = Field(default=10_000, ge=0, description="wait for late events after a window's end")
    delivered_ms: int = Field(default=15_000, ge=1, description="no delivered receipt: displayed, assumed (R-002-30)")
    displayed_ms: int = Field(default=30_000, ge=1, description="not displayed: resend (R-002-31)")
    follow_up_ms: int = Field(default=120_000, ge=1, description="read and silent: one follow-up (R-002-32)")
    send_timeout_ms: int = Field(default=3_000, ge=1, description="hard limit of one try to send a message")
    send_deadline_ms: int = Field(
        default=10_000, ge=1, description="a successor repeats a send, same dedup id, after this"
    )
    tool_timeout_ms: int = Field(default=3_000, ge=1, description="hard limit of one tool call (R-003-21)")
    profile_ms: int = Field(
        default=2_000, ge=0, description="the shop's CRM may take so long for a profile (R-003-22); 0: none is loaded"
    )
    recall_ms: int = Field(
        default=1_000, ge=0, description="a message that cites the past waits so long for facts; 0: none are asked for"
    )
    review_ms: int = Field(default=600_000, ge=1, description="a review expires after this")
    handover_ms: int = Field(
        default=300_000, ge=1, description="people are asked again when nobody took over for so long"
    )

    host: str = Field(default="127.0.0.1", description="address that the HTTP servers listen on")
    gateway_port: Port = Field(default=8080, description="port of the web channel; 0: a free one")
    metrics_port: Port = Field(default=9108, description="port of a worker's metrics; 0: a free one")
    exporter_port: Port = Field(default=9109, description="port of the health exporter's metrics; 0: a free one")
    shop_port: Port = Field(default=8090, description="port of the example shop; 0: a free one")
    gateway_url: str = Field(default="http://127.0.0.1:8080", description="where delivery posts what it sends")
    producer_key_file: Path | None = Field(
        default=None, description="who may publish, decide and deliver at the gateway; none: only on loopback, anybody"
    )
    gateway_key: str = Field(
        default="", pattern=r"^[\x21-\x7e]*$", repr=False, description="the key that workers and commands show it"
    )
    shop_url: str = Field(default="http://127.0.0.1:8090", description="base of the example shop's tools")
    tool_urls: dict[str, str] = Field(
        default={}, description='base URLs that tool files name, beside shop_url: {"crm_url": "https://..."}'
    )
    tool_tokens: dict[str, str] = Field(
        default={}, repr=False, description='bearer tokens that tool files name: {"crm_token": "..."}'
    )
    tool_environment: Literal["prod", "staging"] = Field(
        default="prod", description="which environment of the tool files is used"
    )
    channels: dict[str, dict[str, Any]] = Field(
        default={}, repr=False, description='settings of the channels, by name: {"wechat": {"accounts": {...}}}'
    )
    channel_dirs: tuple[Path, ...] = Field(default=(), description="folders of own channel adapters, one file each")
    packs: Path | None = Field(default=None, description="folder of own flows, tools, templates over the built-in")
    understanding_model: Path | None = Field(
        default=None, description="intent model written by `interlock train`; default the package's own"
    )
    model_url: str = Field(
        default="", description="OpenAI-compatible server, such as http://host:8000/v1; empty: no model is asked"
    )
    model_key: str = Field(default="", repr=False, description="its key, where it asks for one")
    model_name: str = Field(default="", description="the model's name at that server; needed with model_url")
    model_timeout_ms: int = Field(default=3_000, ge=1, description="then the embedded reading goes on alone")
    model_when: Literal["never", "doubtful", "always"] = Field(
        default="doubtful", description="which messages a model reads, too"
    )
    model_below: float = Field(default=0.6, ge=0, le=1, description="doubtful: our own reading is less sure than this")
    model_waiting_max: int = Field(default=8, ge=1, description="messages of one conversation that wait for a model")
    model_memory: bool = Field(
        default=False, description="ask it what to remember of a message of which the rules keep nothing"
    )
    facts_url: str = Field(default="", description="Weaviate, as http://host:8080?grpc=50051; empty: embedded")
    facts_api_key: str = Field(default="", repr=False, description="the fact store's key, where it asks for one")
    embedding_url: str = Field(default="", description="server with /v1/embeddings, for facts; empty: embedded n-grams")
    embedding_model: str = Field(default="", description="the model that the embedding server is asked for")
    embedding_size: int = Field(default=1_024, ge=1, description="numbers in that model's vectors")
    relations_url: str = Field(default="", description="Neo4j, such as bolt://host:7687; empty: embedded, in data_dir")
    relations_user: str = Field(default="", description="who logs in to the relation store")
    relations_password: str = Field(default="", repr=False, description="with which password")
    keeper_port: Port = Field(default=9110, description="port of the keeper's metrics; 0: a free one")
    backups_kept: int = Field(default=20, ge=1, description="full backups of the stores, made before each rollback")
    master_key_file: Path | None = Field(default=None, description="32 bytes, base64; default data_dir/master.key")
    unseal_roles: dict[str, tuple[Literal["investigator", "privacy"], ...]] = Field(
        default={}, description='who may open seals (investigator), forget and hold (privacy): {"li": ["privacy"]}'
    )
    topic_retention_days: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default={}, description='kept on these topics instead of what their manifest says: {"channel.events": 365}'
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        default="INFO", description="what is logged at least"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """What no single field can say: the group's times fit, and no variable is misspelt."""
        if self.heartbeat_ms * 2 > self.session_timeout_ms:
            message = (f"heartbeat_ms {self.heartbeat_ms} is more than half of session_timeout_ms"
                       f" {self.session_timeout_ms}: the group would lose its workers")  # fmt: skip
            raise ValueError(message)
        if self.model_url and not self.model_name:
            message = f"model_url {self.model_url} needs model_name: which model of that server is asked"
            raise ValueError(message)
        if self.model_memory and not self.model_url:
            message = "model_memory needs model_url: which server is asked what to remember"
            raise ValueError(message)
        if self.packs is not None and not self.packs.is_dir():
            message = f"packs {self.packs} is no folder"
            raise ValueError(message)
        for variable in sorted(os.environ):
            name = variable.removeprefix(PREFIX)
            if name != variable and name.lower() not in type(self).model_fields and name not in _ELSEWHERE:
                raise ValueError(_unknown(name, type(self).model_fields))
        return self


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, 1)
    hint = f"did you mean {PREFIX}{near[0].upper()}?" if near else "they are in streams/settings.py"
    return f"{PREFIX}{name} is no setting; {hint}"
