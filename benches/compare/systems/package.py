"""Packages as a user imports them: no store, nothing but `import`."""

from systems.base import System


class Package(System):
    """One package, by the name that is imported."""

    settings = 'python -c "import …", a fresh process; what it imports itself, NumPy among it, is inside'
    durability = "nothing is stored"

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.family = self.module = variant
        self.role = {"gridstone": "gridstone", "numpy": "orientation"}.get(variant, "peer")
