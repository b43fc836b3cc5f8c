"""Updates of a bot, by polling or by a webhook."""

import re
from urllib.parse import urlsplit

from frontdesk_testing.telegram.bots import Webhook
from frontdesk_testing.telegram.errors import bad_request, conflict
from frontdesk_testing.telegram.methods.call import Call, Method
from frontdesk_testing.telegram.records import Json
from frontdesk_testing.telegram.schema.load import bot_api

MAX_POLL_SECONDS = 50
_PORTS = (443, 80, 88, 8443)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_SECRET = re.compile(r"[A-Za-z0-9_-]+")
_ACTIVE = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"


async def get_updates(call: Call) -> list[Json]:
    """Return the pending updates, or wait for the next ones."""
    if call.bot.webhook.url:
        raise conflict(_ACTIVE)
    _allow(call)
    limit = min(max(call.get("limit", 100), 1), 100)
    timeout = min(max(call.get("timeout", 0), 0), MAX_POLL_SECONDS)
    return await call.bot.updates.poll(call.get("offset", 0), limit, timeout)


def _allow(call: Call) -> None:
    """Set the allowed kinds of updates. Unknown names are ignored, as by the server."""
    kinds = call.get("allowed_updates")
    if kinds is not None:
        known = bot_api().types["Update"].keys() - {"update_id"}
        call.bot.updates.allow(kind for kind in kinds if kind in known)


def set_webhook(call: Call) -> bool:
    """Set the webhook."""
    url = call.given["url"]
    if not url:
        return delete_webhook(call)
    _check_url(url)
    secret = call.get("secret_token", "")
    if secret and not _SECRET.fullmatch(secret):
        raise bad_request("secret token contains unallowed characters")
    call.world.flood.count_webhook(call.bot.user.id, call.world.clock.now())
    _allow(call)
    if call.get("drop_pending_updates"):
        call.bot.updates.clear()
    most = min(max(call.get("max_connections", 40), 1), 100)
    call.world.webhooks.use(call.bot, Webhook(url, secret, most, call.get("ip_address", "")))
    return True


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise bad_request("invalid webhook URL specified") from None
    if not parts.hostname:
        raise bad_request("invalid webhook URL specified")
    # A server of one's own takes plain HTTP and every port on the local machine.
    if parts.hostname in _LOOPBACK:
        return
    if parts.scheme != "https":
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if port not in _PORTS:
        raise bad_request("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")


def delete_webhook(call: Call) -> bool:
    """Remove the webhook."""
    if call.get("drop_pending_updates"):
        call.bot.updates.clear()
    call.world.webhooks.use(call.bot, Webhook())
    return True


def get_webhook_info(call: Call) -> Json:
    """Return the webhook and its last error."""
    webhook, updates = call.bot.webhook, call.bot.updates
    info: Json = {
        "url": webhook.url,
        "has_custom_certificate": False,
        "pending_update_count": len(updates.list_pending()),
    }
    if webhook.url:
        info["max_connections"] = webhook.max_connections
        info["ip_address"] = webhook.ip_address or "127.0.0.1"
    if webhook.last_error_date is not None:
        info |= {"last_error_date": webhook.last_error_date, "last_error_message": webhook.last_error_message}
    return {**info, "allowed_updates": list(updates.allowed)} if updates.allowed else info


METHODS: dict[str, Method] = {
    "getUpdates": get_updates,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
}
