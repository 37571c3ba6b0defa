"""What the tests of synthesis share."""

import openai._base_client
import pytest


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch):
    """The SDK waits half a second before its first retry, and up to eight."""
    monkeypatch.setattr(openai._base_client, "INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr(openai._base_client, "MAX_RETRY_DELAY", 0.05)
