// The page: loads what there is, follows the feed, and does what its reader asks for.

import { render } from "./vendor/lit-html/lit-html.js";
import { ApiError, get, newId, post, remove } from "./api.js";
import { announce, forgetNews, noteChange, noteOutcome, noteStop } from "./announce.js";
import { rootOf } from "./branches.js";
import { editing } from "./editing.js";
import { Feed } from "./feed.js";
import { readFiles } from "./files.js";
import { keepFocus } from "./focus.js";
import { readForm } from "./form.js";
import { say, sayError } from "./i18n.js";
import { inBrowser } from "./kept.js";
import { loadLexer } from "./markdown.js";
import { isWaiting, Outbox } from "./outbox.js";
import {
  addElsewhere,
  apply,
  earlier,
  home,
  isBusy,
  lastSaid,
  newState,
  nothingElsewhere,
  setChat,
  setMessage,
  together,
  trim,
  wanted,
} from "./state.js";
import { app } from "./view.js";

const state = newState();
const root = document.getElementById("app");
const NEAR = 80; // Whoever is so many pixels from the end at most is kept there.
let atEnd = true;
let scheduled = false;
let expiry = 0;
let feed = null;
let searching = 0;
let lastForm = "";
let readAt = 0; // The cursor of the messages that were read last: whatever has changed since comes by the feed.
let early = null; // The conversation whose messages came with the list of all.
let branched = null; // The branch that was just begun, and the number of the message behind which it is new.
const outbox = new Outbox(state, draw, () => feed?.wake?.());
const narrow = matchMedia("(max-width: 50rem)"); // Where the list of conversations is a drawer.

function draw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    if (atEnd) trim(state);
    paint();
    const log = document.getElementById("log");
    if (log && atEnd) log.scrollTop = log.scrollHeight;
    showForm();
    watchBusy();
  });
}

function paint() {
  keepFocus(() => render(app(state, actions), root));
  announce(state);
}

// A form is shown from its first field on, once.
function showForm() {
  const form = document.querySelector(".messages > :last-child form.card");
  const message = form?.closest(".message");
  if (!message || message.id === lastForm) return;
  lastForm = message.id;
  if (!atEnd) return;
  atEnd = false;
  message.scrollIntoView({ block: "start" });
}

// What is being answered is the host's word, and holds for a time only.
function watchBusy() {
  clearTimeout(expiry);
  const ends = [...state.chats.values()].map((chat) => chat.busyUntil - performance.now()).filter((left) => left > 0);
  if (ends.length) expiry = setTimeout(draw, Math.min(...ends) + 20);
}

async function openChat(id, number = null) {
  state.current = state.chats.has(id) ? id : home(state);
  state.messages.clear();
  state.forms.clear();
  forgetNews(state);
  lastForm = "";
  state.editing = null;
  state.said = "";
  state.problem = null;
  outbox.dropSent();
  atEnd = number === null;
  await loadMessages(number);
  outbox.flush();
}

const AROUND = 10; // So many messages are shown behind the one that an address names.

async function loadMessages(number = null) {
  const chat = state.current;
  const before = number === null ? "" : `?before=${number + AROUND}`;
  const first = number === null && early?.chat === chat ? early : null;
  early = null;
  const { messages, cursor, elsewhere } = first ?? (await get(`conversations/${chat}/messages${before}`));
  readAt = cursor;
  if (chat !== state.current) return;
  state.elsewhere = nothingElsewhere();
  if (elsewhere) addElsewhere(state, elsewhere);
  state.opening = false;
  for (const message of messages) setMessage(state, message);
  noteBranched(chat, messages);
  state.hasEarlier = messages.length > 0 && messages[0].number > 1;
  state.hasLater = number !== null && number + AROUND <= (state.chats.get(chat)?.last ?? 0);
  outbox.keep();
  if (number === null) return draw();
  paint();
  const message = document.getElementById(`message-${number}`);
  message?.scrollIntoView({ block: "center" });
  message?.classList.add("found");
}

// The answer on a branch can be there already when the branch is read.
function noteBranched(chat, messages) {
  if (branched?.chat !== chat) return;
  for (const message of messages) if (message.number > branched.number) noteChange(state, null, message);
  branched = null;
}

async function readEarlier() {
  const chat = state.current;
  const place = earlier(state) === "here" ? "messages" : "elsewhere";
  const before = place === "messages" ? Math.min(...state.messages.keys()) : state.elsewhere.before;
  const read = await get(`conversations/${chat}/${place}?before=${before}`);
  if (chat !== state.current) return;
  if (place === "elsewhere") return addElsewhere(state, read);
  for (const message of read.messages) setMessage(state, message);
  state.hasEarlier = read.messages.length > 0 && read.messages[0].number > 1;
}

// The list of conversations, with the messages of one of them.
async function loadAll(chat = null) {
  const me = await get(chat === null ? "me" : `me?open=${encodeURIComponent(chat)}`);
  early = me.opened && { chat, ...me.opened };
  state.me = me;
  state.chats.clear();
  for (const chat of me.conversations) setChat(state, chat);
  document.title = me.title;
  return me;
}

