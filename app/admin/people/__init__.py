"""People in the admin API: IAM as the caller, users with their keys, keys that need attention."""
