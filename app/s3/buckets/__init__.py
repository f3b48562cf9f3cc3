"""Operations on buckets and their access settings."""
