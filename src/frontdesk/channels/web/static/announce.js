// What a screen reader announces: each event of the open conversation once, in the words that the page shows.

import { say } from "./i18n.js";

const MAX_KEPT = 3; // So many announcements stay in the region. The next ones take their place.
const SKIPPED =
  "button:not(.choices *), select, input, textarea, svg, figcaption, .tools, .sources, .versions, .hidden, [aria-hidden=true]";
const BLOCKS = "p, div, li, h3, h4, h5, h6, dt, dd, td, th, pre, blockquote, form, legend, label, .choices button";
const END = /[.!?:…]$/;

// It is outside of what is drawn, and there from the start: text in a region that is new is not announced.
const region = document.createElement("div");
region.className = "hidden";
region.setAttribute("role", "log");
region.setAttribute("aria-live", "polite");
document.body.append(region);

const isLive = (message) => message?.state === "live";

// Takes note of a change that the feed has brought. What is read from the host when a conversation is opened is no change.
export function noteChange(state, before, message) {
  const { number, question, form } = message;
  if (isLive(message) || message.state === "removed") return;
  if (message.role !== "user") state.stopping = "";
  if (before && !isLive(before)) {
    if (question?.outcome && !before.question?.outcome) noteOutcome(state, number, question.approval_id);
    if (form?.answered && !before.form?.answered) state.news.push({ number, part: ".answered" });
    return;
  }
  // A message of one's own is known to whoever has written it, on this page or in another tab.
  if (message.role === "user" && message.client_id) return;
  state.news.push({ number, waitsFor: question && !question.outcome ? question.approval_id : null });
}

// Takes note of a decision once: the feed and the answer of the host can both say that it was made.
export function noteOutcome(state, number, id, note = "") {
  const known = state.questions.get(id) ?? {};
  if (known.told) return;
  state.questions.set(id, { ...known, told: true });
  state.news.push({ number, part: ".card", note });
}

// An answer that is stopped before its first word leaves no message.
export function noteStop(state, isBusy) {
  if (state.stopping !== state.current || isBusy || [...state.messages.values()].some(isLive)) return;
  state.stopping = "";
  state.news.push({ text: say("stopped") });
}

// Announces nothing more of the conversation that was left.
export function forgetNews(state) {
  state.news = [];
  region.replaceChildren();
}

// Announces what was noted, once it is drawn; a question waits until its arguments are.
export function announce(state) {
  const ready = state.news.filter(({ waitsFor }) => isLoaded(state, waitsFor));
  if (!ready.length) return;
  state.news = state.news.filter((one) => !ready.includes(one));
  const texts = ready.map((one) => textOf(state, one)).filter(Boolean);
  while (texts.length && region.childElementCount >= MAX_KEPT) region.firstChild.remove();
  for (const text of texts) {
    const line = document.createElement("p");
    line.textContent = text;
    region.append(line);
  }
}

function isLoaded(state, id) {
  if (!id) return true;
  const known = state.questions.get(id);
  return Boolean(known?.question || known?.error);
}

function textOf(state, { number, part, note, waitsFor, text }) {
  if (text) return `${say("assistant")}: ${text}`;
  const message = state.messages.get(number);
  const item = document.getElementById(`message-${number}`);
  if (!message || !item) return "";
  // A question that was decided before its arguments came is announced once, as what it is.
  if (waitsFor && item.querySelector(".settled")) {
    const known = state.questions.get(waitsFor);
    if (known.told) return "";
    known.told = true;
  }
  // A card that has the focus is read out already.
  const isRead = part && item.contains(document.activeElement);
  const said = isRead ? "" : spoken(part ? (item.querySelector(part) ?? item) : item);
  const role = say(message.role === "user" ? "you" : (message.role ?? "assistant"));
  return note || said ? `${role}: ${[note, said].filter(Boolean).join(" ")}` : "";
}

// The text of an element without its controls, with an end behind each block.
function spoken(root) {
  const lines = [""];
  const read = (node) => {
    if (node.nodeType === Node.TEXT_NODE) lines[lines.length - 1] += node.data;
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(SKIPPED)) return;
    const isBlock = node.matches(BLOCKS);
    if (isBlock) lines.push("");
    if (node.matches("form")) lines.push(`${say("form")}:`, "");
    node.childNodes.forEach(read);
    if (node.matches("dt")) lines[lines.length - 1] += ":";
    if (isBlock) lines.push("");
  };
  root.childNodes.forEach(read);
  const texts = lines.map((line) => line.replace(/\s+/g, " ").trim()).filter(Boolean);
  return texts.map((line, index) => (END.test(line) || index === texts.length - 1 ? line : `${line}.`)).join(" ");
}
