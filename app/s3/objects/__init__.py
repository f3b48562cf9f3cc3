"""Operations on objects: read, write, copy, append, rename, list and delete."""
