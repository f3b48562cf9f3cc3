"""MinIO's admin API: what its client `mc` needs of it, in MinIO's form."""
