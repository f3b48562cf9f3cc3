"""The index in Postgres, for several gateways on one store. README.md here says how it is kept right."""
