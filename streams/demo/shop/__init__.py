"""The example shop: a real HTTP service with orders, refunds, idempotency keys and faults to inject."""
