"""The rules of who approves which tool calls, as an operator gives them to the host; they check themselves."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from frontdesk.data.approval import PendingApproval
from frontdesk.data.identity import Caller, ChannelIdentity

ClaimValue = str | int | bool
People = Sequence[ChannelIdentity]
FindPeople = Callable[[PendingApproval], People | Awaitable[People]]
"""Returns the people of a role for a question."""
DAY = 86_400.0
_MOST_VOTES = 100
_MOST_HOLDERS = 200


@dataclass(frozen=True, kw_only=True)
class ApproverRole:
    """A group of people who approve: those that are listed or looked up, and those who have a verified claim."""

    name: str
    """The name by which the requester is told whom the question waits for."""
    people: People | FindPeople = ()
    """The people who are asked: a list, or a function that returns it for a question."""
    claim: str | None = None
    """A claim whose holders may answer too, such as `groups`; those are asked of whom a link has proved it."""
    values: Collection[ClaimValue] = ()
    """The values of the claim that count."""

    def findings(self) -> Iterator[str]:
        """List what is wrong, a line each."""
        if not self.name or not self.name.isprintable():
            yield f"the name of a role is a printable text, not {self.name!r}"
        if self.claim is not None and (isinstance(self.values, (str, bytes)) or not self.values):
            yield f"the role {self.name!r} has a claim and no list of values"
        if self.claim is None and self.values:
            yield f"the role {self.name!r} has values and no claim"
        if not callable(self.people):
            if not self.people and self.claim is None:
                yield f"the role {self.name!r} has no people, so that nobody would be asked"
            for person in self.people:
                yield from _person_findings(person)


Approver = Literal["requester"] | ChannelIdentity | ApproverRole


@dataclass(frozen=True, kw_only=True)
class ApproverRule:
    """The people who approve a tool call, how many of them, and what happens if they don't answer."""

    approvers: Sequence[Approver] = ("requester",)
    """The people and roles that are asked; `"requester"` is the person for whom the run asks."""
    votes: int = 1
    """The number of people who have to approve; one who rejects is enough to reject."""
    exclude_requester: bool = False
    """Whether the requester may not approve, also with another account that is linked to theirs."""
    escalate_after: float | None = None
    """The seconds after which `escalate_to` is asked too."""
    escalate_to: Sequence[ChannelIdentity | ApproverRole] = ()

    @property
    def is_requester_alone(self) -> bool:
        """Tell whether nobody but the requester decides."""
        return tuple(self.approvers) == ("requester",) and not self.escalate_to

    def findings(self, asking: Collection[str], known: Collection[str], *, linked: bool = True) -> Iterator[str]:
        """List what is wrong, a line each; channels in `asking` can ask people, and `known` are all.

        `linked` tells whether people can be known by what a link has proved of them.
        """
        if isinstance(self.approvers, str) or not self.approvers:
            yield 'approvers is a list with at least one person, role or "requester"'
            return
        everyone = [*self.approvers, *self.escalate_to]
        for approver in everyone:
            if isinstance(approver, ApproverRole):
                yield from approver.findings()
                if approver.claim is not None and not approver.people and not linked:
                    yield f"nobody is known to have the claim of the role {approver.name!r}: that needs a linker"
            elif approver != "requester":
                yield from _person_findings(approver)
        for channel in sorted({person.channel for person in _listed(everyone)}):
            if channel not in known:
                yield f"the host has no channel called {channel!r}"
            elif channel not in asking:
                yield f"nobody can be asked on {channel!r}: the channel can't show a question to a person first"
        yield from self._vote_findings()
        yield from self._escalation_findings()

    def _vote_findings(self) -> Iterator[str]:
        if type(self.votes) is not int or not 1 <= self.votes <= _MOST_VOTES:
            yield f"votes is a number from 1 to {_MOST_VOTES}"
            return
        if self.exclude_requester and "requester" in self.approvers:
            yield '"requester" is among the approvers, and exclude_requester=True excludes them'
        most = _most_voters(self.approvers)
        if self.escalate_to and most is not None:
            more = _most_voters(self.escalate_to)
            most = None if more is None else most + more
        if most is not None and self.votes > most:
            yield f"votes={self.votes}, and only {most} could vote"

    def _escalation_findings(self) -> Iterator[str]:
        if "requester" in self.escalate_to:
            yield 'escalate_to names people and roles, not "requester"'
        if (self.escalate_after is None) != (not self.escalate_to):
            yield "escalate_after and escalate_to are given together"
        if self.escalate_after is not None and not self.escalate_after > 0:
            yield "escalate_after must be more than 0"


