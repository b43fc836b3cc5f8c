"""What the tests of several clients share."""

import shutil
from pathlib import Path

import pytest

from tests.outbound.origin import Certificate


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    return Certificate(tmp_path)
