// Files of messages: those that go with the next one, and those that are shown.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { ApiError, address } from "./api.js";
import { say } from "./i18n.js";
import { icon } from "./icons.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

// Returns the chosen files as they are sent; refuses them as the host would, before anything is sent.
export async function readFiles(chosen, before, me) {
  const size = [...chosen, ...before].reduce((sum, file) => sum + file.size, 0);
  if (before.length + chosen.length > me.max_files) throw new ApiError("too_many_files", "", 400);
  if (size > me.max_file_bytes) throw new ApiError("files_too_large", "", 413);
  return Promise.all([...chosen].map(readFile));
}

function readFile(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => {
      const data = String(reader.result).split(";base64,")[1] ?? "";
      resolve({ name: file.name, media_type: file.type || "application/octet-stream", data, size: file.size });
    };
    reader.onerror = () => reject(new ApiError("network", "", 0));
    reader.readAsDataURL(file);
  });
}

const limits = (me) => say("files_limits", { count: me.max_files, size: inWords(me.max_file_bytes) });

function inWords(bytes) {
  const megabytes = bytes / 1024 / 1024;
  return megabytes >= 1 ? `${Math.round(megabytes)} MB` : `${Math.max(1, Math.round(bytes / 1024))} KB`;
}

// The button with which files are chosen; a host that takes none shows none.
export function attachButton(me, chosen) {
  if (!me.max_files) return nothing;
  const label = `${say("attach")}. ${limits(me)}`;
  return html`<label class="attach" title=${label}>
    ${icon("clip")}
    <input class="hidden" type="file" multiple aria-label=${label} @change=${chosen} />
  </label>`;
}

export function attached(files, remove) {
  if (!files.length) return nothing;
  return html`<ul class="attached">
    ${files.map(
      (file) => html`<li>
        <bdi>${file.name || say("file")}</bdi>
        <button type="button" aria-label=${say("detach", { name: file.name })} @click=${() => remove(file)}>×</button>
      </li>`,
    )}
  </ul>`;
}

export function shownFiles(files) {
  if (!files?.length) return nothing;
  return html`<ul class="files">${files.map((file) => html`<li>${shownFile(file)}</li>`)}</ul>`;
}

function shownFile(file) {
  const name = file.name || say("file");
  if (!file.id) return html`<p class="muted">${say("file_gone", { name })}</p>`;
  const source = address(`files/${file.id}`);
  const link = (content) => html`<a href=${source} target="_blank" rel="noopener" title=${say("download", { name })}>${content}</a>`;
  if (!PICTURES.includes(file.media_type)) return link(html`<span class="file"><bdi>${name}</bdi> ${inWords(file.size)}</span>`);
  return link(html`<img src=${source} alt=${name} loading="lazy" />`);
}
