// Makes a bubble on another site that opens the chat in a frame:
// <script src=".../chat/embed.js" defer></script>. What it has to know of the page is given to it by the host.
((page) => {
  const script = document.currentScript;
  const base = script.src.replace(/\/embed\.js.*$/, "");
  const label = script.dataset.label || page.label;
  const close = document.documentElement.lang.startsWith("de") ? "Schließen" : "Close";
  const make = (name, parent, properties = {}) => parent.appendChild(Object.assign(document.createElement(name), properties));

  function icon(path, parent) {
    const [svg, line] = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name));
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    line.setAttribute("d", path);
    svg.append(line);
    parent.append(svg);
  }

  function start() {
    const host = make("div", document.body);
    const root = host.attachShadow({ mode: "open" });
    // A sheet that is made like this is no inline style, so that no policy of the site's stops it.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    const panel = make("section", root, { id: "panel", hidden: true });
    panel.setAttribute("aria-label", label);
    const bar = make("div", panel, { className: "bar" });
    const leave = make("button", bar, { type: "button", onclick: () => show(false) });
    leave.setAttribute("aria-label", close);
    icon("M6 6l12 12M18 6L6 18", leave);
    const bubble = make("button", root, { type: "button", className: "bubble", onclick: () => show(panel.hidden) });
    bubble.setAttribute("aria-label", label);
    bubble.setAttribute("aria-controls", "panel");
    icon("M5 5h14v10H10l-5 4z", bubble);
    let frame = null;
    let behind = [];

    function show(open) {
      // Nothing is loaded before somebody wants to talk.
      if (open && !frame) frame = make("iframe", panel, { src: `${base}/frame`, title: label, allow: "clipboard-write" });
      panel.hidden = !open;
      bubble.setAttribute("aria-expanded", String(open));
      // Where the chat fills the screen, nobody gets to what is behind it.
      for (const one of behind) one.inert = false;
      behind = open && matchMedia(NARROW).matches ? [...document.body.children].filter((one) => one !== host && !one.inert) : [];
      for (const one of behind) one.inert = true;
      if (open) frame.focus();
      else bubble.focus();
    }

    bubble.setAttribute("aria-expanded", "false");
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !panel.hidden) show(false);
    });
    addEventListener("message", (event) => {
      const isOurs = frame && event.source === frame.contentWindow && event.origin === new URL(base).origin;
      if (isOurs && event.data === "frontdesk:close") show(false);
    });
  }

  const NARROW = "(max-width: 30rem)";
  const STYLE = `
    :host { all: initial; color-scheme: light dark; }
    [hidden] { display: none !important; }
    button { cursor: pointer; border: 0; padding: 0; display: grid; place-items: center; }
    button:focus-visible { outline: 3px solid ${page.accent}; outline-offset: 3px; }
    svg { inline-size: 1.6rem; fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
    .bubble { position: fixed; z-index: 2147483646; inset-block-end: 1.25rem; inset-inline-end: 1.25rem; inline-size: 3.5rem;
      block-size: 3.5rem; border-radius: 50%; background: ${page.accent}; color: ${page.onAccent}; box-shadow: 0 4px 16px rgb(0 0 0 / .3); }
    section { position: fixed; z-index: 2147483647; inset-block-end: 5.75rem; inset-inline-end: 1.25rem; inline-size: 25rem;
      block-size: min(40rem, calc(100dvh - 7rem)); border-radius: ${page.radius}; overflow: hidden; display: flex;
      flex-direction: column; background: Canvas; box-shadow: 0 8px 40px rgb(0 0 0 / .35); }
    iframe { border: 0; flex: 1; inline-size: 100%; }
    .bar { display: none; align-items: center; justify-content: end; padding-inline: .25rem; color: CanvasText; }
    .bar button { inline-size: 2.75rem; block-size: 2.75rem; background: none; color: inherit; }
    @media ${NARROW} {
      section:not([hidden]) ~ .bubble { display: none; }
      section { inset: 0; inline-size: auto; block-size: auto; border-radius: 0; }
      .bar { display: flex; }
    }`;

  if (document.body) start();
  else addEventListener("DOMContentLoaded", start);
})
