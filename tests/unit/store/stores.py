"""Two stores, fast and slow."""

TOML = """\
region = "eu-west-1"

[stores.fast]
path = "{root}/fast"

[stores.slow]
path = "{root}/slow"
durability = "relaxed"
"""
