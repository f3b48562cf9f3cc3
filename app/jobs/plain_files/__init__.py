"""Jobs for plain files: scanning, hashing and watching."""
