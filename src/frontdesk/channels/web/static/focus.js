// Keeps the focus: without this, it falls to the body when the element that has it is removed.

// Calls `draw`, and moves the focus from an element that is gone to what has taken its place, as `find` returns it.
export function keepFocus(draw, find = successor(document.activeElement)) {
  const held = document.activeElement;
  draw();
  if (!held || held.isConnected || document.activeElement !== document.body) return;
  const target = find();
  if (!target) return;
  if (!target.matches("textarea, dialog")) target.tabIndex = -1;
  target.focus({ preventScroll: true });
}

// The card of the message that an element was in, or the message, or else what is used next.
function successor(held) {
  const message = held?.closest(".message");
  const next = document.getElementById(held?.matches(".earlier") ? "log" : "text");
  return () => (message?.isConnected ? (message.querySelector(".card") ?? message) : next);
}