// What the feed says and what is read of a conversation take turns: what is new is never overwritten by what was read
// before it. What the feed says twice changes nothing, and what does not fit has the conversation read again.
let turn = Promise.resolve();

function inTurn(act) {
  const done = turn.then(act);
  turn = done.catch(() => {});
  return done;
}

async function takeFrame(frame) {
  const ended = isBusy(state);
  const { base } = state.chats.get(state.current) ?? {};
  const isComplete = frame.events.map((event) => apply(state, event)).every(Boolean);
  if (!isComplete) await reload();
  if (!state.chats.has(state.current)) await openChat(base);
  noteStop(state, isBusy(state));
  if (ended !== isBusy(state) || frame.events.length) draw();
  outbox.keep();
}

async function reload() {
  const { me, hasLater } = state;
  const before = new Map(state.messages);
  try {
    await loadAll(state.current);
    state.messages.clear();
    state.hasLater = false;
    await loadMessages();
    // Whoever is linked or unlinked reads another mailbox: what it has is not new.
    if (state.me.box === me.box && !hasLater) noteMissed(before);
  } catch (error) {
    if (!error.isTemporary) fail(error);
  }
}

function noteMissed(before) {
  const last = Math.max(0, ...before.keys());
  for (const message of state.messages.values()) {
    const known = before.get(message.number);
    if (known || message.number > last) noteChange(state, known, message);
  }
  draw();
}

function fail(error) {
  state.failure = error;
  draw();
}

const actions = {
  async send(text, choice = "", files = []) {
    if (state.hasLater) await inTurn(() => openChat(state.current));
    atEnd = true;
    return outbox.add({ chat: state.current, client_id: newId(), text, choice, files });
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
    if (event.key !== "ArrowUp" || event.currentTarget.value) return;
    const mine = lastSaid(state);
    if (!mine) return;
    event.preventDefault();
    actions.edit(mine);
  },
  open(id) {
    location.hash = id;
  },
  toLatest: () => inTurn(() => openChat(state.current)).catch(fail),
  retry(message) {
    if (!isWaiting(message)) message.error = null;
    return outbox.flush();
  },
  discard: (message) => outbox.discard(message),
  askAgain() {
    const asked = lastSaid(state);
    if (asked?.files?.length) actions.resend(asked);
    else if (asked) actions.send(asked.text);
  },
  choose: (button) => actions.send(button.text, button.data),
  async answer(event, message) {
    event.preventDefault();
    const form = event.currentTarget;
    const number = message.number;
    if (state.forms.get(number)?.busy) return;
    const { values, problems } = readForm(form, message.form.fields, `form-${number}`);
    const known = { client_id: state.forms.get(number)?.client_id ?? newId(), problems };
    state.forms.set(number, known);
    const [wrong] = Object.keys(problems);
    if (wrong) {
      draw();
      return void form.elements.namedItem(wrong)?.focus?.();
    }
    known.busy = true;
    atEnd = true;
    draw();
    const body = { client_id: known.client_id, form: { number, values }, locale: document.documentElement.lang };
    try {
      await post(`conversations/${state.current}/messages`, body);
      state.forms.delete(number);
    } catch (error) {
      // What was refused is another message the next time.
      state.forms.set(number, { problems, note: sayError(error), client_id: error.isTemporary ? known.client_id : undefined });
    }
    draw();
  },
  async stop() {
    state.stopping = state.current;
    await post(`conversations/${state.current}/stop`, { client_id: newId() }).catch(fail);
  },
  async newChat() {
    try {
      const { conversation } = await post("conversations", { client_id: newId() });
      setChat(state, conversation);
      actions.open(conversation.id);
    } catch (error) {
      state.problem = error;
    }
    actions.closeDrawer();
    document.getElementById("text").focus();
  },
  search({ currentTarget: box }) {
    clearTimeout(searching);
    const words = box.value.trim();
    state.search = words ? { words, hits: [], next: "", busy: true } : null;
    if (words) searching = setTimeout(actions.searchOn, 250);
    draw();
  },
  // Reads another page of what is searched for.
  async searchOn() {
    const search = state.search;
    if (!search) return;
    search.busy = true;
    draw();
    try {
      const found = await get(`search?q=${encodeURIComponent(search.words)}&after=${encodeURIComponent(search.next)}`);
      search.hits.push(...found.hits);
      search.next = found.next;
    } catch (error) {
      search.error = error;
    }
    search.busy = false;
    draw();
  },
  async loadEarlier() {
    const log = document.getElementById("log");
    const below = log.scrollHeight - log.scrollTop;
    const known = together(state).length;
    // A part of what was said elsewhere can be all that is shown already.
    for (let tries = 0; tries < 5 && earlier(state) && together(state).length <= known; tries++) await readEarlier();
    atEnd = false;
    paint();
    log.scrollTop = log.scrollHeight - below;
  },
  scrolled({ currentTarget: log }) {
    atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
  },
  async loadQuestion(id) {
    state.questions.set(id, { ...state.questions.get(id), error: null, busy: true });
    try {
      const question = await get(`approvals/${encodeURIComponent(id)}`);
      const { note, told } = state.questions.get(id) ?? {};
      state.questions.set(id, { question, note, told });
    } catch (error) {
      state.questions.set(id, { error, told: state.questions.get(id)?.told });
    }
    draw();
  },
  async decide(id, approved) {
    const known = state.questions.get(id);
    if (known.busy) return;
    known.busy = true;
    draw();
    try {
      const path = `approvals/${encodeURIComponent(id)}`;
      const { outcome, question } = await post(path, { approved, digest: known.question.digest });
      const note = outcome === "recorded" ? "" : say(outcome);
      const { told } = state.questions.get(id);
      state.questions.set(id, { question: question ?? known.question, note, told });
      if (note && question && question.status !== "pending") noteLate(id, note);
    } catch (error) {
      state.questions.set(id, { ...known, busy: false, note: say(`error_${error.code}`) });
    }
    draw();
  },
  toggleDrawer() {
    if (state.drawer) return actions.closeDrawer();
    state.drawer = true;
    draw();
  },
  closeDrawer() {
    // What is hidden with the drawer can't keep the focus.
    if (state.drawer && document.activeElement?.closest(".side")) document.querySelector("button.menu").focus();
    state.drawer = false;
    draw();
  },
  // Puts the focus into the list, which is always shown on wide screens.
  showList() {
    if (narrow.matches) actions.toggleDrawer();
    if (state.drawer || !narrow.matches) requestAnimationFrame(() => document.querySelector(".side a[aria-current]")?.focus());
  },
  switchTheme() {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    setTheme(dark ? "light" : "dark");
  },
  askTitle: () => openDialog("title"),
  askDelete: () => openDialog(rootOf(state.chats, state.current) === "main" ? "branch" : "delete"),
  askEverywhere: () => openDialog("everywhere"),
  closeDialog() {
    state.dialog = null;
    draw();
  },
  async confirmed(event) {
    const current = state.current;
    const root = rootOf(state.chats, current);
    const kind = state.dialog;
    const title = new FormData(event.currentTarget).get("title");
    try {
      if (kind === "title") await post(`conversations/${root}`, { title });
      else if (kind === "everywhere") await post(`conversations/${current}/everywhere`, { client_id: newId() });
      else await remove(`conversations/${kind === "branch" ? current : root}`);
      if (kind === "everywhere") state.said = say("everywhere_done");
    } catch (error) {
      state.problem = error;
    }
    draw();
  },
  async archive() {
    const root = rootOf(state.chats, state.current);
    const archived = !state.chats.get(root).archived;
    try {
      await post(`conversations/${root}`, { archived });
      if (archived) actions.open(home(state));
    } catch (error) {
      state.problem = error;
      draw();
    }
  },
};

