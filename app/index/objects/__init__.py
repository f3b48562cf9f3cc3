"""Objects: put, copy, delete, rename, append and listing."""
