"""Where copies of snapshots go: a folder by default, or a bucket of any S3-compatible object storage (R-002-13)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit


class ObjectStoreError(OSError):
    """The storage did not do it: what was asked, of which object, and the storage's own words."""


class ObjectStore(Protocol):
    """Whole objects by name (`/` between parts). Calls block, and raise ObjectStoreError."""

    def put(self, name: str, body: bytes) -> None:
        """Store it whole, or not at all; over one of the same name."""
        ...

    def get(self, name: str) -> bytes:
        """The object's bytes."""
        ...

    def names(self, prefix: str) -> list[str]:
        """The names that begin with `prefix`, in order."""
        ...

    def delete(self, name: str) -> None:
        """Remove it; one that is not there is no error."""
        ...


class FolderStore:
    """A folder, best on another volume than the snapshots."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, name: str, body: bytes) -> None:
        """See ObjectStore: written beside its place, synced, then moved there."""
        path = self._root / name
        fresh = path.with_name(path.name + ".writing")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with fresh.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except OSError as error:
            raise ObjectStoreError(_told("put", name, error)) from error

    def get(self, name: str) -> bytes:
        """See ObjectStore."""
        try:
            return (self._root / name).read_bytes()
        except OSError as error:
            raise ObjectStoreError(_told("get", name, error)) from error

    def names(self, prefix: str) -> list[str]:
        """See ObjectStore."""
        return sorted(name for name in self._all() if name.startswith(prefix) and not name.endswith(".writing"))

    def delete(self, name: str) -> None:
        """See ObjectStore."""
        try:
            (self._root / name).unlink(missing_ok=True)
        except OSError as error:
            raise ObjectStoreError(_told("delete", name, error)) from error

    def _all(self) -> Iterator[str]:
        return (path.relative_to(self._root).as_posix() for path in self._root.rglob("*") if path.is_file())


class S3Store:
    """A bucket, by boto3 (installed with `interlock[s3]`), which finds credentials and region as it always does."""

    def __init__(self, bucket: str, prefix: str = "", endpoint_url: str | None = None) -> None:
        """`endpoint_url` is for storage that is not Amazon's. Raises ObjectStoreError where boto3 is missing."""
        try:
            import boto3  # noqa: PLC0415 (an optional dependency of 15 MB)
            from botocore.config import Config  # noqa: PLC0415 (the same)
        except ImportError as error:
            message = f"copies to s3://{bucket} need boto3: pip install 'interlock[s3]'"
            raise ObjectStoreError(message) from error
        # A copy that hangs would hold the ones behind it; what failed is tried again by the next snapshot.
        limits = Config(connect_timeout=5, read_timeout=30, retries={"max_attempts": 2, "mode": "standard"})
        self._client: Any = boto3.client("s3", endpoint_url=endpoint_url, config=limits)
        self._bucket, self._prefix = bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""

    def put(self, name: str, body: bytes) -> None:
        """See ObjectStore."""
        self._asked("put", name, lambda key: self._client.put_object(Bucket=self._bucket, Key=key, Body=body))

    def get(self, name: str) -> bytes:
        """See ObjectStore."""
        client, bucket = self._client, self._bucket
        return bytes(self._asked("get", name, lambda key: client.get_object(Bucket=bucket, Key=key)["Body"].read()))

    def names(self, prefix: str) -> list[str]:
        """See ObjectStore."""
        pages = self._client.get_paginator("list_objects_v2")

        def listed(key: str) -> list[str]:
            return [one["Key"].removeprefix(self._prefix) for page in pages.paginate(Bucket=self._bucket, Prefix=key)
                    for one in page.get("Contents", ())]  # fmt: skip

        return sorted(self._asked("list", prefix, listed))

    def delete(self, name: str) -> None:
        """See ObjectStore."""
        self._asked("delete", name, lambda key: self._client.delete_object(Bucket=self._bucket, Key=key))

    def _asked(self, what: str, name: str, ask: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (an optional dependency)

        try:
            return ask(self._prefix + name)
        except (BotoCoreError, ClientError, OSError) as error:
            raise ObjectStoreError(_told(what, f"s3://{self._bucket}/{self._prefix}{name}", error)) from error


def object_store(url: str, default: Path, endpoint_url: str | None = None) -> ObjectStore:
    """The storage that `url` names: empty for the default folder, `file:///path`, or `s3://bucket/prefix`.

    Raises ValueError for any other.
    """
    parts = urlsplit(url)
    if not url:
        return FolderStore(default)
    if parts.scheme == "file" and parts.path and not parts.netloc:
        return FolderStore(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        return S3Store(parts.netloc, parts.path, endpoint_url)
    message = f"snapshot_copies is {url!r}; it must be s3://bucket/prefix or file:///folder"
    raise ValueError(message)


def _told(what: str, name: str, error: Exception) -> str:
    return f"{what} {name}: {error}"
