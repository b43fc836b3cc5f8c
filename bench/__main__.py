"""`python -m bench`: each subject beside a bare app that sends the same bytes, and a table of both."""

from __future__ import annotations

import argparse
import compileall
import gc
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.arena import Arena, Contestant, learn_sample
from bench.environments import InstallFailed, find_python, list_installed
from bench.figures import Row
from bench.load import LoadFailed
from bench.machine import Cores, allow_many_files, choose_cores, facts, pin, run_loop
from bench.measures import MEASURES
from bench.measures.turns import converse
from bench.plan import FULL, QUICK
from bench.process import ROOT, StartFailed
from bench.report import contestants_text, facts_text, rows_as_json, table_text, verdicts_text
from bench.sample import Sample
from bench.states import States
from bench.subjects import find_subject
from bench.subjects.base import Subject
from bench.targets import Verdict, judge

SUBJECTS = "frontdesk,sqlite,postgres,responses,a2a"
CANT_JOIN = (InstallFailed, StartFailed, LoadFailed, RuntimeError, ValueError, OSError)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run; its figures are rough")
    parser.add_argument("--only", help=f"some of {','.join(MEASURES)}; otherwise those that the subject names")
    parser.add_argument("--subjects", default=SUBJECTS, help="files of bench/subjects; 'bare' has no ratios")
    parser.add_argument("--no-peers", action="store_true", help="leave out the packages of others")
    parser.add_argument("--renew", action="store_true", help="install those anew, at their newest versions")
    parser.add_argument(
        "--plain", action="store_true", help="our host under uvicorn as it is, not as `frontdesk serve`"
    )
    parser.add_argument("--loop", help="auto, uvloop or asyncio, for all servers")
    parser.add_argument("--json", type=Path, help="write everything, round by round, to this file")
    parser.add_argument("--against", metavar="COMMIT", help="the rows of bench.table, in turns with another version")
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    args = parser.parse_args()
    args.subjects = args.subjects.split(",")
    args.only = args.only.split(",") if args.only else None
    if unknown := set(args.only or ()) - set(MEASURES):
        parser.error(f"unknown measure: {', '.join(sorted(unknown))}")
    return args


async def run_subject(name: str, arena: Arena, args: argparse.Namespace) -> tuple[list[Row], list[Verdict]]:
    """One table: the bare app with the subject's bytes, the subject, and its peers."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"{name}:", file=sys.stderr)
        await prepare(name, arena, args, Path(folder) / "sample.json")
        rows: list[Row] = []
        try:
            for key in args.only or find_subject(name).measures:
                print(f"  {key} ...", file=sys.stderr)
                rows += await MEASURES[key](arena)
        finally:
            arena.stop()
    labels = [contestant.label for contestant in arena.contestants]
    verdicts = [] if name == "bare" else list(judge(rows, labels[1], labels[2:], quick=args.quick))
    notes = contestants_text([contestant.subject for contestant in arena.contestants])
    print(f"\n{table_text(rows, labels)}\n\n{notes}\n\n{verdicts_text(verdicts)}")
    return rows, verdicts


async def prepare(name: str, arena: Arena, args: argparse.Namespace, sample_file: Path) -> None:
    bare, subject = find_subject("bare"), find_subject(name)
    bare.loop = subject.loop = args.loop or subject.loop
    subject.plain = args.plain
    if name == "bare":
        arena.join(bare)
        return
    arena.join(bare, sample=sample_file)
    try:
        (await introduce(arena.join(subject))).save(sample_file)
        for peer in () if args.no_peers else subject.peers:
            await invite(find_subject(peer), arena, args)
    except BaseException:
        arena.stop()
        raise


async def invite(peer: Subject, arena: Arena, args: argparse.Namespace) -> None:
    """A peer that can't be installed or does not do the job is left out."""
    peer.loop = args.loop or peer.loop
    contestant = arena.join(peer)
    try:
        peer.python = find_python(peer, renew=args.renew)
        peer.served = list_installed(peer)
        await introduce(contestant)
        await converse(contestant, 2)
    except CANT_JOIN as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        print(f"  {peer.name} is left out: {reason[-1]}", file=sys.stderr)
        arena.leave(contestant)


async def introduce(contestant: Contestant) -> Sample:
    sample = await learn_sample(contestant)
    sizes = f"{len(sample.answer)} bytes of JSON, {len(sample.events)} events a stream"
    print(f"  {contestant.label} sends {sizes}", file=sys.stderr)
    return sample


async def run(args: argparse.Namespace) -> bool:
    cores = choose_cores()
    with States(cores) as states:
        return await run_all(
            args, cores, states, facts(cores) | states.facts({find_subject(name).store for name in args.subjects})
        )


async def run_all(args: argparse.Namespace, cores: Cores, states: States, machine: dict[str, str]) -> bool:
    print(facts_text(machine))
    pin(cores.generator)
    allow_many_files()
    # The generator's own collections would show up as the server's slow moments.
    gc.disable()
    results: dict[str, Any] = {"facts": machine, "quick": args.quick, "plain": args.plain, "subjects": {}}
    all_met = True
    for name in args.subjects:
        arena = Arena(QUICK if args.quick else FULL, cores, states)
        rows, verdicts = await run_subject(name, arena, args)
        all_met = all_met and all(verdict.met for verdict in verdicts)
        results["subjects"][name] = {
            "rows": list(rows_as_json(rows)),
            "verdicts": [{"met": verdict.met, "text": verdict.text} for verdict in verdicts],
        }
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return all_met


def main() -> int:
    if any(argument.startswith("--against") for argument in sys.argv[1:]):
        from bench import table

        return table.main()
    args = parse_arguments()
    # As an installer does it for the peers, and for whoever installs us.
    for sources in ("src", "packages/frontdesk-testing/src"):
        compileall.compile_dir(ROOT / sources, quiet=1)
    all_met = run_loop(run(args))
    return 1 if args.strict and not all_met else 0


if __name__ == "__main__":
    sys.exit(main())
