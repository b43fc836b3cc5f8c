"""What npm installs is pinned as the Python packages are."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def test_the_lock_names_no_host_and_has_a_hash_for_everything() -> None:
    text = (HERE / "package-lock.json").read_text()
    assert "://" not in text
    packages: dict[str, Any] = json.loads(text)["packages"]
    assert packages.pop("")["dependencies"] == json.loads((HERE / "package.json").read_text())["dependencies"]
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
