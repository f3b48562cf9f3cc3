"""The object store: objects, versions and buckets on backing stores."""
