"""Energy thefts to report on."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import POPFClassifier
from popf.datasets import make_energy_theft


@pytest.fixture(scope="session")
def consumers():
    """Consumers, and which of them steal."""
    data = make_energy_theft(n_samples=900, theft_rate=0.2, realistic=False, random_state=3)
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    return frame, np.where(data.target == 1, "theft", "regular")


@pytest.fixture(scope="session")
def theft_case(consumers):
    """A model of energy theft, and rows that it has not seen with their labels."""
    X, y = consumers
    model = make_pipeline(StandardScaler(), POPFClassifier()).fit(X[:400], y[:400])
    return model, X[400:].reset_index(drop=True), y[400:]
