"""Relations: who ordered, complained and handled it, and what was checked; Neo4j, or an embedded store."""
