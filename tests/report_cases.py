"""Energy thefts to report on."""

import numpy as np
import pandas as pd

from popf.datasets import make_energy_theft


def energy(n=900, seed=3):
    """Make consumers, and which of them steal."""
    data = make_energy_theft(n_samples=n, theft_rate=0.2, random_state=seed)
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    return frame, np.where(data.target == 1, "theft", "regular")
