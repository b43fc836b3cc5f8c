"""Binds questions to the people who decide them, when they are asked."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from frontdesk.approvals.policy import ApprovalOptions, ApproverRole, ApproverRule
from frontdesk.data.approval import ApproverClaim, ApproverTerms, PendingApproval
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.errors import NobodyToAskError
from frontdesk.kit.hooks import call_approvers
from frontdesk.loggers import runs as log


class RuleBinder:
    """Finds the rule of a question, and the people whom it names at present."""

    def __init__(self, options: ApprovalOptions | None) -> None:
        self._options = options

    @property
    def max_holders(self) -> int:
        """Return how many people are asked at most because they have a claim."""
        return 0 if self._options is None else self._options.max_holders

    async def terms(self, question: PendingApproval, requester: Caller, *, group: bool) -> ApproverTerms | None:
        """Return the terms of a question; `None` if only its requester decides it, where it was asked.

        A function of the operator's that fails leaves nobody to ask: the run fails, and no tool runs.
        """
        if self._options is None:
            return None
        hidden = group and not self._options.show_arguments_in_groups
        rule = await self._rule(self._options, question, requester)
        if rule.is_requester_alone:
            # In a group nobody else may see the arguments, so that the requester is asked in the direct chat.
            direct = ApproverTerms(approvers=(requester.identity,), shows_arguments=False, names=_names(requester))
            return direct if hidden else None
        return await self._bound(rule, question, requester, hidden)

    async def _rule(self, options: ApprovalOptions, question: PendingApproval, requester: Caller) -> ApproverRule:
        if question.tool in options.tools:
            return options.tools[question.tool]
        if options.rule is None:
            return options.default
        chosen: Any = await call_approvers(question.tool, options.rule, question, requester)
        if chosen is not None and not isinstance(chosen, ApproverRule):
            log.error("the rule of an approval is an ApproverRule, not %s", type(chosen).__name__)
            raise NobodyToAskError
        return options.default if chosen is None else chosen

    async def _bound(
        self, rule: ApproverRule, question: PendingApproval, requester: Caller, hidden: bool
    ) -> ApproverTerms:
        people = await _people(rule.approvers, question)
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
            names=tuple(dict.fromkeys(name for one in rule.approvers for name in _named(one, requester))),
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
        if not isinstance(person, ChannelIdentity):  # pyright: ignore[reportUnnecessaryIsInstance]
            log.error("an approver is a ChannelIdentity, not %s", type(person).__name__)
            raise NobodyToAskError
    return people


def _unique(people: Sequence[ChannelIdentity]) -> tuple[ChannelIdentity, ...]:
    return tuple({person.key: person for person in reversed(people)}.values())[::-1]


def _claims(approvers: Sequence[Any]) -> tuple[ApproverClaim, ...]:
    roles = [approver for approver in approvers if isinstance(approver, ApproverRole)]
    return tuple(ApproverClaim(claim=role.claim, values=tuple(role.values)) for role in roles if role.claim is not None)


def _named(approver: Any, requester: Caller) -> tuple[str, ...]:
    if isinstance(approver, ApproverRole):
        return (approver.name,)
    return _names(requester) if approver == "requester" else (name_of_person(approver),)


def _names(requester: Caller) -> tuple[str, ...]:
    return (name_of_person(requester.identity),)


def name_of_person(person: ChannelIdentity) -> str:
    """Return the name of a person, or else their id on the channel."""
    name = person.attributes.get("name")
    return name if isinstance(name, str) and name else person.native_id
