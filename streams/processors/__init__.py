"""One thin module a processor: its row names topics, step, failure domain, degrade path and alarm."""
