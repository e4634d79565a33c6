"""Salt extension modules of Colonnade; Salt's loader finds `engines/`, `pillar/` and `runners/` below this package."""
