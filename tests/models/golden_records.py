"""Records spelled out: what was written once can be read for ever."""

import math
from datetime import UTC, date, datetime
from typing import Any

from agent_framework import (
    AgentResponse,
    Content,
    Message,
    WorkflowEvent,
    WorkflowRunResult,
    WorkflowRunState,
)

from frontdesk.models.approval import ApprovalVote, ApproverClaim, ApproverTerms
from frontdesk.models.conversation import Conversation, ConversationItem
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity, IdentityRecord, IsolationKeys
from frontdesk.models.link import LinkProof, LinkRecord, Whoami
from frontdesk.models.operations import TaskRecord
from frontdesk.models.person_name import PersonName
from frontdesk.models.reply import ResponseTarget
from frontdesk.models.request import AdmittedRequest, ChannelRequest, ChannelSession
from frontdesk.models.run import BackgroundRun, RunEvent, RunRecord
from frontdesk.models.session import CheckpointRef, ClientCall, SessionRecord
from tests.models.codec_kit import (
    Order,
)

ANN = ChannelIdentity(channel="web", native_id="7")

GOLDEN: tuple[tuple[Any, str], ...] = (
    (None, "null"),
    (
        ApproverTerms(
            approvers=(ANN,),
            claims=(ApproverClaim(claim="groups", values=("finance",)),),
            exclude_requester=True,
            votes=2,
            escalate_at=60.0,
            escalate_to=(ANN,),
            names=("Ann",),
            shows_arguments=False,
        ),
        '{"$":"ApproverTerms","approvers":{"$":"tuple","items":[{"$":"ChannelIdentity","channel":"web",'
        '"native_id":"7"}]},"claims":{"$":"tuple","items":[{"$":"ApproverClaim","claim":"groups",'
        '"values":{"$":"tuple","items":["finance"]}}]},"exclude_requester":true,"votes":2,"escalate_at":60.0,'
        '"escalate_to":{"$":"tuple","items":[{"$":"ChannelIdentity","channel":"web","native_id":"7"}]},'
        '"names":{"$":"tuple","items":["Ann"]},"shows_arguments":false}',
    ),
    (
        ApproverTerms(people=(PersonName(name="Ann", native_id="7", channel="web", verified=True),)),
        '{"$":"ApproverTerms","people":{"$":"tuple","items":[{"$":"PersonName","name":"Ann","native_id":"7",'
        '"channel":"web","verified":true}]}}',
    ),
    (
        ApprovalVote(owner="o", approval_id="apr_1", voter="k", approved=True, at=5.0, identity=ANN, seat="3:web:7"),
        '{"$":"ApprovalVote","owner":"o","approval_id":"apr_1","voter":"k","approved":true,"at":5.0,'
        '"identity":{"$":"ChannelIdentity","channel":"web","native_id":"7"},"seat":"3:web:7"}',
    ),
    (
        [1, 2.5, "a", True, (1, "b"), b"hi", {"k": None}],
        '[1,2.5,"a",true,{"$":"tuple","items":[1,"b"]},{"$":"bytes","value":"aGk="},{"k":null}]',
    ),
    ({1: "a", "$": 2}, '{"$":"dict","items":[[1,"a"],["$",2]]}'),
    ({"a", "b"}, '{"$":"set","items":["a","b"]}'),
    (frozenset({1}), '{"$":"frozenset","items":[1]}'),
    (2**64, '{"$":"int","value":"0x10000000000000000"}'),
    (-math.inf, '{"$":"float","value":"-inf"}'),
    (datetime(2024, 5, 1, 12, tzinfo=UTC), '{"$":"datetime","value":"2024-05-01T12:00:00+00:00"}'),
    (date(2024, 5, 1), '{"$":"date","value":"2024-05-01"}'),
    (
        Caller(
            identity=ChannelIdentity(channel="web", native_id="7"),
            isolation=IsolationKeys(user_key="u", chat_key="c", call_id="i"),
        ),
        '{"$":"Caller","identity":{"$":"ChannelIdentity","channel":"web","native_id":"7"},'
        '"isolation":{"$":"IsolationKeys","user_key":"u","chat_key":"c","call_id":"i"}}',
    ),
    (
        ChannelRequest(channel="web", isolation=IsolationKeys(user_key="u")),
        '{"$":"ChannelRequest","channel":"web","isolation":{"$":"IsolationKeys","user_key":"u"}}',
    ),
    (
        Caller(identity=ChannelIdentity(channel="web", native_id="7", attributes={"name": "Ann"})),
        '{"$":"Caller","identity":{"$":"ChannelIdentity","channel":"web","native_id":"7","attributes":{"name":"Ann"}}}',
    ),
    (
        ResponseTarget.channels(["a", "b"], echo_input=True),
        '{"$":"ResponseTarget","kind":"channels","names":{"$":"tuple","items":["a","b"]},"echo_input":true}',
    ),
    (
        RunEvent(run_id="r", owner="o", number=1, data=b"\x00"),
        '{"$":"RunEvent","owner":"o","run_id":"r","number":1,"data":{"$":"bytes","value":"AA=="}}',
    ),
    (
        RunRecord(
            run_id="r",
            owner="o",
            channel="c",
            status="completed",
            created_at=1.5,
            result=AgentResponse(messages=[Message("assistant", ["hi"], message_id="m")], value={"a": 1}),  # type: ignore[arg-type]
        ),
        '{"$":"RunRecord","run_id":"r","owner":"o","channel":"c","status":"completed","created_at":1.5,'
        '"result":{"$":"AgentResponse","messages":[{"$":"Message","role":"assistant",'
        '"contents":[{"$":"Content","type":"text","text":"hi"}],"message_id":"m"}],"value":{"a":1}}}',
    ),
    (
        SessionRecord(
            session_id="s",
            owner="o",
            key="k",
            created_at=1.5,
            updated_at=2.5,
            client_calls=(ClientCall(call_id="r", name="request_info"),),
            checkpoint=CheckpointRef(session_id="s", checkpoint_id="c"),
        ),
        '{"$":"SessionRecord","session_id":"s","owner":"o","key":"k","created_at":1.5,"updated_at":2.5,'
        '"client_calls":{"$":"tuple","items":[{"$":"ClientCall","call_id":"r","name":"request_info"}]},'
        '"checkpoint":{"$":"CheckpointRef","session_id":"s","checkpoint_id":"c"}}',
    ),
    (
        ChannelSession(conversation_id="c", isolation_key="o"),
        '{"$":"ChannelSession","conversation_id":"c","isolation_key":"o"}',
    ),
    (
        ChannelSession(key="k", attributes={"plan": "gold"}),
        '{"$":"ChannelSession","key":"k","attributes":{"plan":"gold"}}',
    ),
    (
        SessionRecord(
            session_id="s", owner="o", key="c", created_at=1.5, updated_at=2.5, openai_conversation_id="c", ignored=3
        ),
        '{"$":"SessionRecord","session_id":"s","owner":"o","key":"c","created_at":1.5,"updated_at":2.5,'
        '"conversation_id":"c","unheard":3}',
    ),
    (
        BackgroundRun(
            admitted=AdmittedRequest(
                request=ChannelRequest(channel="c", input="hi", background=True, on_interrupt="restart"),
                caller=Caller(identity=ChannelIdentity(channel="c", native_id="n")),
                identity=ChannelIdentity(channel="c", native_id="n"),
                owner="o",
                run_id="r",
                admitted_at=1.5,
            ),
            on_interrupt="restart",
            session_id="s",
        ),
        '{"$":"BackgroundRun","admitted":{"$":"AdmittedRequest","request":{"$":"ChannelRequest","channel":"c",'
        '"input":"hi","background":true,"on_interrupt":"restart"},"caller":{"$":"Caller","identity":'
        '{"$":"ChannelIdentity","channel":"c","native_id":"n"}},"identity":{"$":"ChannelIdentity","channel":"c",'
        '"native_id":"n"},"owner":"o","run_id":"r","admitted_at":1.5},"on_interrupt":"restart","session_id":"s"}',
    ),
    (
        Conversation(conversation_id="c", owner="o", created_at=1.5, metadata={"a": "b"}, session_id="s"),
        '{"$":"Conversation","conversation_id":"c","owner":"o","created_at":1.5,"metadata":{"a":"b"},"session_id":"s"}',
    ),
    (
        ConversationItem(item_id="i", conversation_id="c", created_at=1.5, body={"type": "message"}),
        '{"$":"ConversationItem","item_id":"i","conversation_id":"c","created_at":1.5,"body":{"type":"message"}}',
    ),
    (
        IdentityRecord(identity=ANN, isolation_key="k", created_at=1.5, archived=("j",), version=2),
        '{"$":"IdentityRecord","identity":{"$":"ChannelIdentity","channel":"web","native_id":"7"},'
        '"isolation_key":"k","created_at":1.5,"archived":{"$":"tuple","items":["j"]},"version":2}',
    ),
    (
        IdentityRecord(identity=ANN, isolation_key="k", created_at=1.5, joined=("j",)),
        '{"$":"IdentityRecord","identity":{"$":"ChannelIdentity","channel":"web","native_id":"7"},'
        '"isolation_key":"k","created_at":1.5,"joined":{"$":"tuple","items":["j"]}}',
    ),
    (
        LinkRecord(
            link_id="l",
            isolation_key="k",
            identity=ANN,
            linked_at=1.5,
            linker="code",
            subject="s",
            claims={"groups": ["a"]},
            previous_key="j",
            via="m",
        ),
        '{"$":"LinkRecord","link_id":"l","isolation_key":"k","identity":{"$":"ChannelIdentity","channel":"web",'
        '"native_id":"7"},"linked_at":1.5,"linker":"code","subject":"s","claims":{"groups":["a"]},'
        '"previous_key":"j","via":"m"}',
    ),
    (
        LinkProof(grant_id="g", linker="code", identity=ANN, survivor=ANN, subject="s", claims={"a": 1}),
        '{"$":"LinkProof","grant_id":"g","linker":"code","identity":{"$":"ChannelIdentity","channel":"web",'
        '"native_id":"7"},"survivor":{"$":"ChannelIdentity","channel":"web","native_id":"7"},"subject":"s",'
        '"claims":{"a":1}}',
    ),
    (
        Whoami(identity=ANN, linked=True, others=(ANN,)),
        '{"$":"Whoami","identity":{"$":"ChannelIdentity","channel":"web","native_id":"7"},"linked":true,'
        '"others":{"$":"tuple","items":[{"$":"ChannelIdentity","channel":"web","native_id":"7"}]}}',
    ),
    (
        TaskRecord(task_id="t", name="mail", payload={"to": "ann"}, due_at=1.5, attempts=2, error="OSError"),
        '{"$":"TaskRecord","task_id":"t","name":"mail","payload":{"to":"ann"},"due_at":1.5,"attempts":2,'
        '"error":"OSError"}',
    ),
    (
        InboxItem(
            channel="c",
            event_id="e",
            conversation_id="v",
            caller=Caller(identity=ChannelIdentity(channel="c", native_id="n")),
            request=ChannelRequest(channel="c", input="hi"),
            received_at=1.5,
            number=3,
            fence=2,
            attempts=1,
        ),
        '{"$":"InboxItem","channel":"c","event_id":"e","conversation_id":"v","caller":{"$":"Caller","identity":'
        '{"$":"ChannelIdentity","channel":"c","native_id":"n"}},"request":{"$":"ChannelRequest","channel":"c",'
        '"input":"hi"},"received_at":1.5,"number":3,"fence":2,"attempts":1}',
    ),
    (
        Content.from_function_call("1", "add", arguments={"a": 1}, hosted=False),
        '{"$":"Content","type":"function_call","call_id":"1","name":"add","arguments":{"a":1},"hosted":false}',
    ),
    (
        WorkflowRunResult(
            [WorkflowEvent("output", Order(1, date(2024, 5, 1)), executor_id="x")],
            [WorkflowEvent.status(WorkflowRunState.IDLE)],
        ),
        '{"$":"WorkflowRunResult","events":[{"$":"WorkflowEvent","type":"output","origin":"EXECUTOR",'
        '"data":{"$":"user:order","value":{"number":1,"placed":{"$":"date","value":"2024-05-01"},'
        '"colour":{"$":"user:colour","value":{"$":"tuple","items":["red",1]}},"lines":{"$":"tuple","items":[]}}},'
        '"executor_id":"x"}],"status":[{"$":"WorkflowEvent","type":"status","origin":"EXECUTOR","state":"IDLE"}]}',
    ),
)
