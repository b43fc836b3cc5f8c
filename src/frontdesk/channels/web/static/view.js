// The templates of the page.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";
import { accountButton } from "./account.js";
import { questionCard } from "./card.js";
import { openOutside } from "./embedded.js";
import { attached, limits, shownFiles } from "./files.js";
import { say, sayError } from "./i18n.js";
import { blocks, read } from "./markdown.js";
import { isBusy, shown } from "./state.js";

export function app(state, actions) {
  if (state.failure) return failure(state.failure);
  if (!state.me) return nothing;
  return html`${sidebar(state, actions)}
    <div class="room">
      ${header(state, actions)} ${conversation(state, actions)} ${composer(state, actions)}
    </div>
    ${dialog(state, actions)}
    <div class="hidden" role="log" aria-live="polite">${announcement(state)}</div>`;
}

function failure(error) {
  return html`<main class="failure">
    <h1>${say("error_loading")}</h1>
    <p>${sayError(error)}</p>
    ${openOutside(error)}
    <button type="button" class="primary" @click=${() => location.reload()}>${say("reload")}</button>
  </main>`;
}

const nameOf = (chat) => chat.title || say(chat.id === "main" ? "main" : "untitled");

function sidebar(state, actions) {
  const others = [...state.chats.values()].filter((chat) => chat.id !== "main");
  others.sort((one, other) => other.at - one.at);
  const chats = [state.chats.get("main") ?? { id: "main" }, ...others];
  return html`<nav class="side ${state.drawer ? "open" : ""}" aria-label=${say("conversations")}>
      <button type="button" class="new" @click=${actions.newChat}>${icon("plus")}<span>${say("new")}</span></button>
      <ul>
        ${repeat(
          chats,
          (chat) => chat.id,
          (chat) => html`<li>
            <a
              href="#${chat.id}"
              aria-current=${chat.id === state.current ? "page" : nothing}
              @click=${() => actions.closeDrawer()}
              ><bdi>${nameOf(chat)}</bdi>${isWorking(chat) ? html`<span class="dot" title=${say("working")}></span>` : nothing}</a
            >
          </li>`,
        )}
      </ul>
    </nav>
    ${state.drawer ? html`<div class="shade" @click=${actions.closeDrawer}></div>` : nothing}`;
}

const isWorking = (chat) => (chat.busyUntil ?? 0) > performance.now();

function header(state, actions) {
  const chat = state.chats.get(state.current);
  const isOwn = chat && chat.id !== "main";
  return html`<header>
    <button
      type="button"
      class="icon menu"
      aria-expanded=${String(state.drawer)}
      aria-label=${say(state.drawer ? "close_conversations" : "open_conversations")}
      @click=${actions.toggleDrawer}
    >
      ${icon("menu")}
    </button>
    ${state.me.logo ? html`<img class="logo" src=${state.me.logo} alt="" />` : nothing}
    <div class="titles">
      <h1>${state.me.title}</h1>
      ${isOwn ? html`<p><bdi>${nameOf(chat)}</bdi></p>` : nothing}
    </div>
    ${isOwn
      ? html`<button type="button" class="icon" aria-label=${say("rename")} title=${say("rename")} @click=${actions.askTitle}>
            ${icon("pen")}
          </button>
          <button type="button" class="icon" aria-label=${say("delete")} title=${say("delete")} @click=${actions.askDelete}>
            ${icon("bin")}
          </button>`
      : nothing}
    ${accountButton()}
    <button type="button" class="icon" aria-label=${say("theme")} title=${say("theme")} @click=${actions.switchTheme}>
      ${icon("theme")}
    </button>
  </header>`;
}

function conversation(state, actions) {
  const messages = shown(state);
  const isEmpty = !messages.length && !state.pending.length;
  return html`<main id="log" tabindex="-1" @scroll=${actions.scrolled}>
    <h2 class="hidden">${nameOf(state.chats.get(state.current) ?? { id: state.current })}</h2>
    ${state.hasEarlier
      ? html`<button type="button" class="earlier" @click=${actions.loadEarlier}>${say("earlier")}</button>`
      : nothing}
    ${isEmpty ? welcome(state, actions) : nothing}
    <ol class="messages">
      ${repeat(
        messages,
        (message) => message.client_id || message.number,
        (message) => entry(message, state, actions),
      )}
      ${repeat(
        state.pending,
        (message) => message.client_id,
        (message) => unsent(message, actions),
      )}
    </ol>
    ${isBusy(state) ? html`<p class="working"><span></span><span></span><span></span>${say("working")}</p>` : nothing}
  </main>`;
}

function welcome(state, actions) {
  return html`<div class="welcome">
    <p class="greeting">${state.me.greeting || say("empty")}</p>
    <div class="prompts">
      ${state.me.prompts.map((prompt) => html`<button type="button" @click=${() => actions.send(prompt)}>${prompt}</button>`)}
    </div>
  </div>`;
}

