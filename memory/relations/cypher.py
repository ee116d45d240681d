"""All Cypher that is ever sent: constants made from the schema's own names, with values only as parameters (I13)."""

from __future__ import annotations

from memory.relations.port import EXAMPLES
from memory.relations.schema import FIELDS, KINDS, LABELS, SHARED

OWNED = ("User", "Complaint", "Order")  # in this order each relation is counted once when its start is deleted
EDGE_VALUES = ("shop", "customer", "at", "write_id", "trace_id", "active", "written")
DROP_BATCH = 10_000


def fields_of(kind: str) -> frozenset[str]:
    """The fields that a kind of relation may have."""
    return FIELDS.get(kind, frozenset())


def _merge_nodes(label: str) -> str:
    return f"""
UNWIND $rows AS row
MERGE (n:{label} {{key: row.key}})
ON CREATE SET n.id = row.id, n.shop = row.shop, n.customer = row.customer, n.written = -1
WITH n, row WHERE $stamp <> '' OR row.written >= n.written
SET n += row.fields, n.written = row.written, n.restored = $stamp
"""


def _merge_edges(kind: str, start: str, end: str) -> str:
    return f"""
UNWIND $rows AS row
MATCH (a:{start} {{key: row.start}})
MATCH (b:{end} {{key: row.end}})
MERGE (a)-[r:{kind} {{key: row.key}}]->(b)
ON CREATE SET r.written = -1
WITH r, row WHERE $stamp <> '' OR row.written >= r.written
SET r += row.values, r.restored = $stamp
"""


def _delete_customer(label: str) -> str:
    return f"""
MATCH (n:{label} {{shop: $shop, customer: $customer}})
OPTIONAL MATCH (n)-[r]->()
WITH n, count(r) AS relations
DETACH DELETE n
RETURN coalesce(sum(relations), 0) AS count
"""


_JOINTS = [(kind, *pair) for kind, pairs in KINDS.items() for pair in sorted(pairs)]

SCHEMA = [
    *(f"CREATE CONSTRAINT {label.lower()}_key IF NOT EXISTS FOR (n:{label}) REQUIRE n.key IS UNIQUE"
      for label in LABELS),
    *(f"CREATE CONSTRAINT {kind.lower()}_key IF NOT EXISTS FOR ()-[r:{kind}]-() REQUIRE r.key IS UNIQUE"
      for kind in KINDS),
    *(f"CREATE INDEX {label.lower()}_customer IF NOT EXISTS FOR (n:{label}) ON (n.shop, n.customer)"
      for label in LABELS if label not in SHARED),
    "CREATE INDEX checks IF NOT EXISTS FOR ()-[r:TRIGGERED_QUALITY_CHECK]-() ON (r.shop, r.result, r.at)",
    "CALL db.awaitIndexes(60)",
]  # fmt: skip
MERGE_NODES = {label: _merge_nodes(label) for label in LABELS}
MERGE_EDGES = {joint: _merge_edges(*joint) for joint in _JOINTS}
DELETE_CUSTOMER = [_delete_customer(label) for label in OWNED]
_ANY_NODE, _ANY_EDGE = "|".join(LABELS), "|".join(KINDS)
ALL_NODES = f"MATCH (n:{_ANY_NODE}) WHERE n.shop = $shop RETURN labels(n)[0] AS label, properties(n) AS node"
ALL_EDGES = f"""
MATCH (a)-[r:{_ANY_EDGE}]->(b) WHERE r.shop = $shop
RETURN type(r) AS kind, properties(r) AS relation, a.key AS start, b.key AS end,
  labels(a)[0] AS start_label, labels(b)[0] AS end_label
"""
# first what joins, then what is joined
DROP_OTHERS = [
    f"""
MATCH {pattern} WHERE one.shop = $shop AND one.restored <> $stamp
WITH one LIMIT {DROP_BATCH} {delete} one RETURN count(*) AS count
"""
    for pattern, delete in ((f"()-[one:{_ANY_EDGE}]->()", "DELETE"), (f"(one:{_ANY_NODE})", "DETACH DELETE"))
]

PATH = """
CALL () {
  MATCH (u:User {shop: $shop, customer: $customer})-[r:MADE_ORDER|FILED_COMPLAINT]->(n)
  WHERE r.active AND r.at >= $since AND r.at < $until
  WITH n, r ORDER BY r.at DESC, r.key
  WITH n, head(collect(r)) AS r
  RETURN r, n, null AS checked
  UNION ALL
  MATCH (n:Complaint {shop: $shop, customer: $customer})-[r:TRIGGERED_QUALITY_CHECK]->(checked)
  WHERE r.active AND r.at >= $since AND r.at < $until
  RETURN r, n, checked
}
WITH r, n, checked ORDER BY r.at DESC, r.key LIMIT $limit
RETURN type(r) AS kind, properties(r) AS relation, labels(n)[0] AS label, properties(n) AS node,
  CASE WHEN checked IS NULL
    THEN COLLECT { MATCH (n)-[h:HANDLED_BY]->(a) WHERE h.active RETURN properties(a) ORDER BY h.at, h.key }
    ELSE [properties(checked)] END AS agents,
  COLLECT { MATCH (n)-[o:ABOUT]->(x) WHERE o.active RETURN x.id ORDER BY o.at, o.key } AS orders
ORDER BY relation.at DESC, relation.key
"""
MARKED = f"""
MATCH (c:Complaint)-[q:TRIGGERED_QUALITY_CHECK]->(a:Agent)
WHERE q.shop = $shop AND q.at >= $since AND q.at < $until AND q.active
  AND q.result = 'marked_down' AND c.reason = $reason
WITH a, c, q ORDER BY q.at DESC, q.key
WITH a, count(q) AS times, count(DISTINCT c.customer) AS customers, max(q.at) AS last, collect(DISTINCT c.id) AS ids
RETURN properties(a) AS agent, times, customers, last, ids[..{EXAMPLES}] AS ids
ORDER BY times DESC, agent.id
"""
