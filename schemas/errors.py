"""The root of all errors, and the one that ends in a dead letter. Neither ever carries a record's values."""

from __future__ import annotations


class InterlockError(Exception):
    """Every error that Interlock raises by itself; its text says what is wrong and what to do."""


class ContractError(InterlockError):
    """Our own side broke a contract (an unknown topic, a model of another topic): a bug, which stops."""


class BadRecordError(InterlockError):
    """A record that can't be read: it becomes a dead letter, and is never retried (promise 10).

    `code` is one of `CODES`, `field` a path such as `body.message_id` or `header ce_id` ("" for the whole
    record). `reason` is for people: field, expectation, and the type and length that was found. The value
    itself is never in it, because it may be sensitive.
    """

    def __init__(self, reason: str, *, code: str, topic: str = "", field: str = "") -> None:
        where = " ".join(part for part in (topic, field) if part)
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason, self.code, self.topic, self.field = reason, code, topic, field


CODES = {
    "bad_key": "no usable key, or not on the partition that its key belongs to",
    "empty": "no value where the topic asks for one",
    "too_large": "more bytes than the topic takes",
    "too_deep": "nested deeper than the topic takes",
    "not_utf8": "not UTF-8, or half of a surrogate pair",
    "not_json": "not JSON, or JSON with NaN or Infinity",
    "repeated_key": "a key twice in one object: two readers could see two values",
    "number_range": "an integer beyond 64 bits, or a number beyond a double",
    "unknown_topic": "no such topic",
    "unknown_version": "a version that this reader does not have",
    "unknown_field": "a field that the version does not have",
    "missing_field": "a required field is not there",
    "wrong_type": "another JSON type than the schema's",
    "wrong_time": "a time in another unit than milliseconds, or out of range",
    "wrong_value": "the right type, and a value that the schema does not take",
    "missing_header": "a required header is not there",
    "bad_seal": "a seal that was altered, is another conversation's, or holds something else than the value's own body",
    "wrong_header": "a header that is not as CloudEvents in Kafka's binary mode asks",
}
