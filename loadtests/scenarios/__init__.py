"""Locust files, one for each published measurement or mix."""
