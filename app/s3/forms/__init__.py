"""Uploads by HTML forms: the fields and the file of a form, and the policy that its maker signed. No I/O of its own."""
