"""Salt extension modules of Colonnade; Salt's loader finds `pillar/` and `runners/` below this package."""
