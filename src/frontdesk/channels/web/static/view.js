// The templates of the page.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";
import { accountButton } from "./account.js";
import { versions } from "./branches.js";
import { questionCard } from "./card.js";
import { editor } from "./editing.js";
import { openOutside } from "./embedded.js";
import { formCard } from "./form.js";
import { attachButton, attached, shownFiles } from "./files.js";
import { say, sayError } from "./i18n.js";
import { icon } from "./icons.js";
import { menu, nameIn, sidebar } from "./list.js";
import { blocks, read } from "./markdown.js";
import { citations, tools } from "./notes.js";
import { isWaiting, unsentIn } from "./outbox.js";
import { earlier, isBusy, lastSaid, together } from "./state.js";

export function app(state, actions) {
  if (state.failure) return failure(state.failure);
  if (!state.me) return nothing;
  return html`${sidebar(state, actions)}
    <div class="room">
      ${header(state, actions)} ${conversation(state, actions)} ${composer(state, actions)}
    </div>
    ${dialog(state, actions)}`;
}

function failure(error) {
  return html`<main class="failure">
    <div role="alert">
      <h1>${say("error_loading")}</h1>
      <p>${sayError(error)}</p>
    </div>
    ${openOutside(error)}
    <button type="button" class="primary" @click=${() => location.reload()}>${say("reload")}</button>
  </main>`;
}

function header(state, actions) {
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
      ${state.current === "main" ? nothing : html`<p><bdi>${nameIn(state, state.current)}</bdi></p>`}
    </div>
    ${menu(state, actions)}
    ${state.me.links ? accountButton() : nothing}
    <button type="button" class="icon" aria-label=${say("theme")} title=${say("theme")} @click=${actions.switchTheme}>
      ${icon("theme")}
    </button>
  </header>`;
}

function conversation(state, actions) {
  const messages = together(state);
  const pending = unsentIn(state, state.current);
  const isEmpty = !state.opening && !messages.length && !pending.length;
  return html`<main id="log" tabindex="-1" @scroll=${actions.scrolled}>
    <h2 class="hidden">${nameIn(state, state.current)}</h2>
    ${earlier(state)
      ? html`<button type="button" class="earlier" @click=${actions.loadEarlier}>${say("earlier")}</button>`
      : nothing}
    ${isEmpty ? welcome(state, actions) : nothing}
    <ol class="messages">
      ${repeat(
        messages,
        (message) => message.client_id || message.number || message.id,
        (message) => entry(message, state, actions),
      )}
      ${repeat(
        pending,
        (message) => message.client_id,
        (message) => unsent(message, actions),
      )}
    </ol>
    ${state.hasLater
      ? html`<button type="button" class="earlier" @click=${actions.toLatest}>${say("latest")}</button>`
      : nothing}
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
  return html`<li class="message ${role} ${message.state ?? "done"}" id="message-${message.number ?? message.id}">
    <span class="hidden">${say(role === "user" ? "you" : role)}</span>
    ${message.origin ? html`<p class="origin">${say("from", { channel: message.origin })}</p>` : nothing}
    ${tools(message)} ${isEdited(message, state) ? editor(message, state, actions) : html`${body(message, role)} ${shownFiles(message.files)}`}
    ${citations(message)}
    ${message.question ? questionCard(message, state.questions.get(message.question.approval_id), actions) : nothing}
    ${message.buttons?.length ? choices(message, actions) : nothing}
    ${message.form ? formCard(message, state.forms.get(message.number), actions) : nothing}
    ${message.code === "failed" && isLast(message, state)
      ? html`<div class="actions"><button type="button" @click=${actions.askAgain}>${say("retry")}</button></div>`
      : nothing}
    ${message.state === "stopped" ? html`<p class="muted">${say("stopped")}</p>` : nothing} ${below(message, role, state, actions)}
  </li>`;
}

