"""Commands on a whole index: copy, recovery, and rebuild from journals and blobs."""
