"""See `popf.solvers`."""

from popf.paper.solver import PAPER_BOX, check_box

__all__ = ["PAPER_BOX", "check_box"]
