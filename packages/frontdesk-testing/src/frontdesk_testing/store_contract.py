"""The contract of every state store.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self, tmp_path):
            store = MyStore(tmp_path)
            await store.open()
            yield store
            await store.close()

With pytest-asyncio in its strict mode, the fixture is a `pytest_asyncio.fixture`.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"frontdesk_testing.store_{part}"
        for part in (
            "albums",
            "answers",
            "approvals",
            "background",
            "boxes",
            "channel_values",
            "control_events",
            "conversation_aliases",
            "conversations",
            "files",
            "grants",
            "isolation",
            "leaderships",
            "leases",
            "ledger",
            "links",
            "live",
            "nonces",
            "outbox",
            "people",
            "quarantine",
            "run_lists",
            "runs",
            "sessions",
            "tasks",
            "titles",
            "transactions",
        )
    )
)

from frontdesk.interfaces.store import HostStateStore  # noqa: E402
from frontdesk_testing.store_albums import Albums  # noqa: E402
from frontdesk_testing.store_answers import Answers  # noqa: E402
from frontdesk_testing.store_approvals import Decisions  # noqa: E402
from frontdesk_testing.store_background import Background  # noqa: E402
from frontdesk_testing.store_boxes import Inbox  # noqa: E402
from frontdesk_testing.store_channel_values import ChannelValues  # noqa: E402
from frontdesk_testing.store_control_events import Bundles, CancelledEvents, ControlEvents  # noqa: E402
from frontdesk_testing.store_conversation_aliases import ConversationAliases  # noqa: E402
from frontdesk_testing.store_conversations import Conversations  # noqa: E402
from frontdesk_testing.store_files import Files  # noqa: E402
from frontdesk_testing.store_grants import Checkpoints, Grants  # noqa: E402
from frontdesk_testing.store_isolation import Isolation  # noqa: E402
from frontdesk_testing.store_leaderships import Leaderships  # noqa: E402
from frontdesk_testing.store_leases import Leases  # noqa: E402
from frontdesk_testing.store_ledger import Ledger  # noqa: E402
from frontdesk_testing.store_links import Links  # noqa: E402
from frontdesk_testing.store_live import LiveAnswers  # noqa: E402
from frontdesk_testing.store_nonces import Nonces  # noqa: E402
from frontdesk_testing.store_outbox import Outbox  # noqa: E402
from frontdesk_testing.store_people import Identities  # noqa: E402
from frontdesk_testing.store_quarantine import LostEvents  # noqa: E402
from frontdesk_testing.store_run_lists import RunChains, RunLists, Watchers  # noqa: E402
from frontdesk_testing.store_runs import Approvals, Runs  # noqa: E402
from frontdesk_testing.store_sessions import History, SessionNames  # noqa: E402
from frontdesk_testing.store_tasks import Tasks  # noqa: E402
from frontdesk_testing.store_titles import SessionTitles  # noqa: E402
from frontdesk_testing.store_transactions import Transactions  # noqa: E402


class StoreContract(
    SessionNames,
    SessionTitles,
    Leases,
    History,
    Identities,
    Links,
    Grants,
    Runs,
    RunChains,
    RunLists,
    Watchers,
    Background,
    Approvals,
    Answers,
    Decisions,
    Checkpoints,
    Inbox,
    ControlEvents,
    CancelledEvents,
    Bundles,
    Albums,
    LostEvents,
    Outbox,
    LiveAnswers,
    Tasks,
    Conversations,
    Nonces,
    Leaderships,
    ChannelValues,
    ConversationAliases,
    Files,
    Ledger,
    Transactions,
    Isolation,
):
    """The contract of a store. A subclass has a fixture `store` that returns an empty, open store."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def store(self) -> HostStateStore:
        """Return an empty, open store, a new one for each test."""
        raise NotImplementedError("a store's contract needs a fixture called `store`")

    async def test_it_says_whether_it_is_durable(self, store: HostStateStore) -> None:
        assert store.durable in (True, False)
