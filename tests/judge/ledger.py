"""What was acknowledged, and what follows from it. Pure: the judge enters what it saw, and asks for the verdicts."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

WENT_WRONG = "Something went wrong"
"""The beginning of the answer to a message that nobody will answer any more."""
MOST_AGAIN = 2
PAUSES_FOR_ONE = 10
FEW_POLLS = 20
POLLS_PER_SECOND = 10
FINAL = ("completed", "failed", "cancelled", "incomplete")


@dataclass(frozen=True)
class Verdict:
    """A promise that was broken, and the shortest story that shows it."""

    promise: str
    story: str

    def __str__(self) -> str:
        return f"BROKEN: {self.promise}\n    {self.story}"


@dataclass(frozen=True)
class Turn:
    """An acknowledged turn of a session: what was said, and what the agent had heard by then, this word included."""

    line: str
    word: str
    heard: tuple[str, ...]
    asked: int
    """When it was asked, on the ledger's own clock."""
    acknowledged: int
    after: str | None = None
    """The word of the turn that it continues, in a chain."""


@dataclass
class Approval:
    """A question for approval, and what was answered to the approving caller."""

    key: str
    approved: bool = True
    answers: list[str] = field(default_factory=list)
    """Each try: `done`, `denied`, a code such as `approval_answered`, or `cut`."""
    asking: int = 0
    """How many tries are under way."""
    killed: bool = False
    """Whether a host was killed in the midst of a try. It may have been between the note that the tool begins and the
    tool itself: who runs a tool at most once can't know, and does not run it again."""


@dataclass
class Run:
    """A background run as its readers saw it."""

    run_id: str
    disturbed: bool = False
    """Whether a process that could work on it was killed, stopped or cut off while it ran."""
    statuses: list[tuple[int, str, str]] = field(default_factory=list)
    """When an answer came, the status in it, and the code of its failure; the time is that of the question."""
    reads: list[tuple[int, tuple[str, ...], bool]] = field(default_factory=list)
    """When a read of the whole stream ended, its events in order, and whether it came to the end."""


@dataclass
class Message:
    """A chat message that its platform has handed over, and what the host answered."""

    chat: str
    word: str
    acknowledged: bool = False
    answers: list[tuple[str, ...]] = field(default_factory=list)
    """What each answer says that was heard."""
    crashes: bool = False
    """Whether whoever answers it ends at once."""
    live: bool = False
    """Whether its answer is shown while it is written."""
    answered_at: float | None = None
    """When the platform took the whole answer, on the machine's clock."""
    excuse: str = ""
    """The text that says in the chat why there is no answer, or the delivery that an operator sees as unknown."""

    @property
    def unexplained(self) -> bool:
        """Tell whether the message was taken, and nothing was said to it."""
        return self.acknowledged and not self.answers and not self.excuse


class Ledger:
    """Everything that the judge saw."""

    def __init__(self) -> None:
        self._time = 0
        self.said: dict[str, str] = {}
        """The line in which each word was said."""
        self.turns: list[Turn] = []
        self.approvals: dict[str, Approval] = {}
        self.effects: list[str] = []
        """The keys with which the tool has run."""
        self.runs: dict[str, Run] = {}
        self.messages: dict[str, Message] = {}
        self.ids: dict[str, list[str]] = defaultdict(list)
        """The words that were acknowledged under an id of the caller's choice."""
        self.heard_at: dict[str, list[float]] = {}
        """When the agent was asked with each word, on the machine's clock."""
        self.pauses = 0
        """How often a process stood still for longer than its leases."""
        self.cut_tools: list[tuple[str, bool]] = []
        """The keys of tools that a kill has cut off, and whether their requesters were told what became of them."""
        self.unfinished: list[str] = []
        """What is shown as being written when nobody writes it any more."""
        self.polls: list[tuple[str, int, float]] = []
        """A page, how many of its polls brought nothing, and for how many seconds it polled."""
        self.grown: list[tuple[str, int, int]] = []
        """What should have been dropped: its name, how many there were to drop, and how many were left."""

    def tick(self) -> int:
        """The next moment."""
        self._time += 1
        return self._time

    def say(self, line: str, word: str) -> int:
        """Note that a word goes out; return when."""
        self.said[word] = line
        return self.tick()

    def hear(self, line: str, word: str, heard: Sequence[str], asked: int, after: str | None = None) -> None:
        """Note an acknowledged turn."""
        self.turns.append(Turn(line, word, tuple(heard), asked, self.tick(), after))

    def excuse(self, chat: str, excuses: Sequence[str]) -> None:
        """Give each excuse to one message of a chat that has neither an answer nor an excuse yet."""
        open_messages = (one for one in self.messages.values() if one.chat == chat and one.unexplained)
        for message, excuse in zip(list(open_messages), excuses, strict=False):
            message.excuse = excuse

    def verdicts(self) -> list[Verdict]:
        """Everything that is wrong."""
        found = [*lines(self.turns, self.said), *chains(self.turns), *approvals(self.approvals.values(), self.effects)]
        found += [*runs(self.runs.values()), *chats(self.messages.values()), *ids(self.ids)]
        found += [*again(self.messages.values(), self.heard_at, self.pauses), *judge_told(self.cut_tools)]
        return [*found, *judge_shown(self.unfinished), *judge_polls(self.polls), *growth(self.grown)]

    @property
    def acknowledged(self) -> int:
        """How many things the host has promised."""
        answers = sum(one in ("done", "denied") for each in self.approvals.values() for one in each.answers)
        taken = sum(one.acknowledged for one in self.messages.values())
        ended = sum(bool(one.statuses) for one in self.runs.values())
        return len(self.turns) + answers + taken + ended


