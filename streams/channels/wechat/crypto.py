"""The signature and the encryption of WeChat's pushes, as its manual describes them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

_BLOCK_BITS = 256  # the manual pads to 32 bytes, not to AES's 16
_RANDOM, _LENGTH = 16, 4  # bytes before the text: noise, then the text's length


def signature(*parts: str) -> str:
    """Hex SHA-1 of the sorted parts: token, timestamp, nonce and, in AES mode, the encrypted text."""
    return hashlib.sha1("".join(sorted(parts)).encode(errors="replace")).hexdigest()  # noqa: S324 (WeChat's choice)


def signed(claimed: str, *parts: str) -> bool:
    """Whether the signature is right; takes as long for a wrong one."""
    return hmac.compare_digest(claimed.encode(errors="replace"), signature(*parts).encode())


def decrypt(encrypted: str, aes_key: str, app_id: str) -> bytes:
    """The text of an encrypted push to this account. Raises ValueError for anything else."""
    key = base64.b64decode(aes_key + "=")
    try:
        sealed = base64.b64decode(encrypted, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    reader = Cipher(algorithms.AES(key), modes.CBC(key[:16])).decryptor()
    unpadder = PKCS7(_BLOCK_BITS).unpadder()
    plain = unpadder.update(reader.update(sealed) + reader.finalize()) + unpadder.finalize()
    length = int.from_bytes(plain[_RANDOM : _RANDOM + _LENGTH], "big")
    text, owner = plain[_RANDOM + _LENGTH :][:length], plain[_RANDOM + _LENGTH + length :]
    if len(text) != length or not hmac.compare_digest(owner, app_id.encode()):
        message = "encrypted for another account, or not whole"
        raise ValueError(message)
    return text
