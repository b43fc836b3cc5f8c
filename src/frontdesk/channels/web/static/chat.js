// The page: loads what there is, follows the feed, and does what its reader asks for.

import { render } from "./vendor/lit-html/lit-html.js";
import { get, newId, post, remove } from "./api.js";
import { Feed } from "./feed.js";
import { readFiles } from "./files.js";
import { loadCatalogue, say } from "./i18n.js";
import { inBrowser, inTab } from "./kept.js";
import { apply, isBusy, newState, setChat, setMessage, shown, trim } from "./state.js";
import { app } from "./view.js";

const state = newState();
const root = document.getElementById("app");
const NEAR = 80; // Whoever is so many pixels from the end at most is kept there.
let atEnd = true;
let scheduled = false;
let expiry = 0;
let feed = null;

function draw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    if (atEnd) trim(state);
    render(app(state, actions), root);
    const log = document.getElementById("log");
    if (log && atEnd) log.scrollTop = log.scrollHeight;
    watchBusy();
  });
}

// What is being answered is the host's word, and holds for a time only.
function watchBusy() {
  clearTimeout(expiry);
  const ends = [...state.chats.values()].map((chat) => chat.busyUntil - performance.now()).filter((left) => left > 0);
  if (ends.length) expiry = setTimeout(draw, Math.min(...ends) + 20);
}

const wanted = () => decodeURIComponent(location.hash.slice(1)) || "main";
const stored = () => `frontdesk-unsent-${state.current}`;

function keepUnsent() {
  // Files are too large to be kept in the tab.
  const small = state.pending.filter((message) => !message.files.length);
  const kept = small.map(({ client_id, text, choice }) => ({ client_id, text, choice, files: [] }));
  if (kept.length) inTab.set(stored(), JSON.stringify(kept));
  else inTab.remove(stored());
}

async function openChat(id) {
  state.current = state.chats.has(id) ? id : "main";
  state.messages.clear();
  state.finished = null;
  state.pending = JSON.parse(inTab.get(stored()) ?? "[]");
  atEnd = true;
  await loadMessages();
  for (const message of [...state.pending]) deliver(message);
}

async function loadMessages() {
  const chat = state.current;
  const { messages } = await get(`conversations/${chat}/messages`);
  if (chat !== state.current) return;
  for (const message of messages) setMessage(state, message);
  state.hasEarlier = messages.length > 0 && messages[0].number > 1;
  keepUnsent();
  draw();
}

async function loadAll() {
  const me = await get("me");
  state.me = me;
  state.chats.clear();
  for (const chat of me.conversations) setChat(state, chat);
  document.title = me.title;
  return me;
}

async function takeFrame(frame) {
  const ended = isBusy(state);
  const isComplete = frame.events.map((event) => apply(state, event)).every(Boolean);
  if (!isComplete) await reload();
  if (!state.chats.has(state.current)) await openChat("main");
  if (ended !== isBusy(state) || frame.events.length) draw();
  keepUnsent();
}

async function reload() {
  try {
    await loadAll();
    state.messages.clear();
    await loadMessages();
  } catch (error) {
    if (!error.isTemporary) fail(error);
  }
}

function fail(error) {
  state.failure = error;
  draw();
}

async function deliver(message) {
  message.error = null;
  draw();
  const { client_id, text, choice } = message;
  const files = message.files.map(({ name, media_type, data }) => ({ name, media_type, data }));
  try {
    await post(`conversations/${state.current}/messages`, {
      client_id,
      text,
      choice,
      files,
      locale: document.documentElement.lang,
    });
    feed?.wake?.();
  } catch (error) {
    message.error = error;
    draw();
  }
}

