"""What commands make of a whole index: a copy in another engine, a new one from journals and blobs."""
