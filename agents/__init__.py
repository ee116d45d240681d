"""The deciding side: understanding, flows, planning, tools, replies. Pure steps; no Kafka, no I/O."""