Object.assign(
  actions,
  editing(state, {
    show() {
      atEnd = false;
      paint();
    },
    async open(chat, number) {
      branched = { chat, number };
      // A frame that comes meanwhile is newer than what is read, and must be applied after it.
      await inTurn(() => loadAll());
      actions.open(chat);
    },
  }),
);

function noteLate(id, note) {
  for (const { number, question } of state.messages.values()) {
    if (question?.approval_id === id) noteOutcome(state, number, id, note);
  }
}

function openDialog(kind) {
  state.dialog = kind;
  paint();
  document.querySelector("dialog").showModal();
}

function setTheme(theme) {
  if (theme) {
    document.documentElement.dataset.theme = theme;
    inBrowser.set("frontdesk-theme", theme);
  }
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll(".more[open]")) if (!menu.contains(except)) menu.open = false;
}

function listen() {
  addEventListener("click", (event) => closeMenus(event.target));
  narrow.addEventListener("change", () => narrow.matches || actions.closeDrawer());
  addEventListener("hashchange", () => inTurn(() => openChat(...wanted(location.hash))).catch(fail));
  addEventListener("keydown", (event) => {
    if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      actions.showList();
    }
    if (event.key !== "Escape" || state.dialog) return;
    if (document.querySelector(".more[open]")) return closeMenus(null);
    if (state.drawer) actions.closeDrawer();
    else if (isBusy(state)) actions.stop();
  });
}

async function start() {
  setTheme(inBrowser.get("frontdesk-theme"));
  try {
    // The browser has begun to read this already: the page names it.
    const me = await loadAll("main");
    const [id] = wanted(location.hash);
    state.current = state.chats.has(id) ? id : home(state);
    outbox.load();
    listen();
    // What can be used is shown first, and what was said a moment later.
    paint();
    document.getElementById("text").focus();
    await loadLexer().catch(() => {
      throw new ApiError("network", "", 0);
    });
    await inTurn(() => openChat(...wanted(location.hash)));
    const online = (isOnline) => {
      if (state.online !== isOnline) {
        state.online = isOnline;
        draw();
        if (isOnline) outbox.flush();
      }
    };
    feed = new Feed(Math.min(me.cursor, readAt), (frame) => inTurn(() => takeFrame(frame)), online, me.box);
    feed.run();
  } catch (error) {
    fail(error);
  }
}

start();
