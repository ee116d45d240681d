"""Choices that stand for intents, and the honest word where nothing here can do what is asked."""

from __future__ import annotations

from typing import Any

from agents.planning.desk import Desk
from agents.understanding.intents import CLEAR
from schemas.messages import NormalizedMessage

COURTESY = {"greeting", "thanks", "complaint"}
UNASKED = {*COURTESY, "inform", "confirm", "deny", "stop", "out_of_scope", "hurry_up"}  # wish for nothing themselves


def offered(
    desk: Desk,
    template: str,
    slots: dict[str, Any] | None = None,
    guess: str | None = None,
    message: NormalizedMessage | None = None,
    *,
    person: bool = False,
) -> None:
    """Say a template whose numbered choices are intents, and remember what the numbers mean.

    `guess`: the intent that a yes begins; `person`: a yes brings a person.
    """
    kept = slots or {}
    seal = message.seal.model_dump(mode="json") if message is not None and message.seal else None
    params = {**kept, "title": desk.title(desk.pack.by_intent[guess].flow, desk.language) if guess else ""}
    desk.say(template, params)
    desk.offer = [
        {"intent": guess if offer.intent == "guess" else offer.intent, "slots": kept, "seal": seal,
         "guess": offer.intent == "guess" or (person and offer.intent == "human")}
        for offer in desk.pack.templates[template].choices
    ]  # fmt: skip


def named(offer: list[dict[str, Any]], message: NormalizedMessage) -> dict[str, Any] | None:
    """What was offered and is now asked for in words: "refund" after "1001, shall I refund or track it?".

    A guess that is said again is a yes, however unsure it was read; of a list, words that are clear choose.
    """
    if message.secondary_intents:
        return None
    sure = message.confidence >= CLEAR
    meant = next((one for one in offer if one["intent"] == message.intent and (one["guess"] or sure)), None)
    return meant if meant is not None and (meant["guess"] or meant["slots"]) else None


def unserved(desk: Desk, message: NormalizedMessage, asked: list[dict[str, Any]], *, offer: bool) -> None:
    """An honest word about each wish that no flow grants, and a person; `offer`: with a number. Never a guess."""
    known = desk.pack.by_intent.keys() | UNASKED
    for intent in dict.fromkeys(str(one["intent"]) for one in asked if one["intent"] not in known):
        desk.draft.reason(
            "planning.no_flow", f"nothing here does {intent}: a person is offered", message.ref.message_id
        )
        template = f"noflow.{intent}" if f"noflow.{intent}" in desk.pack.templates else "noflow.default"
        if offer:
            offered(desk, template, message=message, person=True)
        else:
            # Its numbers would clash with those of the question that follows.
            desk.say(template, choices=())
