"use strict";

const byId = (id) => document.getElementById(id);
const view = { user: 0, chat: 0, changes: -1, state: null, replyTo: null, editing: null, told: new Set(), round: 0 };

async function post(action, body) {
  const answer = await fetch(`people/${action}`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  const result = await answer.json();
  if (!answer.ok) {
    byId("status").textContent = result.error;
    throw new Error(result.error);
  }
  return result;
}

function element(name, text, properties = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  return Object.assign(made, properties);
}

const TAGS = {
  bold: "b", italic: "i", underline: "u", strikethrough: "s", code: "code", pre: "pre",
  blockquote: "blockquote", expandable_blockquote: "blockquote", spoiler: "span", text_link: "a", url: "a",
};

// Offsets of entities count UTF-16 units, and so do strings here.
function formatted(text, entities, begin = 0, end = text.length) {
  const parts = document.createDocumentFragment();
  let at = begin;
  for (let index = 0; index < entities.length; index++) {
    const entity = entities[index];
    if (entity.offset < at) continue;
    const until = Math.min(entity.offset + entity.length, end);
    parts.append(text.slice(at, entity.offset));
    const inner = entities.slice(index + 1).filter((other) => other.offset < until);
    const made = element(TAGS[entity.type] || "span", "");
    if (entity.type === "spoiler") made.className = "spoiler";
    if (made.tagName === "A") {
      const address = entity.url || text.slice(entity.offset, until);
      if (/^https?:/.test(address)) Object.assign(made, { href: address, rel: "noreferrer", target: "_blank" });
    }
    made.append(formatted(text, inner, entity.offset, until));
    parts.append(made);
    at = until;
  }
  parts.append(text.slice(at, end));
  return parts;
}

// Texts of blocks are strings, lists of them, or objects with a style around them.
function richText(text) {
  const parts = document.createDocumentFragment();
  if (typeof text === "string") parts.append(text);
  else if (Array.isArray(text)) parts.append(...text.map(richText));
  else if (text) {
    const made = element(TAGS[text.type] || "span", "");
    if (text.type === "spoiler") made.className = "spoiler";
    if (/^https?:/.test(text.url || "")) Object.assign(made, { href: text.url, rel: "noreferrer", target: "_blank" });
    made.append(richText(text.text || text.expression || text.alternative_text || ""));
    parts.append(made);
  }
  return parts;
}

function richBlock(block) {
  const tags = { paragraph: "p", heading: `h${block.size}`, pre: "pre", footer: "footer", divider: "hr", list: "ul",
    blockquote: "blockquote", table: "table", details: "details" };
  const made = element(tags[block.type] || "div", "");
  if (block.type === "details") made.append(element("summary", ""));
  if (block.summary) made.firstChild.append(richText(block.summary));
  if (block.text) made.append(richText(block.text));
  for (const item of block.items || []) {
    const line = element("li", "");
    const mark = item.has_checkbox ? (item.is_checked ? "☑" : "☐") : item.label;
    line.append(element("span", `${mark} `), ...item.blocks.map(richBlock));
    made.append(line);
  }
  for (const row of block.cells || []) {
    const line = made.insertRow();
    for (const cell of row) {
      const box = element(cell.is_header ? "th" : "td", "");
      box.style.textAlign = cell.align;
      box.append(richText(cell.text || ""));
      line.append(box);
    }
  }
  made.append(...(block.blocks || []).map(richBlock));
  return made;
}

function name(chat) {
  return chat.type === "private" ? view.state.bot.first_name : chat.title;
}

function showPeople() {
  const users = view.state.users;
  if (!users.some((user) => user.id === view.user)) view.user = users.length ? users[0].id : 0;
  byId("user").replaceChildren(...users.map((user) => new Option(user.first_name, user.id, false, user.id === view.user)));
  const chats = view.state.chats;
  if (!chats.some((chat) => chat.id === view.chat)) view.chat = view.user;
  byId("chats").replaceChildren(...chats.map((chat) => {
    const button = element("button", name(chat), { type: "button" });
    button.setAttribute("aria-pressed", String(chat.id === view.chat));
    button.onclick = () => open(chat.id);
    return button;
  }));
}

function open(chat) {
  Object.assign(view, { chat, changes: -1, replyTo: null, editing: null });
  refresh();
}

function tool(label, act) {
  return element("button", label, { type: "button", onclick: act });
}

function shownMessage(message, mine) {
  const box = element("div", "", { className: "message" });
  if (message.service) {
    box.classList.add("service");
    box.textContent = `${message.sender}: the chat has changed`;
    return box;
  }
  box.classList.toggle("mine", mine);
  box.append(element("div", message.sender, { className: "sender" }));
  const notes = [message.media, message.reply_to && `reply to ${message.reply_to}`, message.edited && "edited"];
  const note = notes.filter(Boolean).join(", ");
  if (note) box.append(element("div", note, { className: "note" }));
  if (message.blocks.length) {
    const rich = element("div", "", { className: "rich" });
    rich.append(...message.blocks.map(richBlock));
    box.append(rich);
  } else box.append(formatted(message.text, message.entities));
  const rows = element("div", "", { className: "buttons" });
  for (const labels of message.buttons) {
    const row = element("div", "", { className: "row" });
    row.append(...labels.map((label) => tool(label, () => post("press", {
      user: view.user, chat: view.chat, message_id: message.message_id, button: label,
    }))));
    rows.append(row);
  }
  const tools = element("div", "", { className: "tools" });
  tools.append(tool("reply", () => { view.replyTo = message.message_id; context(`Reply to ${message.text}`); }));
  if (mine) {
    tools.append(tool("edit", () => {
      view.editing = message.message_id;
      byId("text").value = message.text;
      context("Edit");
    }));
    tools.append(tool("delete", () => post("change", {
      user: view.user, chat: view.chat, message_id: message.message_id,
    })));
  }
  box.append(rows, tools);
  return box;
}

function context(text) {
  byId("context").replaceChildren(text, text && tool("cancel", clear));
}

function clear() {
  Object.assign(view, { replyTo: null, editing: null });
  byId("form").reset();
  context("");
}

function showChat() {
  const { transcript, menu, blocked, answers, bot } = view.state;
  if (!transcript) return;
  const list = byId("messages");
  const bottom = list.scrollHeight - list.scrollTop - list.clientHeight < 60;
  const shown = transcript.messages.map((message) => shownMessage(message, message.sender_id === view.user));
  for (const draft of transcript.drafts) {
    const box = element("div", draft || "Thinking…", { className: "message draft" });
    box.append(element("div", "", { className: "buttons" }));
    box.lastChild.append(tool("Stop", () => post("act", { user: view.user, action: "stop" })));
    shown.push(box);
  }
  list.replaceChildren(...shown);
  if (bottom) list.scrollTop = list.scrollHeight;
  byId("status").textContent = transcript.actions.length ? `${bot.first_name}: ${transcript.actions.join(", ")}…` : "";
  for (const answer of answers) {
    if (view.told.has(answer.id)) continue;
    view.told.add(answer.id);
    byId("status").textContent = answer.text;
  }
  const act = (action) => () => post("act", { user: view.user, action });
  const extra = view.chat === view.user
    ? [tool("Start", act("start")), blocked ? tool("Unblock", act("unblock")) : tool("Block", act("block"))] : [];
  const commands = Object.entries(menu).map(([command, description]) => {
    const button = tool(`/${command}`, () => post("say", { user: view.user, chat: view.chat, text: `/${command}`, thread: topic() }));
    button.title = description;
    return button;
  });
  byId("menu").replaceChildren(...extra, ...commands);
}

function showTopics() {
  const chat = view.state.chats.find((chat) => chat.id === view.chat);
  const select = byId("topic");
  select.hidden = !chat || !(chat.is_forum || chat.topics.length);
  if (select.hidden) return;
  const before = select.value;
  const options = chat.topics.map((entry) => new Option(entry.name, entry.message_thread_id));
  select.replaceChildren(new Option("General", ""), ...options, new Option("New topic…", "new"));
  select.value = [...select.options].some((option) => option.value === before) ? before : "";
}

const topic = () => (byId("topic").hidden || !byId("topic").value ? null : Number(byId("topic").value));

async function refresh() {
  const round = ++view.round;
  while (round === view.round) {
    try {
      const query = new URLSearchParams({ after: view.changes, chat: view.chat, user: view.user });
      const state = await (await fetch(`people/state?${query}`)).json();
      if (round !== view.round) return;
      view.state = state;
      view.changes = state.changes;
      const [user, chat] = [view.user, view.chat];
      showPeople();
      showTopics();
      if (user !== view.user || chat !== view.chat) view.changes = -1;
      else showChat();
    } catch (error) {
      byId("status").textContent = "The fake does not answer.";
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

function ask(question, withOption) {
  byId("question").textContent = question;
  byId("option").hidden = !withOption;
  byId("answer").value = "";
  const dialog = byId("dialog");
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? byId("answer").value.trim() : ""), { once: true });
  });
}

