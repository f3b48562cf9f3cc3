"""What both engines share: declarations, the commit queue, the registration of a writer."""
