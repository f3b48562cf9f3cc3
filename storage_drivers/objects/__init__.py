"""The *objects* layout on a mount: blobs and packs under one driver."""