function entry(message, state, actions) {
  const role = message.role ?? "assistant";
  return html`<li class="message ${role} ${message.state ?? "done"}">
    <span class="hidden">${say(role === "user" ? "you" : role)}</span>
    ${message.origin ? html`<p class="origin">${say("from", { channel: message.origin })}</p>` : nothing}
    ${message.text ? body(message, role) : nothing} ${shownFiles(message.files)}
    ${message.question ? questionCard(message, state.questions.get(message.question.approval_id), actions) : nothing}
    ${message.buttons?.length ? choices(message, actions) : nothing}
    ${message.code === "failed" && isLast(message, state)
      ? html`<div class="actions"><button type="button" @click=${actions.askAgain}>${say("retry")}</button></div>`
      : nothing}
    ${message.state === "stopped" ? html`<p class="muted">${say("stopped")}</p>` : nothing}
  </li>`;
}

const isLast = (message, state) => message.number === (state.chats.get(state.current)?.last ?? 0);

function body(message, role) {
  // What people write themselves is shown as they wrote it.
  if (role === "user") return html`<div class="bubble" dir="auto">${message.text}</div>`;
  message.parsed = read(message.text, message.parsed, message.state !== "live");
  return html`<div class="text" dir="auto">${blocks(message.parsed.tokens)}</div>`;
}

function choices(message, actions) {
  return html`<div class="actions">
    ${message.buttons.map(
      (button) => html`<button type="button" @click=${() => actions.choose(button)}>${button.text}</button>`,
    )}
  </div>`;
}

function unsent(message, actions) {
  return html`<li class="message user ${message.error ? "failed" : "pending"}">
    <span class="hidden">${say("you")}</span>
    <div class="bubble" dir="auto">${message.text || message.files.map((file) => file.name).join(", ")}</div>
    ${message.error
      ? html`<p class="problem" role="alert">
          ${say("not_sent")} ${sayError(message.error)}
          <button type="button" @click=${() => actions.retry(message)}>${say("retry")}</button>
          <button type="button" @click=${() => actions.discard(message)}>${say("discard")}</button>
        </p>`
      : nothing}
  </li>`;
}

function composer(state, actions) {
  return html`<footer>
    ${state.online ? nothing : html`<p class="offline" role="status">${say("connecting")}</p>`}
    ${state.problem ? html`<p class="problem" role="alert">${sayError(state.problem)}</p>` : nothing}
    ${attached(state.attached, actions.detach)}
    <form @submit=${actions.submit} @paste=${actions.pasted}>
      ${state.me.max_files ? attach(state, actions) : nothing}
      <label class="hidden" for="text">${say("message")}</label>
      <textarea
        id="text"
        rows="1"
        dir="auto"
        maxlength=${state.me.max_text}
        placeholder=${say("placeholder")}
        @input=${actions.typed}
        @keydown=${actions.pressed}
      ></textarea>
      ${isBusy(state)
        ? html`<button type="button" class="send stop" aria-label=${say("stop")} title=${say("stop")} @click=${actions.stop}>
            ${icon("stop")}
          </button>`
        : nothing}
      <button type="submit" class="send primary" aria-label=${say("send")} title=${say("send")}>${icon("send")}</button>
    </form>
  </footer>`;
}

function attach(state, actions) {
  return html`<label class="attach" title="${say("attach")}. ${limits(state.me)}">
    ${icon("clip")}
    <input class="hidden" type="file" multiple aria-label="${say("attach")}. ${limits(state.me)}" @change=${actions.chosen} />
  </label>`;
}

function dialog(state, actions) {
  if (!state.dialog) return nothing;
  const isTitle = state.dialog === "title";
  const chat = state.chats.get(state.current) ?? {};
  return html`<dialog aria-labelledby="dialog-title" @close=${actions.closeDialog}>
    <form method="dialog" @submit=${isTitle ? actions.rename : actions.deleteChat}>
      <h2 id="dialog-title">${say(isTitle ? "rename" : "delete")}</h2>
      ${isTitle
        ? html`<label>${say("rename_label")}<input name="title" maxlength="60" required .value=${chat.title ?? ""} /></label>`
        : html`<p>${say("delete_sure")}</p>`}
      <div class="actions">
        <button type="submit" class="primary">${say(isTitle ? "save" : "delete")}</button>
        <button type="button" @click=${actions.closeDialog}>${say("cancel")}</button>
      </div>
    </form>
  </dialog>`;
}

// Whole answers are read aloud, not each piece as it comes.
function announcement(state) {
  const message = state.finished;
  return message ? `${say("assistant")}: ${message.text ?? ""}` : "";
}

const SHAPES = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  clip: "M8 12.5l6-6a3 3 0 0 1 4.2 4.2l-8 8a4.6 4.6 0 0 1-6.5-6.5l8-8",
  pen: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  bin: "M5 7h14M10 7V5h4v2M7 7l1 13h8l1-13",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4v16M12 4a8 8 0 0 1 0 16",
};

const icon = (name) => html`<svg viewBox="0 0 24 24" aria-hidden="true"><path d=${SHAPES[name]} /></svg>`;
