"""Facts: what is known of a customer, as summary and key fields; Weaviate, or an embedded store."""
