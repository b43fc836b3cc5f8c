// Who the reader is, and how they link this page with their other accounts: a dialog of its own.

import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import { get, post } from "./api.js";
import { isEmbedded } from "./embedded.js";
import { keepFocus } from "./focus.js";
import { say, sayError } from "./i18n.js";

const LOOK = 3000; // Milliseconds between looks while the other side has to do something.
const PERSON = "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20a7 7 0 0 1 14 0";

let account = null;
let note = "";
let problem = "";
let step = "";
let busy = false;
let timer = 0;
let place = null;

export function accountButton() {
  return html`<button type="button" class="icon" aria-label=${say("account")} title=${say("account")} aria-haspopup="dialog" @click=${openAccount}>
    <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${PERSON} /></svg>
  </button>`;
}

export async function openAccount() {
  place ??= document.body.appendChild(document.createElement("div"));
  account = null;
  note = problem = step = "";
  draw();
  place.querySelector("dialog").showModal();
  await change(() => get("account"));
}

// Esc closes the dialog, and does not stop an answer behind it too.
const keep = (event) => event.key === "Escape" && event.stopPropagation();

function close() {
  clearTimeout(timer);
  place.querySelector("dialog")?.close();
}

async function change(call) {
  busy = true;
  problem = "";
  draw();
  try {
    account = await call();
    if (account.url && !isEmbedded) return location.assign(account.url);
    if (account.outcome) note = say(`link_${account.outcome}`);
    step = "";
  } catch (error) {
    problem = sayError(error);
  }
  busy = false;
  draw();
  watch();
}

// The other side acts elsewhere: what it does is seen here after a moment.
function watch() {
  clearTimeout(timer);
  const waits = account && (account.code || account.url || account.question?.waits_for === "other");
  if (waits && place.querySelector("dialog").open) timer = setTimeout(look, LOOK);
}

async function look() {
  const before = account;
  const now = await get("account").catch(() => null);
  if (account !== before || !now) return watch();
  const { code, url, seconds_left } = before;
  const begun = now.question || now.linked !== before.linked ? {} : { code, url, seconds_left };
  if (now.linked && !before.linked) note = say("link_linked");
  account = { ...now, ...begun };
  draw();
  watch();
}

const act = (call) => busy || change(call);
const begin = () => act(() => post("account/link", { embedded: isEmbedded }));
const unlink = () => act(() => post("account/unlink", {}));
const answer = (confirm) => act(() => post("account/answer", { challenge_id: account.question.challenge_id, confirm }));

function enter(event) {
  event.preventDefault();
  const code = new FormData(event.currentTarget).get("code");
  return act(() => post("account/code", { code }));
}

function show(next) {
  if (busy) return;
  step = next;
  note = problem = "";
  draw();
  place.querySelector(next === "enter" ? "input" : ".danger")?.focus();
}

function draw() {
  keepFocus(drawNow, () => place.querySelector("dialog[open]"));
}

function drawNow() {
  render(
    html`<dialog class="account" tabindex="-1" aria-labelledby="account-title" @keydown=${keep} @close=${() => clearTimeout(timer)}>
      <h2 id="account-title">${say("account")}</h2>
      ${account ? who() : html`<p class="muted">${problem ? nothing : say("loading")}</p>`}
      <p class="note" role="status">${note}</p>
      ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing} ${account ? ways() : nothing}
      <div class="actions"><button type="button" @click=${close}>${say("close")}</button></div>
    </dialog>`,
    place,
  );
}

// People choose their names themselves: the id beside one is not theirs to choose.
function person({ name, id, channel }) {
  const isVisitor = !name && channel === account.you.channel;
  const shown = name ? say("person_named", { name, channel }) : isVisitor ? say("visitor") : channel;
  return html`<bdi>${shown}</bdi> <small class="muted"><bdi>${say("person_id", { id })}</bdi></small>`;
}

function who() {
  const { you, name, others, linked } = account;
  return html`<dl>
    <dt>${say("you_are")}</dt>
    <dd>${name ? html`<strong><bdi>${name}</bdi></strong><br />` : nothing}${person(you)}</dd>
    ${account.way
      ? html`<dt>${say("linked_with")}</dt>
          <dd>
            ${others.length
              ? html`<ul>
                  ${others.map((other) => html`<li>${person(other)}</li>`)}
                </ul>`
              : say(linked ? "linked_alone" : "not_linked")}
          </dd>`
      : nothing}
  </dl>`;
}

function ways() {
  if (!account.way) return nothing;
  if (account.question) return question();
  if (account.code) return shownCode();
  if (account.url) return outside();
  if (step === "enter") return entering();
  if (step === "unlink") return parting();
  return html`<div class="actions">
    ${account.way === "sign_in"
      ? html`<button type="button" class="primary" aria-disabled=${busy ? "true" : nothing} @click=${begin}>${say("sign_in")}</button>`
      : html`<button type="button" aria-disabled=${busy ? "true" : nothing} @click=${begin}>${say("show_code")}</button>
          <button type="button" aria-disabled=${busy ? "true" : nothing} @click=${() => show("enter")}>${say("enter_code")}</button>`}
    ${account.linked
      ? html`<button type="button" aria-disabled=${busy ? "true" : nothing} @click=${() => show("unlink")}>${say("unlink")}</button>`
      : nothing}
  </div>`;
}

function shownCode() {
  return html`<section class="card">
    <p>${say("code_how", { minutes: Math.max(1, Math.round(account.seconds_left / 60)) })}</p>
    <p class="linkcode"><output>${account.code}</output></p>
    <p class="muted">${say("code_secret")}</p>
  </section>`;
}

// The pages of a sign-in are shown in no frame.
function outside() {
  return html`<section class="card">
    <p>${say("link_elsewhere")}</p>
    <div class="actions"><a class="button" href=${account.url} target="_blank" rel="noopener">${say("sign_in")}</a></div>
  </section>`;
}

function entering() {
  return html`<form class="card" @submit=${enter}>
    <label
      >${say("code_label")}<input name="code" required maxlength="100" autocomplete="off" autocapitalize="characters" spellcheck="false" dir="ltr"
    /></label>
    <div class="actions">
      <button type="submit" class="primary" aria-disabled=${busy ? "true" : nothing}>${say("continue")}</button>
      <button type="button" @click=${() => show("")}>${say("cancel")}</button>
    </div>
  </form>`;
}

function question() {
  const { other, waits_for: waits } = account.question;
  return html`<section class="card" role="group" aria-labelledby="link-question">
    <h3 id="link-question">${say(waits === "you" ? "is_it_you" : "confirm_there")}</h3>
    <p>${person(other)}</p>
    <p class="muted">${say(waits === "you" ? "link_means" : "confirm_there_how", { channel: other.channel })}</p>
    <div class="actions">
      ${waits === "you"
        ? html`<button type="button" class="primary" aria-disabled=${busy ? "true" : nothing} @click=${() => answer(true)}>${say("link_yes")}</button>`
        : nothing}
      <button type="button" aria-disabled=${busy ? "true" : nothing} @click=${() => answer(false)}>${say("link_no")}</button>
    </div>
  </section>`;
}

function parting() {
  return html`<section class="card" role="group" aria-labelledby="unlink-question">
    <h3 id="unlink-question">${say("unlink_sure")}</h3>
    <p class="muted">${say("unlink_means")}</p>
    <div class="actions">
      <button type="button" class="danger" aria-disabled=${busy ? "true" : nothing} @click=${unlink}>${say("unlink")}</button>
      <button type="button" @click=${() => show("")}>${say("cancel")}</button>
    </div>
  </section>`;
}
