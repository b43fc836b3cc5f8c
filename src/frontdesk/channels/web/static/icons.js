// The icons of the page, drawn with one line each.

import { html } from "./vendor/lit-html/lit-html.js";

const SHAPES = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  clip: "M8 12.5l6-6a3 3 0 0 1 4.2 4.2l-8 8a4.6 4.6 0 0 1-6.5-6.5l8-8",
  pen: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  again: "M5 12a7 7 0 1 1 2 5M5 20v-4h4",
  back: "M14 6l-6 6 6 6",
  forward: "M10 6l6 6-6 6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4v16M12 4a8 8 0 0 1 0 16",
};

export const icon = (name) => html`<svg viewBox="0 0 24 24" aria-hidden="true"><path d=${SHAPES[name]} /></svg>`;
