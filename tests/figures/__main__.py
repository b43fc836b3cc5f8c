"""`make figures`: attacks hosts on the loopback address, and writes what it costs into the threat model.

Arguments are the names of attacks, all by default. `--render` measures nothing.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.figures.measuring import OPEN, measure
from tests.figures.rows import PAGE, TABLES, render

RESULTS = Path(__file__).with_name("results.json")


async def measure_rows(names: set[str]) -> int:
    """Measure the rows with these names, and return 1 if the host never closed a connection."""
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    rows = {row.name: row for table in TABLES.values() for row in table if row.attack}
    if unknown := names - rows.keys() - {"--render"}:
        raise SystemExit(f"Unknown attacks: {', '.join(sorted(unknown))}. There are: {', '.join(rows)}")
    never_closed = False
    for name, row in rows.items():
        if row.attack and (not names or name in names):
            found = results[name] = {"values": row.values, **await measure(row.attack, row.max_files)}
            print(f"{name}: {json.dumps(found)}", flush=True)
            never_closed = never_closed or any(OPEN in answer for answer in found["answers"])
    ordered = {name: results[name] for name in rows if name in results}
    RESULTS.write_text(json.dumps(ordered, indent=2) + "\n", "utf-8")
    PAGE.write_text(render(PAGE.read_text("utf-8"), ordered), "utf-8")
    return int(never_closed)


if __name__ == "__main__":
    if not Path("/proc/self/clear_refs").exists():
        raise SystemExit("make figures measures memory by /proc, which only Linux has")
    sys.exit(asyncio.run(measure_rows(set(sys.argv[1:]))))
