"""The same turn on LangGraph with its SQLite checkpointer, behind a confluent-kafka consumer, in one process.

usage: python -m bench.langgraph_turn STUB_PORT   (settings from the environment, as a worker has them)

One graph run for each event (perceive with the same rules, plan, one tool call over HTTP, reply, one send over
HTTP) and one for each receipt, so that every record changes the checkpointed state once, as in the product.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any, TypedDict

import httpx
import orjson
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from agents.understanding.embedded import embedded
from agents.understanding.port import Context
from bench.turns import LANGGRAPH
from streams.runtime.client import consumer_config, producer_config
from streams.settings import Settings


class Turn(TypedDict, total=False):
    """The graph's state."""

    text: str
    message_id: str
    intent: str
    order_id: str
    tool: dict[str, Any]
    reply: str
    receipt: dict[str, Any]
    messages: list[dict[str, Any]]
    delivery: dict[str, str]


def graph(stub: int, checkpointer: SqliteSaver) -> Any:
    """Perceive, plan, call, reply for a text; note the state for a receipt."""
    reading, client, url = embedded(), httpx.Client(), f"http://127.0.0.1:{stub}"

    def perceive(turn: Turn) -> Turn:
        read = reading.read(turn["text"], Context())
        return {"intent": read.wishes[0].intent, "order_id": _order(turn["text"])}

    def plan(turn: Turn) -> Turn:
        return {"tool": {"name": "get_logistics", "order_id": turn["order_id"]}}

    def call(turn: Turn) -> Turn:
        answer = client.get(f"{url}/orders/{turn['order_id']}/logistics", params={"customer_id": "c"})
        return {"tool": {**turn["tool"], "result": answer.json()}}

    def reply(turn: Turn) -> Turn:
        event = turn["tool"]["result"]["events"][-1]
        text = f"Order {turn['order_id']}: {event['text_en']}"
        client.post(f"{url}/v1/outbox", json={"message_id": turn["message_id"], "text": text})
        heard = [*turn.get("messages", []), {"text": turn["text"], "reply": text}]
        return {
            "reply": text,
            "messages": heard[-20:],
            "delivery": {**turn.get("delivery", {}), turn["message_id"]: "sent"},
        }

    def note(turn: Turn) -> Turn:
        receipt = turn["receipt"]
        return {"delivery": {**turn.get("delivery", {}), receipt["message_id"]: receipt["state"]}, "receipt": {}}

    build: Any = StateGraph(Turn)
    for node in (perceive, plan, call, reply, note):
        build.add_node(node.__name__, node)
    build.add_conditional_edges(START, lambda turn: "note" if turn.get("receipt") else "perceive")
    for before, after in (("perceive", "plan"), ("plan", "call"), ("call", "reply"), ("reply", END), ("note", END)):
        build.add_edge(before, after)
    return build.compile(checkpointer=checkpointer)


def _order(text: str) -> str:
    return next(word.strip("?") for word in text.split() if word.startswith("OD"))


def main() -> None:
    """Serve the bench's topics until killed."""
    settings = Settings()
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    topics = (LANGGRAPH.events, LANGGRAPH.replies, LANGGRAPH.receipts, LANGGRAPH.states)
    for done in admin.create_topics([NewTopic(topic, settings.partitions, 1, config={
            "message.timestamp.type": "LogAppendTime"}) for topic in topics]).values():  # fmt: skip
        done.result(30)
    consumer = Consumer(consumer_config(settings, "bench-langgraph"))
    consumer.subscribe([LANGGRAPH.events, LANGGRAPH.receipts])
    producer = Producer(producer_config(settings, linger_ms=1))
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "checkpoints.db", check_same_thread=False)
        app = graph(int(sys.argv[1]), SqliteSaver(connection))
        while True:
            for message in consumer.consume(100, 0.05):
                if message.error() is None:
                    _handle(app, message, producer)
            consumer.commit(asynchronous=True) if consumer.assignment() else None
            producer.poll(0)


def _handle(app: Any, message: Message, producer: Producer) -> None:
    key, value = message.key() or b"", orjson.loads(message.value() or b"{}")
    config = {"configurable": {"thread_id": key.decode()}}
    partition = message.partition() or 0
    if message.topic() == LANGGRAPH.events:
        message_id = f"r-{value['event_id']}"
        turn = app.invoke({"text": value["body"]["text"], "message_id": message_id, "receipt": {}}, config)
        body = orjson.dumps({"message_id": message_id, "text": turn["reply"]})
        producer.produce(LANGGRAPH.replies, body, key, partition=partition)
    else:
        app.invoke({"receipt": value}, config)
        body = orjson.dumps({"message_id": value["message_id"], "state": value["state"]})
        producer.produce(LANGGRAPH.states, body, key, partition=partition)


if __name__ == "__main__":
    main()
