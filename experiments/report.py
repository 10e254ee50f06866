def write(names): pass
from pathlib import Path
IMAGES = Path(__file__).parent.parent / "docs" / "images" / "results"
