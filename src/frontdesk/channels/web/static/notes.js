// What stands beside the text of an answer: the tools that it has used, and the sources that it cites.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";
import { fields } from "./card.js";
import { say } from "./i18n.js";
import { safe } from "./markdown.js";

const SHORTEST = 0.05; // A call that took fewer seconds was done at once.

export function tools(message) {
  if (!message.tools?.length) return nothing;
  return html`<ul class="tools" aria-label=${say("tools")}>
    ${repeat(
      message.tools,
      (tool) => tool.id,
      (tool) => html`<li class="tool ${tool.state ?? "done"}">${used(tool)}</li>`,
    )}
  </ul>`;
}

function used(tool) {
  const state = tool.state ?? "done";
  const line = html`<span class="mark" aria-hidden="true"></span><code>${tool.name}</code>
    <span class="muted">${say(`tool_${state}`)}${took(tool)}</span>`;
  if (!tool.arguments && !tool.result) return html`<p>${line}</p>`;
  return html`<details>
    <summary>${line}</summary>
    ${tool.arguments ? html`<p class="muted">${say("tool_arguments")}</p>${fields(tool.arguments)}` : nothing}
    ${tool.result ? html`<p class="muted">${say("tool_result")}</p><pre tabindex="0">${tool.result}</pre>` : nothing}
  </details>`;
}

function took(tool) {
  if (!(tool.seconds >= SHORTEST)) return "";
  const digits = tool.seconds < 10 ? 1 : 0;
  const number = tool.seconds.toLocaleString(document.documentElement.lang, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return ` · ${say("seconds", { number })}`;
}

export function citations(message) {
  if (!message.citations?.length) return nothing;
  return html`<section class="sources" aria-label=${say("sources")}>
    <p class="muted">${say("sources")}</p>
    <ol>
      ${message.citations.map((source) => html`<li>${cited(source)}</li>`)}
    </ol>
  </section>`;
}

function cited(source) {
  const target = source.url ? safe(source.url) : null;
  const title = html`<bdi>${source.title}</bdi>`;
  return target ? html`<a href=${target} target="_blank" rel="noopener noreferrer nofollow">${title}</a>` : title;
}
