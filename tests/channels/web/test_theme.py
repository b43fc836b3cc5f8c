"""The theme: everything that it can look like can be read, and nothing of it becomes another style."""

from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as some

from frontdesk import AgentFrameworkHost, ChannelConfigurationError
from frontdesk.channels.web import WebChatChannel, WebTheme
from frontdesk.channels.web.theme import contrast
from frontdesk_testing import EchoAgent
from tests.channels.web.test_files import PNG
from tests.channels.web.visiting import open_visitor, web_host

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><script>alert(1)</script><circle r="4"/></svg>'
COLORS = some.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


@given(COLORS)
def test_text_on_the_accent_can_always_be_read(accent: str) -> None:
    theme = WebTheme(accent=accent)
    assert contrast(accent, theme.on_accent) >= 4.5
    assert min(contrast(theme.dark, ground) for ground in ("#14161b", "#1e2128")) >= 4.5
    assert bool(theme.findings()) == (min(contrast(accent, ground) for ground in ("#ffffff", "#f4f5f8")) < 4.5)


def test_contrasts_are_those_of_the_standard() -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    ("theme", "why"),
    [
        (WebTheme(accent="#ffcc00"), "contrast of 1.4"),
        (WebTheme(accent_dark="#333333"), "lighter"),
        (WebTheme(accent="red; } * { display: none"), "must be a colour"),
        (WebTheme(accent="#2f5bd7\n"), "must be a colour"),
        (WebTheme(font='x"; } body { background: url(//evil.example)'), "font"),
        (WebTheme(font="Inter,"), "font"),
        (WebTheme(radius=400), "radius"),
        (WebTheme(logo="nowhere.png"), "can't be read"),
        (WebTheme(logo=b"<html><script>"), "must be a PNG"),
        (WebTheme(logo=PNG + b"x" * 300_000), "at most"),
    ],
)
def test_what_can_t_be_shown_is_a_mistake_of_the_configuration(theme: WebTheme, why: str) -> None:
    with pytest.raises(ChannelConfigurationError, match=why):
        AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel(theme=theme)])


async def test_the_page_loads_the_theme_and_the_logo_runs_nothing(tmp_path: Path) -> None:
    logo = tmp_path / "logo.svg"
    logo.write_bytes(SVG)
    theme = WebTheme(accent="#064", accent_dark="#4fd3a5", radius=4, font="Inter, serif", logo=logo)
    async with web_host(EchoAgent(), theme=theme) as url, open_visitor(url) as ada:
        sheet = (await ada.http.get("/chat")).text.rpartition('rel="stylesheet" href="')[2].partition('"')[0]
        style = await ada.http.get(sheet)
        assert '--accent: #064; --on-accent: #ffffff; --round: 4px; --font: "Inter", serif;' in style.text
        assert "--accent: #4fd3a5; --on-accent: #000000;" in style.text
        picture = await ada.http.get((await ada.get("me"))["logo"])
        assert (picture.headers["content-type"], picture.content) == ("image/svg+xml", SVG)
        assert "sandbox" in picture.headers["content-security-policy"]
        assert picture.headers["x-content-type-options"] == "nosniff"
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            assert (await http.get("/chat/theme/other.css")).status_code == 404