const KINDS = { image: "photo", audio: "audio", video: "video" };

async function attachment() {
  const [file] = byId("file").files;
  if (!file) return null;
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { kind: KINDS[file.type.split("/")[0]] || "document", name: file.name, content: btoa(text) };
}

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = byId("text").value;
  if (view.editing !== null) {
    await post("change", { user: view.user, chat: view.chat, message_id: view.editing, text });
  } else {
    const body = { user: view.user, chat: view.chat, text, thread: topic(), reply_to: view.replyTo };
    await post("say", { ...body, file: await attachment() });
  }
  const before = byId("topic").value;
  clear();
  byId("topic").value = before;
});

byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    byId("form").requestSubmit();
  }
});

byId("user").addEventListener("change", () => {
  view.user = Number(byId("user").value);
  open(view.user);
});

byId("topic").addEventListener("change", async () => {
  if (byId("topic").value !== "new") return;
  byId("topic").value = "";
  const called = await ask("Name of the topic", false);
  if (!called) return;
  const made = await post("topic", { user: view.user, chat: view.chat, name: called });
  byId("topic").append(new Option(made.name, made.message_thread_id));
  byId("topic").value = made.message_thread_id;
});

byId("new-user").addEventListener("click", async () => {
  const called = await ask("Name of the person", false);
  if (!called) return;
  const made = await post("user", { first_name: called });
  view.user = made.id;
  open(made.id);
});

byId("new-group").addEventListener("click", async () => {
  const called = await ask("Title of the group", true);
  if (!called) return;
  const users = [view.user, ...view.state.users.map((user) => user.id).filter((id) => id !== view.user)];
  open((await post("group", { title: called, users, forum: byId("forum").checked })).id);
});

refresh();
