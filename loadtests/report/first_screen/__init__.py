"""What a report shows before anybody scrolls."""
