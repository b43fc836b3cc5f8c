// Markdown as templates: the text of an answer never becomes HTML. Raw HTML is shown as text, links have one of a few
// schemes, and a picture of another site is a link.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";
import { say } from "./i18n.js";

const LONG = 20000; // From so many characters on, a text that grows is read from its last blocks on.
const REREAD = 2;
const SCHEMES = ["http:", "https:", "mailto:"];
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", hellip: "…" };
const LARGEST = 0x10ffff;
// The host escapes these in texts on which a person decides, and an entity must not bring them back.
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;

let lexer = null;

// A page can be used before there is something to read, so this is loaded behind what it shows first.
export async function loadLexer() {
  if (lexer === null) ({ lexer } = await import("./vendor/marked/marked.esm.js"));
}

// The blocks of a text; `before` is what was read of it when it was shorter.
export function read(text, before, whole) {
  const source = text.replace(/\r\n?/g, "\n");
  if (before?.source === source && (before.whole || !whole)) return before;
  let kept = [];
  if (!whole && before && source.length > LONG && source.startsWith(before.source)) {
    kept = before.tokens.slice(0, -REREAD);
  }
  const start = kept.reduce((sum, token) => sum + token.raw.length, 0);
  return { source, whole, tokens: [...kept, ...lexer(source.slice(start), { gfm: true })] };
}

export const blocks = (tokens) => repeat(tokens, (token, index) => `${index}${token.type}`, block);

function block(token) {
  switch (token.type) {
    case "space":
    case "def":
      return nothing;
    case "heading":
      return heading(token.depth, inlines(token.tokens));
    case "code":
      return code(token);
    case "hr":
      return html`<hr />`;
    case "blockquote":
      return html`<blockquote>${blocks(token.tokens)}</blockquote>`;
    case "list":
      return list(token);
    case "table":
      return table(token);
    case "paragraph":
      return html`<p>${inlines(token.tokens)}</p>`;
    case "text":
      return token.tokens ? inlines(token.tokens) : plain(token.text);
    case "html":
      return html`<p>${token.raw}</p>`;
    default:
      return inline(token);
  }
}

// The page's own headings come first, so that those of an answer begin at the third level.
function heading(depth, content) {
  if (depth === 1) return html`<h3>${content}</h3>`;
  if (depth === 2) return html`<h4>${content}</h4>`;
  return depth === 3 ? html`<h5>${content}</h5>` : html`<h6>${content}</h6>`;
}

function code(token) {
  const language = (token.lang || "").split(/\s/)[0];
  return html`<figure class="code">
    <figcaption>
      <span>${language || say("code")}</span>
      <button type="button" @click=${(event) => copy(event.currentTarget, token.text)} aria-label=${say("copy_code")}>
        ${say("copy")}
      </button>
    </figcaption>
    <pre tabindex="0"><code>${token.text}</code></pre>
  </figure>`;
}

async function copy(button, text) {
  await navigator.clipboard.writeText(text);
  button.textContent = say("copied");
  setTimeout(() => (button.textContent = say("copy")), 1500);
}

function list(token) {
  const items = token.items.map((item) => html`<li class=${item.task ? "task" : nothing}>${content(item)}</li>`);
  return token.ordered ? html`<ol start=${token.start || 1}>${items}</ol>` : html`<ul>${items}</ul>`;
}

function content(item) {
  const box = item.task
    ? html`<input type="checkbox" disabled .checked=${Boolean(item.checked)} aria-label=${item.checked ? "☑" : "☐"} />`
    : nothing;
  return html`${box}${blocks(item.tokens.filter((token) => token.type !== "checkbox"))}`;
}

function table(token) {
  const cell = (given) => inlines(given.tokens);
  const side = (index) => token.align[index] || "start";
  return html`<div class="table" tabindex="0" role="region" aria-label=${token.header.map((one) => one.text).join(", ")}>
    <table>
      <thead><tr>${token.header.map((one, index) => html`<th scope="col" class=${side(index)}>${cell(one)}</th>`)}</tr></thead>
      <tbody>
        ${token.rows.map((row) => html`<tr>${row.map((one, index) => html`<td class=${side(index)}>${cell(one)}</td>`)}</tr>`)}
      </tbody>
    </table>
  </div>`;
}

const inlines = (tokens) => tokens.map(inline);

function inline(token) {
  switch (token.type) {
    case "strong":
      return html`<strong>${inlines(token.tokens)}</strong>`;
    case "em":
      return html`<em>${inlines(token.tokens)}</em>`;
    case "del":
      return html`<del>${inlines(token.tokens)}</del>`;
    case "codespan":
      return html`<code>${token.text}</code>`;
    case "br":
      return html`<br />`;
    case "link":
      return link(token.href, inlines(token.tokens), token.raw);
    case "image":
      return link(token.href, say("image", { name: token.text || token.href }), token.raw);
    case "escape":
      return token.text;
    case "text":
      // In its text the lexer has resolved entities already.
      return token.tokens ? inlines(token.tokens) : plain(token.raw);
    default:
      return token.raw;
  }
}

function link(href, content, raw) {
  const target = safe(plain(href));
  return target ? html`<a href=${target} target="_blank" rel="noopener noreferrer nofollow">${content}</a>` : raw;
}

// The address if it is absolute and of one of the schemes; a relative one would lead into this host.
export function safe(href) {
  try {
    const url = new URL(href);
    return SCHEMES.includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function plain(text) {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(\w{2,6}));/g, (whole, number, digits, name) => {
    if (name) return ENTITIES[name] ?? whole;
    const point = number ? parseInt(number, 10) : parseInt(digits, 16);
    const character = point > 0 && point <= LARGEST ? String.fromCodePoint(point) : "";
    return character && !INVISIBLE.test(character) ? character : whole;
  });
}
