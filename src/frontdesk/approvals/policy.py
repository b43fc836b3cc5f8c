"""Rules for approvers of tool calls, as configured by the operator. The rules validate themselves."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, TypeGuard, cast

from frontdesk.approvals.names import PersonNames
from frontdesk.display.person_names import build_label, plain_name
from frontdesk.errors import NobodyToAskError
from frontdesk.hooks import call_approvers, takes
from frontdesk.loggers import runs as log
from frontdesk.models.approval import ApproverClaim, ApproverTerms, PendingApproval
from frontdesk.models.identity import Caller, ChannelIdentity, identity_findings
from frontdesk.models.person_name import PersonName

ClaimValue = str | int | bool
People = Sequence[ChannelIdentity]
FindPeople = Callable[[PendingApproval], People | Awaitable[People]]
"""Returns the people of a role for a question."""
DAY_SECONDS = 86_400.0
_MAX_VOTES = 100
_MAX_HOLDERS = 200


@dataclass(frozen=True, kw_only=True)
class ApproverRole:
    """A group of approvers: people who are listed, looked up, or have a verified claim."""

    name: str
    """The name by which the requester is told whom the question waits for."""
    people: People | FindPeople = ()
    """The people who are asked: a list, or a function that returns it for a question."""
    claim: str | None = None
    """A claim whose holders may answer too, such as `groups`; those are asked of whom a link has proved it."""
    values: Collection[ClaimValue] = ()
    """The values of the claim that count."""

    def findings(self) -> Iterator[str]:
        name: Any = self.name
        if not isinstance(name, str) or not name or not name.isprintable():
            yield f"the name of a role must be a printable string, got {name!r}"
        yield from self._claim_findings()
        people: Any = self.people
        if callable(people):
            if not takes(people, 1):
                yield f"the people of the role {name!r} must be a function of the question, or a list"
        elif not is_list(people):
            yield f"the people of the role {name!r} must be a list or a function, got {type(people).__name__}"
        else:
            if not people and self.claim is None:
                yield f"the role {name!r} has no people, so that nobody would be asked"
            for person in people:
                yield from (f"role {name!r}: {finding}" for finding in identity_findings(person))

    def _claim_findings(self) -> Iterator[str]:
        claim: Any = self.claim
        values: Any = self.values
        if claim is not None and (not isinstance(claim, str) or not claim):
            yield f"the claim of the role {self.name!r} must be a name, got {claim!r}"
        if not is_collection(values):
            yield f"the role {self.name!r} has a claim but no list of values"
            return
        if claim is not None and not values:
            yield f"the role {self.name!r} has a claim but no list of values"
        if claim is None and values:
            yield f"the role {self.name!r} has values but no claim"
        for value in values:
            if not isinstance(value, (str, int)):
                yield f"the values of the role {self.name!r} must be strings, integers or booleans"


Approver = Literal["requester"] | ChannelIdentity | ApproverRole


@dataclass(frozen=True, kw_only=True)
class ApproverRule:
    """The approvers of a tool call, the required number, and the action on timeout."""

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
        return tuple(self.approvers) == ("requester",) and not self.escalate_to

    def findings(self, asking: Collection[str], known: Collection[str], *, linked: bool = True) -> Iterator[str]:
        """Return the configuration errors, one line each. Channels in `asking` can ask people, `known` are all
        channels.

        `linked` means that people can be identified by claims that a link has verified.
        """
        if not is_list(self.approvers) or not self.approvers:
            yield 'approvers is a list with at least one person, role or "requester"'
            return
        if not is_list(self.escalate_to):
            yield "escalate_to is a list of people and roles"
            return
        everyone = [*self.approvers, *self.escalate_to]
        for approver in everyone:
            if isinstance(approver, ApproverRole):
                yield from approver.findings()
                if approver.claim is not None and not approver.people and not linked:
                    yield f"nobody is known to have the claim of the role {approver.name!r}: that needs a linker"
            elif approver != "requester":
                yield from _person_findings(approver)
        for channel in sorted({person.channel for person in _list_known(everyone)}):
            if channel not in known:
                yield f"the host has no channel named {channel!r}"
            elif channel not in asking:
                yield f"nobody can be asked on {channel!r}: the channel can't show a question to a person first"
        yield from self._vote_findings()
        yield from self._escalation_findings()

    def _vote_findings(self) -> Iterator[str]:
        if type(self.exclude_requester) is not bool:
            yield f"exclude_requester must be True or False, got {self.exclude_requester!r}"
        if type(self.votes) is not int or not 1 <= self.votes <= _MAX_VOTES:
            yield f"votes is a number from 1 to {_MAX_VOTES}"
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
        if self.escalate_after is not None and not is_duration(self.escalate_after):
            yield "escalate_after must be more than 0"


ChooseRule = Callable[[PendingApproval, Caller], ApproverRule | Awaitable[ApproverRule | None] | None]
"""Returns the rule of a question; `None` for the default."""


def _no_tools() -> Mapping[str, ApproverRule]:
    return {}


@dataclass(frozen=True, kw_only=True)
class ApprovalOptions:
    """The approval rules of a host. Precedence: rule of the tool, then the function, then the default."""

    default: ApproverRule = ApproverRule()
    """The rule of all other tools; the requester decides, if none is given."""
    tools: Mapping[str, ApproverRule] = field(default_factory=_no_tools)
    """The rules of some tools, by name. A tool with a rule always asks, whatever its `approval_mode`."""
    rule: ChooseRule | None = None
    """A function that chooses the rule of a question, by the question and its requester."""
    seconds: float | None = DAY_SECONDS
    """For how long a question waits; then the answer is no. `None` for as long as its session lasts."""
    max_holders: int = 20
    """The number of people who are asked at most because they have the claim of a role."""
    show_arguments_in_groups: bool = False
    """Whether a group sees the arguments of a call; otherwise they are shown in direct chats alone."""
    dynamic_tools: Collection[str] = ()
    """The names in `tools` of tools that a context provider or an MCP server adds during a run."""

    def findings(self, *, asking: Collection[str], known: Collection[str], linked: bool = True) -> list[str]:
        """Return the configuration errors, one line each. The existence of tools is checked with the target."""
        linked = linked and self.max_holders != 0
        wrong = [f"default: {finding}" for finding in _rule_findings(self.default, asking, known, linked)]
        for name, rule in self.rules.items():
            wrong += [f"tool {name!r}: {finding}" for finding in _rule_findings(rule, asking, known, linked)]
        wrong += self._shape_findings()
        wrong += self._time_findings()
        return [f"approvals: {finding}" for finding in wrong]

    @property
    def rules(self) -> dict[str, Any]:
        """Return the rules by tool, without invalid names. Those are a separate finding."""
        tools: Any = self.tools
        if not isinstance(tools, Mapping):
            return {}
        given = cast("Mapping[Any, Any]", tools)
        return {name: rule for name, rule in given.items() if isinstance(name, str) and name}

    @property
    def dynamic_names(self) -> list[str]:
        """Return the names of `dynamic_tools`, without invalid ones. Those are a separate finding."""
        given: Any = self.dynamic_tools
        return [name for name in given if isinstance(name, str) and name] if is_collection(given) else []

    def _shape_findings(self) -> Iterator[str]:
        tools: Any = self.tools
        dynamic: Any = self.dynamic_tools
        if not isinstance(tools, Mapping):
            yield f"tools must be a mapping of tool names to rules, got {type(tools).__name__}"
        elif len(self.rules) < len(cast("Mapping[Any, Any]", tools)):
            yield "tools: the name of a tool must be a non-empty string"
        if not is_collection(dynamic) or len(self.dynamic_names) < len(dynamic):
            yield "dynamic_tools must be a list of tool names"
        if self.rule is not None and not (callable(self.rule) and takes(self.rule, 2)):
            yield "rule is not a function of the question and its requester"
        if type(self.max_holders) is not int or not 0 <= self.max_holders <= _MAX_HOLDERS:
            yield f"max_holders is a number from 0 to {_MAX_HOLDERS}"
        if type(self.show_arguments_in_groups) is not bool:
            yield f"show_arguments_in_groups must be True or False, got {self.show_arguments_in_groups!r}"

    def _time_findings(self) -> Iterator[str]:
        if self.seconds is None:
            return
        if not is_duration(self.seconds):
            yield "seconds must be more than 0, or None"
            return
        rules = [rule for rule in (self.default, *self.rules.values()) if isinstance(rule, ApproverRule)]
        if any(is_duration(rule.escalate_after) and rule.escalate_after >= self.seconds for rule in rules):
            yield "escalate_after must be less than seconds, or nobody is asked before the answer is no"


def _rule_findings(rule: Any, asking: Collection[str], known: Collection[str], linked: bool) -> Sequence[str]:
    if not isinstance(rule, ApproverRule):
        return [f"{type(rule).__name__} is not an ApproverRule"]
    return [*rule.findings(asking, known, linked=linked)]


def _person_findings(person: Any) -> Iterator[str]:
    if isinstance(person, ChannelIdentity):
        yield from identity_findings(person)
    elif isinstance(person, str):
        yield f'{person!r} is not a ChannelIdentity, an ApproverRole or "requester"'
    else:
        yield f'{type(person).__name__} is not a ChannelIdentity, an ApproverRole or "requester"'


def _list_known(approvers: Sequence[Any]) -> list[ChannelIdentity]:
    """Return the people whose identities are known before a question is asked."""
    listed: list[ChannelIdentity] = []
    for approver in approvers:
        named = [approver]
        if isinstance(approver, ApproverRole):
            people: Any = approver.people
            named = list(people) if is_list(people) else []
        listed += [person for person in named if isinstance(person, ChannelIdentity) and not identity_findings(person)]
    return listed


def _most_voters(approvers: Sequence[Any]) -> int | None:
    """Return the maximum number of voters, or None if it is only known when a question is asked."""
    for approver in approvers:
        if isinstance(approver, ApproverRole) and (callable(approver.people) or approver.claim is not None):
            return None
    return len({person.key for person in _list_known(approvers)}) + ("requester" in approvers)


def is_list(given: Any) -> TypeGuard[Sequence[Any]]:
    """Return True for a non-string sequence. Iterators are excluded: they can only be used once."""
    return isinstance(given, Sequence) and not isinstance(given, (str, bytes))


def is_collection(given: Any) -> TypeGuard[Collection[Any]]:
    return isinstance(given, Collection) and not isinstance(given, (str, bytes, Mapping))


def is_duration(given: Any) -> TypeGuard[float]:
    """Return True for a positive and finite number of seconds."""
    return isinstance(given, (int, float)) and not isinstance(given, bool) and isfinite(given) and given > 0


CheckRule = Callable[[ApproverRule], Sequence[str]]
"""Lists what is wrong with a rule, a line each."""


class RuleBinder:
    """Finds the rule of a question, and its current approvers."""

    def __init__(self, options: ApprovalOptions, check: CheckRule, names: PersonNames) -> None:
        """Use `check` for rules that a function returns. The others were checked at build."""
        self._options = options
        self._check = check
        self._names = names

    @property
    def max_holders(self) -> int:
        """Return the maximum number of people who are asked because they have a claim."""
        return self._options.max_holders

    async def terms(self, question: PendingApproval, requester: Caller, *, group: bool) -> ApproverTerms | None:
        """Return the terms of a question, or None if only its requester decides it, where it was asked.

        If a function of the operator fails, there is no approver: the run fails, and no tool runs.
        """
        hidden = group and not self._options.show_arguments_in_groups
        rule = await self._rule(self._options, question, requester)
        if rule.is_requester_alone:
            # In a group nobody else may see the arguments, so that the requester is asked in the direct chat.
            return await self._direct(requester) if hidden else None
        return await self._bind(rule, question, requester, hidden)

    async def _direct(self, requester: Caller) -> ApproverTerms:
        people = await self._list_people(["requester"], requester)
        return ApproverTerms(
            approvers=(requester.identity,), shows_arguments=False, names=_labels(people), people=people
        )

    async def _list_people(self, approvers: Sequence[Any], requester: Caller) -> tuple[PersonName, ...]:
        """Return the approvers as displayed to the requester. Of a role only the name."""
        people: list[PersonName] = []
        for approver in approvers:
            if isinstance(approver, ApproverRole):
                people.append(PersonName(name=plain_name(approver.name)))
            elif approver == "requester":
                people.append(await self._names.find(requester.identity, requester.claims))
            else:
                people.append(await self._names.find(approver))
        return tuple(dict.fromkeys(people))

    async def _rule(self, options: ApprovalOptions, question: PendingApproval, requester: Caller) -> ApproverRule:
        if question.tool in options.tools:
            return options.tools[question.tool]
        if options.rule is None:
            return options.default
        chosen: Any = await call_approvers(question.tool, options.rule, question, requester)
        if chosen is not None and not isinstance(chosen, ApproverRule):
            log.error("approver rule must be an ApproverRule, got %s", type(chosen).__name__)
            raise NobodyToAskError
        if chosen is None:
            return options.default
        wrong = self._check(chosen)
        if wrong:
            log.error("invalid approver rule, failing the run: tool=%s: %s", question.tool, "; ".join(wrong))
            raise NobodyToAskError
        return chosen

    async def _bind(
        self, rule: ApproverRule, question: PendingApproval, requester: Caller, hidden: bool
    ) -> ApproverTerms:
        people, shown = await _people(rule.approvers, question), await self._list_people(rule.approvers, requester)
        asks_requester = "requester" in rule.approvers and not rule.exclude_requester
        if hidden and asks_requester:
            people, asks_requester = [requester.identity, *people], False
        escalates = rule.escalate_after is not None
        return ApproverTerms(
            approvers=_unique(people),
            claims=_claims(rule.approvers),
            asks_requester=asks_requester,
            exclude_requester=rule.exclude_requester,
            votes=rule.votes,
            escalate_at=question.created_at + rule.escalate_after if rule.escalate_after is not None else None,
            escalate_to=_unique(await _people(rule.escalate_to, question)) if escalates else (),
            escalate_claims=_claims(rule.escalate_to),
            names=_labels(shown),
            people=shown,
            shows_arguments=not hidden,
        )


async def _people(approvers: Sequence[Any], question: PendingApproval) -> list[ChannelIdentity]:
    people: list[ChannelIdentity] = []
    for approver in approvers:
        if isinstance(approver, ApproverRole):
            given = approver.people
            found: Any = await call_approvers(question.tool, given, question) if callable(given) else given
            people += cast("Iterable[ChannelIdentity]", found) if isinstance(found, Iterable) else [found]
        elif approver != "requester":
            people.append(approver)
    for person in people:
        wrong = identity_findings(person)
        if wrong:
            log.error("invalid approver, failing the run: tool=%s: %s", question.tool, "; ".join(wrong))
            raise NobodyToAskError
    return people


def _unique(people: Sequence[ChannelIdentity]) -> tuple[ChannelIdentity, ...]:
    return tuple({person.key: person for person in reversed(people)}.values())[::-1]


def _claims(approvers: Sequence[Any]) -> tuple[ApproverClaim, ...]:
    roles = [approver for approver in approvers if isinstance(approver, ApproverRole)]
    return tuple(ApproverClaim(claim=role.claim, values=tuple(role.values)) for role in roles if role.claim is not None)


def _labels(people: Sequence[PersonName]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(build_label, people)))
