"""Who may push: the signature, the time it was made, and what it covers. Then the XML is read, without entities."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from streams.channels.port import Push, Reply, SecurityError, Taken
from streams.channels.wechat.account import Account, WeChatSettings
from streams.channels.wechat.crypto import decrypt, signed
from streams.channels.wechat.messages import Fields, read_fields
from streams.gateway.reading import RefusedError

REMEMBERED = 50_000  # signed pushes inside the window of time: 160 a second for five minutes
ANSWER = Reply(b"success")  # the manual's word for "taken, and no reply in this answer"
MAX_FIELDS = 64


class Doorkeeper:
    """The two doors of the accounts."""

    def __init__(self, settings: WeChatSettings) -> None:
        self._settings = settings
        self._seen: OrderedDict[tuple[str, str], bytes] = OrderedDict()  # by shop and signature

    def handshake(self, push: Push) -> Taken:
        """GET: WeChat asks whether this server knows the token; the echo proves it."""
        self._checked(push, self._account(push))
        return Taken(reply=Reply(_query(push, "echostr").encode()))

    def push(self, push: Push) -> Taken:
        """POST: one message or event of one follower."""
        account = self._account(push)
        self._checked(push, account)
        fields = read_xml(push.body)
        if account.aes_key is not None:
            fields = self._opened(push, account, account.aes_key, fields)
        self._once(push)
        events, receipts = read_fields(fields, push.path["shop"])
        return Taken(events, receipts, ANSWER)

    def _account(self, push: Push) -> Account:
        found = self._settings.accounts.get(push.path.get("shop", ""))
        if found is None:
            raise RefusedError(404, "no_such_account", "INTERLOCK_CHANNELS has no WeChat account of this shop", "shop")
        return found

    def _checked(self, push: Push, account: Account) -> None:
        claimed, stamp, nonce = (_query(push, name) for name in ("signature", "timestamp", "nonce"))
        if not signed(claimed, account.token, stamp, nonce):
            raise SecurityError(403, "signature", "this is not the signature of the account's token", "signature")
        # a signature does not cover the body in plain mode: one that somebody saw must not work for ever
        if not stamp.isdecimal() or abs(int(stamp[:15]) - push.now_ms // 1000) > self._settings.replay_seconds:
            message = f"expected seconds since 1970, at most {self._settings.replay_seconds} away from now"
            raise SecurityError(403, "replay", message, "timestamp")

    def _opened(self, push: Push, account: Account, key: str, fields: Fields) -> Fields:
        encrypted = fields.get("Encrypt", "")
        if not encrypted:
            raise SecurityError(403, "downgrade", "this account takes encrypted pushes only", "Encrypt")
        stamp, nonce = _query(push, "timestamp"), _query(push, "nonce")
        if not signed(_query(push, "msg_signature"), account.token, stamp, nonce, encrypted):
            raise SecurityError(403, "signature", "this is not the signature of the encrypted text", "msg_signature")
        try:
            return read_xml(decrypt(encrypted, key, account.app_id))
        except ValueError:
            raise RefusedError(400, "not_encrypted", "can't be decrypted for this account", "Encrypt") from None

    def _once(self, push: Push) -> None:
        """The same signed request again is a repeat, which its ids settle; with another body it is a forgery."""
        # by the signature, not by what it signs: its parts are joined without a sign between them, so that a zero moved
        # from the nonce to the time gives another pair that it fits as well
        key = (push.path["shop"], push.query["signature"])
        digest = hashlib.sha256(push.body).digest()
        if self._seen.setdefault(key, digest) != digest:
            raise SecurityError(403, "replay", "this signature came with another body before", "nonce")
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)


def read_xml(body: bytes) -> Fields:
    """The fields of `<xml>`. A document type is refused before anything of it is read (B21). Raises RefusedError."""
    try:
        root = fromstring(body, forbid_dtd=True)
    except DefusedXmlException:
        raise SecurityError(400, "entity", "a document type and entities are not taken", "body") from None
    except (ParseError, ValueError, LookupError):  # the last two: an encoding that the parser does not know
        raise RefusedError(400, "not_xml", "not XML, or cut off", "body") from None
    names = [one.tag for one in root]
    if root.tag != "xml" or len(names) > MAX_FIELDS or len(set(names)) != len(names):
        message = f"expected <xml> with at most {MAX_FIELDS} fields, each once"
        raise RefusedError(422, "wrong_value", message, "xml")
    return {one.tag: one.text or "" for one in root}


def _query(push: Push, name: str) -> str:
    found = push.query.get(name, "")
    if not found or len(found) > 256:
        raise RefusedError(400, "missing_field", "missing or too long in the query", name)
    return found
