"""Delivery of event notifications to their targets."""
