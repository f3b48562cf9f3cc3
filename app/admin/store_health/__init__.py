"""What the console shows of a store: its mount, space, latency, packs, journals, breaker and scrub."""
