"""Reads and repairs for fsck and the scrubber, and the quarantine."""
