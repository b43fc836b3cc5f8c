// The page in a frame of another site: how it is closed, and what to do where the browser keeps no cookie there.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { say } from "./i18n.js";

export const isEmbedded = window.top !== window;

// Esc closes the frame when there is nothing else that it closes or stops.
const BUSY = "dialog[open], .side.open, button.stop";

if (isEmbedded) {
  addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || document.querySelector(BUSY)) return;
      // The message says nothing that the site around may not know.
      parent.postMessage("frontdesk:close", "*");
    },
    true,
  );
}

// A browser that keeps no cookies in frames can show the page in a tab of its own.
export function openOutside(error) {
  if (!isEmbedded || error.code !== "no_visitor") return nothing;
  return html`<p>${say("embedded_refused")}</p>
    <p><a class="button primary" href=${document.body.dataset.base || "/"} target="_blank" rel="noopener">${say("open_outside")}</a></p>`;
}
