"""Folders and selections of objects as streamed zip archives."""
