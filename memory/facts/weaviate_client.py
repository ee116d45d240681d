"""The connection to Weaviate: made at the first use, bounded in time, its many errors made two."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import grpc
import httpx
import orjson
import weaviate
from weaviate.classes.config import Configure, DataType, Property, StopwordsPreset, Tokenization, VectorDistances
from weaviate.classes.init import AdditionalConfig, Auth, Timeout
from weaviate.classes.tenants import Tenant
from weaviate.exceptions import UnexpectedStatusCodeError, WeaviateBaseError, WeaviateInvalidInputError

from memory.facts.port import FactsError, FactsUnavailableError

QUERY_SECONDS = 1.0  # a conversation waits no longer for what it may do without
CONNECT_SECONDS = 5.0
_CLIENT_SECONDS = 60  # the client's own limits stay above ours
GRPC_PORT = 50051
VECTOR = "default"  # the one vector of an object
_SIMPLE = re.compile(r"[A-Za-z0-9_-]{1,60}")
# per object, these come again however often it is sent; all else (read-only, no memory, a deadline) may pass
_FOR_GOOD = re.compile(r"vector lengths|vector dimension|invalid|not a valid|data type|no such prop", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """An object to write; None for one without a vector."""

    id: uuid.UUID
    properties: Mapping[str, object]
    vector: list[float] | None


class Connection:
    """One client, and the tenants that it knows of."""

    def __init__(self, url: str, api_key: str, collection: str, vectors: str) -> None:
        """`vectors` names what the collection's vectors are; a collection of others is refused."""
        self._url, self._key, self._name, self._vectors = urlsplit(url), api_key, collection, vectors
        if self._url.scheme not in {"http", "https"} or not self._url.hostname:
            message = f"{url!r}: the address of Weaviate is like http://127.0.0.1:8080?grpc=50051"
            raise FactsError(message)
        self._client: weaviate.WeaviateAsyncClient | None = None
        self._tenants: set[str] = set()
        self._lock = asyncio.Lock()
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {api_key}"} if api_key else {})
        self._http = httpx.AsyncClient(
            base_url=f"{self._url.scheme}://{self._url.netloc}", headers=headers, timeout=_CLIENT_SECONDS
        )

    @asynccontextmanager
    async def tenant(self, shop: str, seconds: float | None, *, create: bool = False) -> AsyncIterator[Any]:
        """The shop's facts, or None when it has none. Raises FactsUnavailableError after `seconds`, or FactsError."""
        async with self._bounded(seconds):
            collection = (await self._connected()).collections.use(self._name)
            name = tenant_name(shop)
            if name not in self._tenants:
                if await collection.tenants.exists(name):
                    self._tenants.add(name)
                elif create:
                    await collection.tenants.create([Tenant(name=name)])
                    self._tenants.add(name)
            yield collection.with_tenant(name) if name in self._tenants else None

    async def insert(self, shop: str, rows: Sequence[Row], seconds: float) -> dict[int, str]:
        """Write objects in one request; the places of those that failed, with the reason.

        By plain HTTP: the client's own batches are sent again after a broken connection without a word to us.
        """
        tenant = tenant_name(shop)
        objects = [
            {"class": self._name, "tenant": tenant, "id": str(row.id), "properties": row.properties}
            | ({} if row.vector is None else {"vectors": {VECTOR: row.vector}})
            for row in rows
        ]
        async with self.tenant(shop, seconds, create=True):
            answer = await self._http.post("/v1/batch/objects", content=orjson.dumps({"objects": objects}))
            if answer.is_client_error:
                message = f"Weaviate at {self._url.netloc} refused a batch: {answer.status_code} {answer.text[:500]}"
                raise FactsError(message)
            answer.raise_for_status()
            results = [one.get("result") or {} for one in answer.json()]
        return {place: _reasons(one) for place, one in enumerate(results) if one.get("status") != "SUCCESS"}

    async def remove_tenant(self, shop: str, seconds: float) -> None:
        """Remove all of a shop."""
        async with self._bounded(seconds):
            collection = (await self._connected()).collections.use(self._name)
            self._tenants.discard(tenant_name(shop))
            await collection.tenants.remove([tenant_name(shop)])

    async def remove_collection(self, seconds: float) -> None:
        """Remove the facts of all shops."""
        async with self._bounded(seconds):
            await (await self._connected()).collections.delete(self._name)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def _bounded(self, seconds: float | None) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            message = f"Weaviate at {self._url.netloc} did not answer within {seconds or _CLIENT_SECONDS:g} s"
            raise FactsUnavailableError(message) from error
        except (WeaviateBaseError, grpc.RpcError, httpx.HTTPError, OSError) as error:
            raise self._told(error) from error

    async def _connected(self) -> weaviate.WeaviateAsyncClient:
        async with self._lock:
            if self._client is None:
                client = self._new()
                try:
                    async with asyncio.timeout(CONNECT_SECONDS):
                        await client.connect()
                        await self._prepare(client)
                except BaseException:
                    await client.close()
                    raise
                self._client = client
                self._tenants.clear()
            return self._client

    def _new(self) -> weaviate.WeaviateAsyncClient:
        host, secure = str(self._url.hostname), self._url.scheme == "https"
        grpc_port = int(parse_qs(self._url.query).get("grpc", [str(GRPC_PORT)])[0])
        limits = Timeout(init=int(CONNECT_SECONDS), query=_CLIENT_SECONDS, insert=_CLIENT_SECONDS)
        return weaviate.use_async_with_custom(
            http_host=host, http_port=self._url.port or (443 if secure else 8080), http_secure=secure, grpc_host=host,
            grpc_port=grpc_port, grpc_secure=secure, auth_credentials=Auth.api_key(self._key) if self._key else None,
            additional_config=AdditionalConfig(timeout=limits),
            skip_init_checks=True,  # one of them asks a package registry, and waits where there is none
        )  # fmt: skip

    async def _prepare(self, client: weaviate.WeaviateAsyncClient) -> None:
        if not await client.collections.exists(self._name):
            try:
                await client.collections.create(self._name, **_schema(self._vectors))
            except UnexpectedStatusCodeError:  # refused, or another keeper was first
                if not await client.collections.exists(self._name):
                    raise
        made_with = (await client.collections.use(self._name).config.get()).description
        if made_with != self._vectors:
            message = (f"Weaviate's collection {self._name} was made with the vectors {made_with!r}, not"
                       f" {self._vectors!r}: back up with the old ones, restore into another collection")  # fmt: skip
            raise FactsError(message)

    def _told(self, error: Exception) -> FactsError | FactsUnavailableError:
        message = f"Weaviate at {self._url.netloc}: {type(error).__name__}: {error}"
        mine = isinstance(error, UnexpectedStatusCodeError) and 400 <= error.status_code < 500
        if mine or isinstance(error, WeaviateInvalidInputError):
            return FactsError(message)
        return FactsUnavailableError(message)