def lines(turns: Iterable[Turn], said: dict[str, str]) -> Iterator[Verdict]:
    """Judge sessions: each acknowledged turn hears all that were acknowledged before it, once and in order."""
    by_line: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        yield from _itself(turn, said)
        if turn.after is None:
            by_line[turn.line].append(turn)
    for line, each in by_line.items():
        yield from _order(line, sorted(each, key=lambda turn: turn.acknowledged))


def _itself(turn: Turn, said: dict[str, str]) -> Iterator[Verdict]:
    if turn.heard[-1:] != (turn.word,):
        yield Verdict("A turn hears its own word last.", f"{turn.line}: {turn.word} heard {list(turn.heard)}")
    doubled = [word for word, count in Counter(turn.heard).items() if count > 1]
    if doubled:
        yield Verdict("A turn is recorded once.", f"{turn.line}: {turn.word} heard {doubled} twice: {list(turn.heard)}")
    foreign = [word for word in turn.heard if word in said and said[word] != turn.line]
    if foreign:
        yield Verdict("A session has the memory of nobody else.", f"{turn.line}: {turn.word} heard {foreign}")


def _order(line: str, turns: Sequence[Turn]) -> Iterator[Verdict]:
    for number, earlier in enumerate(turns):
        for later in turns[number + 1 :]:
            short, long = sorted((earlier, later), key=lambda turn: len(turn.heard))
            if long.heard[: len(short.heard)] == short.heard and (
                short is earlier or later.asked < earlier.acknowledged
            ):
                continue
            lost = [word for word in earlier.heard if word not in later.heard]
            what = f"without {lost}" if lost else "in another order"
            common = _common(earlier.heard, later.heard)
            story = f"{line}: after {common} words, {earlier.word} heard {list(earlier.heard[common:])}; "
            story += f"then {later.word} heard {list(later.heard[common:])}"
            yield Verdict("An acknowledged turn is heard by every later turn of its session.", f"{story}, {what}")
            return


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = list(zip(one, other, strict=False))
    return next((number for number, (left, right) in enumerate(pairs) if left != right), len(pairs))


def chains(turns: Iterable[Turn]) -> Iterator[Verdict]:
    """Judge chains and branches: what a turn continues is heard, and nothing else."""
    known = {turn.word: turn for turn in turns}
    for turn in known.values():
        before = known.get(turn.after) if turn.after is not None else None
        if before is not None and turn.heard != (*before.heard, turn.word):
            story = (
                f"{turn.word} continues {before.word}, which heard {list(before.heard)}, and heard {list(turn.heard)}"
            )
            yield Verdict("A branch has the history up to where it left, and nothing else.", f"{turn.line}: {story}")


def approvals(asked: Iterable[Approval], effects: Sequence[str]) -> Iterator[Verdict]:
    """Judge approvals: what was approved is done once, and what was not is never done."""
    done = Counter(effects)
    for one in asked:
        story = f"approval {one.key} was answered with {one.answers}; the tool ran {done[one.key]} times"
        if done[one.key] > 1:
            yield Verdict("A tool that needs approval runs once.", story)
        if done[one.key] and not one.approved:
            yield Verdict("What was rejected is not done.", story)
        taken = not {"approval_answered", "pressed"}.isdisjoint(one.answers) and not one.killed
        if one.approved and done[one.key] == 0 and ("done" in one.answers or taken):
            yield Verdict("What was approved is done.", story)
        if done[one.key] and one.answers[-1:] == ["approval_expired"]:
            yield Verdict("What has expired is not done.", story)


