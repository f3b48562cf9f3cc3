"""The outbox: messages of changes, until they are sent."""