def tenant_name(shop: str) -> str:
    """Weaviate takes few characters in a tenant's name; any other shop gets one by its hash."""
    return f"s-{shop}" if _SIMPLE.fullmatch(shop) else f"x-{uuid.uuid5(uuid.NAMESPACE_URL, shop).hex}"


def _reasons(result: Mapping[str, Any]) -> str:
    errors = (result.get("errors") or {}).get("error") or []
    return "; ".join(str(one.get("message")) for one in errors) or f"status {result.get('status')}"


def for_good(reason: str) -> bool:
    """Whether an object that failed so would fail again."""
    return bool(_FOR_GOOD.search(reason))


def _schema(vectors: str) -> dict[str, Any]:
    """FIELD: equal is equal, `sess_1` is not `sess_1_old` (case I05). WHITESPACE: our own tokens (case I07)."""
    exact = [
        Property(name=name, data_type=DataType.TEXT, tokenization=Tokenization.FIELD, index_searchable=False)
        for name in ("customer", "key", "kind", "session")
    ]
    return {
        "description": vectors,
        "properties": [
            *exact,
            Property(name="at", data_type=DataType.INT, index_range_filters=True),
            Property(name="active", data_type=DataType.BOOL),
            Property(name="words", data_type=DataType.TEXT, tokenization=Tokenization.WHITESPACE,
                     index_filterable=False),
            Property(name="body", data_type=DataType.TEXT, index_filterable=False, index_searchable=False),
        ],
        "multi_tenancy_config": Configure.multi_tenancy(enabled=True),
        "vector_config": Configure.Vectors.self_provided(
            vector_index_config=Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE)
        ),
        "inverted_index_config": Configure.inverted_index(stopwords_preset=StopwordsPreset.NONE),
    }  # fmt: skip
