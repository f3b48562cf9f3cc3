"""Recipes for real mounts: what each needs on this machine, and with which options it is mounted."""

from sluice_s3.loadtests.recipes.checks import Finding, examine
from sluice_s3.loadtests.recipes.known import RECIPES, Recipe

__all__ = ["RECIPES", "Finding", "Recipe", "examine"]
