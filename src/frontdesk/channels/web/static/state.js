// What the page shows, and the one function that changes it by the events of the feed.

import { noteChange } from "./announce.js";
import { families, holder } from "./branches.js";

const MOST_SHOWN = 200; // Of more messages than these, the oldest are dropped while the reader is at the end.

export const nothingElsewhere = () => ({ messages: new Map(), before: null, since: 0 });

export function newState() {
  return {
    me: null,
    chats: new Map(),
    current: "main",
    messages: new Map(),
    opening: true, // Whether the messages of the first conversation are still to come.
    elsewhere: nothingElsewhere(), // What was said in the conversation on other channels.
    hasEarlier: false,
    hasLater: false, // Whether an earlier part of the conversation is shown, and not its end.
    editing: null, // The message that is being changed, with the files that it keeps and gets.
    search: null,
    pending: [], // What was written and is not among the messages yet, of all conversations.
    attached: [],
    problem: null,
    said: "",
    questions: new Map(),
    forms: new Map(),
    online: true,
    drawer: false,
    dialog: null,
    failure: null,
    stopping: "", // The conversation in which an answer is being stopped.
    news: [], // What is still to be announced to screen readers.
  };
}

export function setChat(state, chat) {
  const until = chat.busy ? performance.now() + chat.busy * 1000 : 0;
  state.chats.set(chat.id, { ...chat, busyUntil: until });
}

export function isBusy(state) {
  return (state.chats.get(state.current)?.busyUntil ?? 0) > performance.now();
}

export function setMessage(state, message) {
  const before = state.messages.get(message.number);
  if (message.client_id) state.pending = state.pending.filter((one) => one.client_id !== message.client_id);
  if (message.state === "removed") return void state.messages.delete(message.number);
  // What was read of the text stays with it, so that only what is new is read.
  state.messages.set(message.number, { ...message, parsed: before?.parsed });
}

// Tells whether the event could be applied; if not, the conversation has to be read again.
export function apply(state, event) {
  if (event.type === "chat") setChat(state, event.chat);
  else if (event.type === "gone") state.chats.delete(event.id);
  else if (event.type === "reset") return false;
  else if (!isShown(state, event)) return true;
  else if (event.type === "message") {
    const before = state.messages.get(event.message.number);
    setMessage(state, event.message);
    noteChange(state, before, event.message);
  }
  else if (event.type === "delta") return grow(state, event);
  else if (event.type === "notes") return note(state, event);
  return true;
}

// Whether an event is about a message of the conversation that is open; a branch shows those that it has in common too.
function isShown(state, event) {
  const number = event.message?.number ?? event.number;
  if (state.hasLater && number > Math.max(...state.messages.keys())) return false;
  return holder(state.chats, state.current, number) === event.chat;
}

function note(state, event) {
  const message = state.messages.get(event.number);
  if (!message || (message.epoch ?? 0) !== event.epoch) return false;
  message.tools = event.tools;
  message.citations = event.citations;
  return true;
}

function grow(state, event) {
  const message = state.messages.get(event.number);
  if (!message || (message.epoch ?? 0) !== event.epoch || (message.length ?? 0) !== event.from) return false;
  message.text = (message.text ?? "") + event.text;
  message.length = event.length;
  return true;
}

export function shown(state) {
  return [...state.messages.values()].sort((one, other) => one.number - other.number);
}

// The last message of one's own that was no command.
export function lastSaid(state) {
  const said = shown(state).filter((message) => message.role === "user");
  const last = said[said.length - 1];
  return last && !last.text?.startsWith("/") ? last : null;
}

// Puts an earlier part of what was said elsewhere before what is known of it.
export function addElsewhere(state, { messages, before, since }) {
  for (const message of messages) state.elsewhere.messages.set(message.id, { ...message, isElsewhere: true });
  Object.assign(state.elsewhere, { before, since });
}

// Which of both has to be read further for the conversation to be shown further back; null if all of it is shown.
export function earlier(state) {
  const from = state.hasEarlier ? (shown(state)[0]?.at ?? Infinity) : 0;
  const there = state.elsewhere.before === null ? 0 : state.elsewhere.since;
  if (!state.hasEarlier && state.elsewhere.before === null) return null;
  return state.hasEarlier && from >= there ? "here" : "elsewhere";
}

// All messages in the order in which they were said, from the time on from which none is missing.
export function together(state) {
  const own = shown(state);
  const { messages, before, since } = state.elsewhere;
  if (!messages.size && before === null) return own;
  const from = Math.max(state.hasEarlier ? (own[0]?.at ?? 0) : 0, before === null ? 0 : since);
  const to = state.hasLater ? (own[own.length - 1]?.at ?? Infinity) : Infinity;
  const others = [...messages.values()].filter((message) => message.at >= from && message.at <= to);
  const merged = [];
  others.sort((one, other) => one.at - other.at);
  for (const message of own) {
    while (others.length && others[0].at < message.at) merged.push(others.shift());
    if (message.at >= from) merged.push(message);
  }
  return [...merged, ...others];
}

export function trim(state) {
  const numbers = [...state.messages.keys()].sort((one, other) => one - other);
  if (numbers.length <= MOST_SHOWN) return;
  for (const number of numbers.slice(0, numbers.length - MOST_SHOWN)) state.messages.delete(number);
  state.hasEarlier = true;
}

// The version of the main conversation that was used last: what was edited there stays edited.
export const home = (state) => families(state.chats).find(({ root }) => root.id === "main")?.latest.id ?? "main";

// The address names a conversation, and perhaps a message in it: `#id` or `#id/number`.
export function wanted(hash) {
  const [id, number] = decoded(hash.slice(1)).split("/");
  return [id, /^[1-9]\d{0,9}$/.test(number ?? "") ? Number(number) : null];
}

// People can write anything into the address, such as a single `%`.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
