"""Longer texts of the concierge: the story of the house, and what there is to see, with its sources."""

from collections.abc import Mapping
from typing import Final

TABLE: Final = (
    "The restaurant has a desk of its own, and asks with a form: its page is at /restaurant/chat, beside this one."
)

SIGHTS: Final = """\
Three things are worth a walk:

1. **The lighthouse** on the point: 142 steps, and a keeper who counts them aloud.
2. **The orchard of bitter oranges**, without which there would be no marmalade, and no Marmalade.
3. **The harbour museum**, open whenever its cat is in."""
SIGHT_SOURCES: Final[Mapping[str, str]] = {
    "The lighthouse: opening days and steps": "https://lighthouse.example/visit",
    "Bitter oranges of the bay": "https://orchard.example/history",
    "The harbour museum (and its cat)": "https://museum.example/",
}

STORY: Final = """\
# The story of the house

The Marmalade was built in **1871** as a jam factory. The smell has never quite left the attic, and guests on the top \
floor dream of breakfast.

## How it became a hotel

- In 1904 a storm took the chimney, and the boiling stopped.
- In 1911 the owner's sister, *Augusta*, let the first room to a painter who could not pay. His picture of the boat \
still hangs above the desk.
- In 1962 the clock above the desk stopped. It was asked to go on, and declined.

## The rooms, then and now

| room | was once | costs a night |
| --- | --- | --- |
| attic | the sugar store | 80 euros |
| garden | the cart shed | 110 euros |
| sea view | the tasting room | 150 euros |

## The recipe

Augusta wrote it down for the cook, who was an engineer:

```python
oranges, sugar, hours = 12, 2.5, 3
while hours > 0:
    stir(oranges, sugar)
    hours -= 0.25
```

> Marmalade is patience with a spoon in it.

That is all that is known for certain. The rest is told at the bar, from five o'clock on."""