def runs(seen: Iterable[Run]) -> Iterator[Verdict]:
    """Judge background runs: an end is an end, and what was read once stays."""
    for run in seen:
        yield from _statuses(run)
        yield from _reads(run)


def _statuses(run: Run) -> Iterator[Verdict]:
    end: tuple[int, str] | None = None
    for when, status, code in run.statuses:
        if end is not None and status != end[1]:
            yield Verdict("The end of a run is final.", f"{run.run_id} was {end[1]}, and is {status} later")
            return
        if status in FINAL and end is None:
            end = (when, status)
        if status == "cancelled":
            yield Verdict("What nobody cancels is not cancelled.", f"{run.run_id} was cancelled: {code}")
            return
        if status == "failed" and (code != "interrupted" or not run.disturbed):
            story = f"{run.run_id} failed with {code}, {'disturbed' if run.disturbed else 'undisturbed'}"
            yield Verdict("A background run that can go on does not fail.", story)
            return


def _reads(run: Run) -> Iterator[Verdict]:
    for (_, earlier, ended), (_, later, _) in zip(run.reads, run.reads[1:], strict=False):
        common = min(len(earlier), len(later))
        if earlier[:common] != later[:common] or (ended and len(earlier) != len(later)):
            story = f"{run.run_id}: read {len(earlier)} events{', its end too' if ended else ''}; then {len(later)}"
            yield Verdict("A stream reads the same for everyone, and does not change after its end.", story)
            return


def chats(messages: Iterable[Message]) -> Iterator[Verdict]:
    """Judge chats: what a platform was told to be taken is answered once, in order."""
    for one in messages:
        story = f"{one.chat}: {one.word}"
        if one.unexplained:
            yield Verdict("An acknowledged message is answered.", f"{story} was acknowledged and has no answer")
        if len(one.answers) > 1:
            yield Verdict("A message is answered once.", f"{story} has {len(one.answers)} answers")
        if one.acknowledged and not one.answers and not one.crashes and one.excuse.startswith(WENT_WRONG):
            yield Verdict("A message that crashes nothing is answered.", f"{story} has the answer {one.excuse}")


def again(messages: Iterable[Message], heard_at: dict[str, list[float]], pauses: int) -> Iterator[Verdict]:
    """Judge repetitions: what is answered is not asked again.

    A process may stand still between its last look at a claim and the agent, which nobody can prevent: a few of them
    are let pass, as many as such moments are long.
    """
    late = [
        f"{one.chat}: {one.word} was answered, and the agent was asked again {max(times) - one.answered_at:.1f} s later"
        for one in messages
        if one.answered_at is not None and not one.live
        for times in [heard_at.get(one.word, [0.0])]
        if max(times) > one.answered_at
    ]
    if len(late) > MOST_AGAIN + pauses // PAUSES_FOR_ONE:
        yield Verdict("An answered message is not run again.", f"{len(late)} times over {pauses} pauses; {late[0]}")


def judge_told(cut_tools: Iterable[tuple[str, bool]]) -> Iterator[Verdict]:
    """Judge tools that a kill has cut off: who asked for one is told."""
    for key, is_told in cut_tools:
        if not is_told:
            yield Verdict(
                "Who approved their own tool is told what became of it.", f"{key} was cut off, and nothing was said"
            )


def judge_shown(unfinished: Iterable[str]) -> Iterator[Verdict]:
    """Judge live messages: each comes to its end."""
    for story in unfinished:
        yield Verdict("A live message ends as the whole answer, or is taken away.", story)


def judge_polls(polls: Iterable[tuple[str, int, float]]) -> Iterator[Verdict]:
    """Judge pages that poll: they ask at the pace at which there can be something new."""
    for page, idle, seconds in polls:
        if idle > FEW_POLLS + POLLS_PER_SECOND * seconds:
            yield Verdict(
                "A page does not ask without end.", f"{page}: {idle} polls in {seconds:.1f} s brought nothing"
            )


def ids(acknowledged: dict[str, list[str]]) -> Iterator[Verdict]:
    """Judge ids that a caller chose: one id is one turn."""
    for chosen, words in acknowledged.items():
        if len(set(words)) > 1:
            yield Verdict(
                "An id that a caller chose is one turn.", f"{chosen} was acknowledged for {sorted(set(words))}"
            )


def growth(grown: Iterable[tuple[str, int, int]]) -> Iterator[Verdict]:
    """Judge growth: what has expired is dropped, and what nobody reads is not gathered."""
    for name, before, left in grown:
        if left > before:
            yield Verdict(
                "What nobody needs takes no room for ever.", f"{name}: {left}, and at most {before} may be left"
            )
