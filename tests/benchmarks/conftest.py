"""What the tests of benchmarks share."""

import pytest


@pytest.fixture(autouse=True)
def own_cache(fresh_cache):
    """Every test starts with an empty cache: encoders of one name have other vectors in each."""
