"""Where answers go, as hooks write it."""

from typing import Any

import pytest

from frontdesk import ChannelIdentity, ResponseTarget


@pytest.mark.parametrize("names", ["abc", [ChannelIdentity("chat", "ann")], [None]])
def test_the_letters_of_one_name_were_taken_for_names(names: Any) -> None:
    with pytest.raises(TypeError, match="channels must be a list of names, got"):
        ResponseTarget.channels(names)


@pytest.mark.parametrize("identities", [[("telegram", "42")], ["telegram:42"], ChannelIdentity("telegram", "42")])
def test_what_was_no_identity_was_an_attribute_error(identities: Any) -> None:
    with pytest.raises(TypeError, match="identities must be a list of ChannelIdentity"):
        ResponseTarget.identities(identities)
