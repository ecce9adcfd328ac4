"""``python -m popf``, the same as ``popf``."""

import sys

from popf.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