ChooseRule = Callable[[PendingApproval, Caller], ApproverRule | Awaitable[ApproverRule | None] | None]
"""Returns the rule of a question; `None` for the default."""


def _no_tools() -> Mapping[str, ApproverRule]:
    return {}


@dataclass(frozen=True, kw_only=True)
class ApprovalOptions:
    """The rules of a host for approvals: that of the tool, else that of the function, else the default."""

    default: ApproverRule = ApproverRule()
    """The rule of all other tools; the requester decides, if none is given."""
    tools: Mapping[str, ApproverRule] = field(default_factory=_no_tools)
    """The rules of some tools, by name."""
    rule: ChooseRule | None = None
    """A function that chooses the rule of a question, by the question and its requester."""
    seconds: float | None = DAY
    """For how long a question waits; then the answer is no. `None` for as long as its session lasts."""
    max_holders: int = 20
    """The number of people who are asked at most because they have the claim of a role."""
    show_arguments_in_groups: bool = False
    """Whether a group sees the arguments of a call; otherwise they are shown in direct chats alone."""

    def findings(
        self, *, asking: Collection[str], known: Collection[str], tools: Collection[str] | None, linked: bool = True
    ) -> list[str]:
        """List what is wrong, a line each; `tools` are those of the target, if all of them are known."""
        linked = linked and self.max_holders != 0
        wrong = [f"default: {finding}" for finding in _rule_findings(self.default, asking, known, linked)]
        for name, rule in self.tools.items():
            if tools is not None and name not in tools:
                wrong.append(f"the target has no tool called {name!r}")
            wrong += [f"tool {name!r}: {finding}" for finding in _rule_findings(rule, asking, known, linked)]
        if self.rule is not None and not callable(self.rule):
            wrong.append("rule is not a function")
        if type(self.max_holders) is not int or not 0 <= self.max_holders <= _MOST_HOLDERS:
            wrong.append(f"max_holders is a number from 0 to {_MOST_HOLDERS}")
        wrong += self._time_findings()
        return [f"approvals: {finding}" for finding in wrong]

    def _time_findings(self) -> Iterator[str]:
        if self.seconds is None:
            return
        if not self.seconds > 0:
            yield "seconds must be more than 0, or None"
            return
        rules: tuple[Any, ...] = (self.default, *self.tools.values())
        if any(isinstance(rule, ApproverRule) and (rule.escalate_after or 0) >= self.seconds for rule in rules):
            yield "escalate_after must be less than seconds, or nobody is asked before the answer is no"


def _rule_findings(rule: Any, asking: Collection[str], known: Collection[str], linked: bool) -> Sequence[str]:
    if not isinstance(rule, ApproverRule):
        return [f"{rule!r} is not an ApproverRule"]
    return [*rule.findings(asking, known, linked=linked)]


def _person_findings(person: Any) -> Iterator[str]:
    if not isinstance(person, ChannelIdentity):
        yield f'{person!r} is not a ChannelIdentity, an ApproverRole or "requester"'


def _listed(approvers: Sequence[Any]) -> list[ChannelIdentity]:
    """Return the people whose identities are known before a question is asked."""
    listed: list[ChannelIdentity] = []
    for approver in approvers:
        named = [approver]
        if isinstance(approver, ApproverRole):
            named = [] if callable(approver.people) else list(approver.people)
        listed += [person for person in named if isinstance(person, ChannelIdentity)]
    return listed


def _most_voters(approvers: Sequence[Any]) -> int | None:
    """Return how many people can vote at most; `None` if that is known only when a question is asked."""
    for approver in approvers:
        if isinstance(approver, ApproverRole) and (callable(approver.people) or approver.claim is not None):
            return None
    return len({person.key for person in _listed(approvers)}) + ("requester" in approvers)