const actions = {
  send(text, choice = "", files = []) {
    const message = { client_id: newId(), text, choice, files };
    state.pending.push(message);
    atEnd = true;
    keepUnsent();
    return deliver(message);
  },
  submit(event) {
    event.preventDefault();
    const box = document.getElementById("text");
    const text = box.value;
    if (!text.trim() && !state.attached.length) return;
    const files = state.attached;
    state.attached = [];
    state.problem = null;
    box.value = "";
    actions.typed({ currentTarget: box });
    actions.send(text, "", files);
  },
  async attach(chosen) {
    state.problem = null;
    try {
      state.attached.push(...(await readFiles(chosen, state.attached, state.me)));
    } catch (error) {
      state.problem = error;
    }
    draw();
  },
  async chosen({ currentTarget: input }) {
    await actions.attach([...input.files]);
    input.value = "";
    document.getElementById("text").focus();
  },
  pasted(event) {
    if (event.clipboardData.files.length) actions.attach([...event.clipboardData.files]);
  },
  detach(file) {
    state.attached = state.attached.filter((one) => one !== file);
    draw();
  },
  typed({ currentTarget: box }) {
    box.rows = 1;
    const lines = Math.round((box.scrollHeight - 20) / parseFloat(getComputedStyle(box).lineHeight));
    box.rows = Math.max(1, Math.min(8, lines));
  },
  pressed(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) actions.submit(event);
  },
  retry: (message) => deliver(message),
  discard(message) {
    state.pending = state.pending.filter((one) => one !== message);
    keepUnsent();
    draw();
  },
  askAgain() {
    const asked = shown(state).filter((message) => message.role === "user" && message.text);
    if (asked.length) actions.send(asked[asked.length - 1].text);
  },
  choose: (button) => actions.send(button.text, button.data),
  async stop() {
    await post(`conversations/${state.current}/stop`, { client_id: newId() }).catch(fail);
  },
  async newChat() {
    const { conversation } = await post("conversations", { client_id: newId() });
    setChat(state, conversation);
    state.drawer = false;
    location.hash = conversation.id;
    document.getElementById("text").focus();
  },
  async loadEarlier() {
    const first = Math.min(...state.messages.keys());
    const log = document.getElementById("log");
    const below = log.scrollHeight - log.scrollTop;
    const { messages } = await get(`conversations/${state.current}/messages?before=${first}`);
    atEnd = false;
    for (const message of messages) setMessage(state, message);
    state.hasEarlier = messages.length > 0 && messages[0].number > 1;
    render(app(state, actions), root);
    log.scrollTop = log.scrollHeight - below;
  },
  scrolled({ currentTarget: log }) {
    atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
  },
  async loadQuestion(id) {
    state.questions.set(id, { ...state.questions.get(id), error: null, busy: true });
    try {
      const question = await get(`approvals/${encodeURIComponent(id)}`);
      state.questions.set(id, { question, note: state.questions.get(id)?.note });
    } catch (error) {
      state.questions.set(id, { error });
    }
    draw();
  },
  async decide(id, approved) {
    const known = state.questions.get(id);
    known.busy = true;
    draw();
    try {
      const path = `approvals/${encodeURIComponent(id)}`;
      const { outcome, question } = await post(path, { approved, digest: known.question.digest });
      const note = outcome === "recorded" ? "" : say(outcome);
      state.questions.set(id, { question: question ?? known.question, note });
    } catch (error) {
      state.questions.set(id, { ...known, busy: false, note: say(`error_${error.code}`) });
    }
    draw();
  },
  toggleDrawer() {
    state.drawer = !state.drawer;
    draw();
  },
  closeDrawer() {
    state.drawer = false;
    draw();
  },
  switchTheme() {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    setTheme(dark ? "light" : "dark");
  },
  askTitle: () => openDialog("title"),
  askDelete: () => openDialog("delete"),
  closeDialog() {
    state.dialog = null;
    draw();
  },
  async rename(event) {
    const title = new FormData(event.currentTarget).get("title");
    await post(`conversations/${state.current}`, { title }).catch(() => {});
  },
  async deleteChat() {
    await remove(`conversations/${state.current}`).catch(() => {});
  },
};

function openDialog(kind) {
  state.dialog = kind;
  render(app(state, actions), root);
  document.querySelector("dialog").showModal();
}

function setTheme(theme) {
  if (theme) {
    document.documentElement.dataset.theme = theme;
    inBrowser.set("frontdesk-theme", theme);
  }
}

function listen() {
  addEventListener("hashchange", () => openChat(wanted()).catch(fail));
  addEventListener("keydown", (event) => {
    if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      actions.toggleDrawer();
      requestAnimationFrame(() => document.querySelector(".side a[aria-current]")?.focus());
    }
    if (event.key !== "Escape" || state.dialog) return;
    if (state.drawer) actions.closeDrawer();
    else if (isBusy(state)) actions.stop();
  });
}

async function start() {
  setTheme(inBrowser.get("frontdesk-theme"));
  await loadCatalogue(document.body.dataset.files, ["en", "de"]);
  try {
    const me = await loadAll();
    await openChat(wanted());
    listen();
    const online = (isOnline) => {
      if (state.online !== isOnline) {
        state.online = isOnline;
        draw();
      }
    };
    feed = new Feed(me.cursor, takeFrame, online, me.box);
    feed.run();
    document.getElementById("text")?.focus();
  } catch (error) {
    fail(error);
  }
}

start();
