// The list of conversations: search in them, the archive, and the menu of the one that is open.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";
import { families, rootOf } from "./branches.js";
import { say, sayError } from "./i18n.js";
import { icon } from "./icons.js";

export const nameOf = (chat) => chat.title || say(chat.id === "main" ? "main" : "untitled");

export function nameIn(state, id) {
  const root = rootOf(state.chats, id);
  return nameOf(state.chats.get(root) ?? { id: root });
}

export function sidebar(state, actions) {
  const all = families(state.chats);
  const archived = all.filter((family) => family.root.archived);
  return html`<nav class="side ${state.drawer ? "open" : ""}" aria-label=${say("conversations")}>
      <button type="button" class="new" @click=${actions.newChat}>${icon("plus")}<span>${say("new")}</span></button>
      <label class="search">
        <span class="hidden">${say("search")}</span>
        <input type="search" id="search" maxlength="200" placeholder=${say("search")} @input=${actions.search} />
      </label>
      ${state.search ? results(state, actions) : rows(all.filter((family) => !family.root.archived), state, actions)}
      ${archived.length && !state.search
        ? html`<details class="archive">
            <summary>${say("archived", { count: archived.length })}</summary>
            ${rows(archived, state, actions)}
          </details>`
        : nothing}
    </nav>
    ${state.drawer ? html`<div class="shade" @click=${actions.closeDrawer}></div>` : nothing}`;
}

function rows(list, state, actions) {
  const current = rootOf(state.chats, state.current);
  return html`<ul>
    ${repeat(
      list,
      ({ root }) => root.id,
      ({ root, latest, busyUntil }) => html`<li>
        <a
          href="#${root.id === current ? state.current : latest.id}"
          aria-current=${root.id === current ? "page" : nothing}
          @click=${() => actions.closeDrawer()}
          ><bdi>${nameOf(root)}</bdi>${busyUntil > performance.now()
            ? html`<span class="dot" title=${say("working")}></span>`
            : nothing}</a
        >
      </li>`,
    )}
  </ul>`;
}

function results(state, actions) {
  const { words, hits, next, busy, error } = state.search;
  const small = words.toLowerCase();
  const titled = families(state.chats).filter(({ root }) => nameOf(root).toLowerCase().includes(small));
  const nothingFound = !busy && !error && !hits.length && !titled.length && !next;
  return html`<div role="region" aria-label=${say("search_results")} aria-busy=${busy ? "true" : "false"}>
    ${titled.length ? rows(titled, state, actions) : nothing}
    <ul>
      ${hits.map(
        (hit) => html`<li>
          <a class="hit" href="#${hit.chat}/${hit.number}" @click=${() => actions.closeDrawer()}
            ><bdi>${nameIn(state, hit.chat)}</bdi><span class="muted" dir="auto">${hit.snippet}</span></a
          >
        </li>`,
      )}
    </ul>
    ${error ? html`<p class="problem" role="alert">${sayError(error)}</p>` : nothing}
    ${nothingFound ? html`<p class="muted" role="status">${say("search_nothing")}</p>` : nothing}
    ${next ? html`<button type="button" aria-disabled=${busy ? "true" : nothing} @click=${() => busy || actions.searchOn()}>${say("search_more")}</button>` : nothing}
  </div>`;
}

export function menu(state, actions) {
  const chat = state.chats.get(state.current);
  if (!chat || chat.id === "main") return nothing;
  const root = state.chats.get(rootOf(state.chats, chat.id));
  const isOwn = root && root.id !== "main";
  const entry = (label, act) => html`<li><button type="button" @click=${(event) => chosen(event, act)}>${label}</button></li>`;
  return html`<details class="more">
    <summary class="icon" aria-label=${say("more")} title=${say("more")}>${icon("more")}</summary>
    <ul>
      ${isOwn ? entry(say("rename"), actions.askTitle) : nothing}
      ${chat.last ? entry(say("everywhere"), actions.askEverywhere) : nothing}
      ${isOwn ? entry(say(root.archived ? "unarchive" : "archive"), actions.archive) : nothing}
      ${entry(say(isOwn ? "delete" : "delete_branch"), actions.askDelete)}
    </ul>
  </details>`;
}

function chosen(event, act) {
  event.currentTarget.closest("details").open = false;
  act();
}