// The versions of a message of one's own, and the buttons that make another one.
function below(message, role, state, actions) {
  if (message.state === "live" || message.isElsewhere) return nothing;
  if (role === "user") {
    const all = versions(state, message.number);
    const edits = (message.text || message.files?.length) && !isEdited(message, state);
    if (!all && !edits) return nothing;
    return html`<div class="versions">
      ${all ? turn(all, actions) : nothing}
      ${edits ? small("pen", say("edit"), () => actions.edit(message)) : nothing}
    </div>`;
  }
  const isAnswer = role === "assistant" && !message.form && !message.question && !message.buttons?.length;
  const asked = isAnswer && isLast(message, state) && !isBusy(state) ? lastSaid(state) : null;
  return asked ? html`<div class="versions">${small("again", say("again"), () => actions.resend(asked))}</div>` : nothing;
}

const small = (name, label, act, off = false) =>
  html`<button type="button" class="small" aria-label=${label} title=${label} ?disabled=${off} @click=${act}>${icon(name)}</button>`;

function turn({ ids, place }, actions) {
  const to = (step) => () => actions.open(ids[place + step]);
  return html`${small("back", say("version_before"), to(-1), place === 0)}
    <span>${say("version", { number: place + 1, count: ids.length })}</span>
    ${small("forward", say("version_after"), to(1), place === ids.length - 1)}`;
}

const isLast = (message, state) => message.number === (state.chats.get(state.current)?.last ?? 0);

const isEdited = (message, state) => !message.isElsewhere && state.editing?.number === message.number;

function body(message, role) {
  if (!message.text) return nothing;
  // What people write themselves is shown as they wrote it.
  if (role === "user") return html`<div class="bubble" dir="auto">${message.text}</div>`;
  if (message.is_literal) return html`<div class="text literal" dir="auto">${message.text}</div>`;
  message.parsed = read(message.text, message.parsed, message.state !== "live");
  return html`<div class="text" dir="auto">${blocks(message.parsed.tokens)}</div>`;
}

function choices(message, actions) {
  return html`<div class="actions choices">
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
          ${isWaiting(message) ? say("not_sent_yet") : `${say("not_sent")} ${sayError(message.error)}`}
          <button type="button" @click=${() => actions.retry(message)}>${say("retry")}</button>
          <button type="button" @click=${() => actions.discard(message)}>${say("discard")}</button>
        </p>`
      : nothing}
  </li>`;
}

function composer(state, actions) {
  return html`<footer>
    <div role="status">
      ${state.online ? nothing : html`<p class="offline">${say("connecting")}</p>`}
      ${state.said ? html`<p class="muted">${state.said}</p>` : nothing}
    </div>
    ${state.problem ? html`<p class="problem" role="alert">${sayError(state.problem)}</p>` : nothing}
    ${attached(state.attached, actions.detach)}
    <form @submit=${actions.submit} @paste=${actions.pasted}>
      ${attachButton(state.me, actions.chosen)}
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

const DIALOGS = {
  title: { title: "rename", yes: "save" },
  delete: { title: "delete", yes: "delete" },
  branch: { title: "delete_branch", yes: "delete_branch" },
  everywhere: { title: "everywhere", yes: "everywhere" },
};

function dialog(state, actions) {
  if (!state.dialog) return nothing;
  const { title, yes } = DIALOGS[state.dialog];
  return html`<dialog aria-labelledby="dialog-title" @close=${actions.closeDialog}>
    <form method="dialog" @submit=${actions.confirmed}>
      <h2 id="dialog-title">${say(title)}</h2>
      ${state.dialog === "title"
        ? html`<label
            >${say("rename_label")}<input name="title" maxlength="60" required .value=${nameIn(state, state.current)}
          /></label>`
        : html`<p>${say(`${title}_sure`)}</p>`}
      <div class="actions">
        <button type="submit" class="primary">${say(yes)}</button>
        <button type="button" @click=${actions.closeDialog}>${say("cancel")}</button>
      </div>
    </form>
  </dialog>`;
}
