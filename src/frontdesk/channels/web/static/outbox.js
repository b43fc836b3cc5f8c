// Messages that the host has not taken yet: they are sent one after the other, each under the id that it got first.

import { post } from "./api.js";
import { inTab } from "./kept.js";

const KEPT = "frontdesk-unsent";
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;
const UNREACHABLE = [0, 502, 503, 504];

// Whether a message is sent again without anybody's doing.
export const isWaiting = (message) => Boolean(message.error) && UNREACHABLE.includes(message.error.status);

export const unsentIn = (state, chat) => state.pending.filter((message) => message.chat === chat);

export class Outbox {
  constructor(state, draw, onSent) {
    this.state = state;
    this.draw = draw;
    this.onSent = onSent;
    this.isSending = false;
    this.timer = 0;
    this.pause = FIRST_PAUSE;
    addEventListener("online", () => this.flush());
  }

  load() {
    this.state.pending = JSON.parse(inTab.get(KEPT) ?? "[]");
  }

  keep() {
    // Files are too large to be kept in the tab.
    const small = this.state.pending.filter((message) => !message.sent && !message.files.length);
    const kept = small.map(({ chat, client_id, text, choice }) => ({ chat, client_id, text, choice, files: [] }));
    if (kept.length) inTab.set(KEPT, JSON.stringify(kept));
    else inTab.remove(KEPT);
  }

  add(message) {
    this.state.pending.push(message);
    this.keep();
    return this.flush();
  }

  discard(message) {
    this.state.pending = this.state.pending.filter((one) => one !== message);
    this.keep();
    this.draw();
  }

  // The host has taken them, so what is read of the conversation has them.
  dropSent() {
    this.state.pending = this.state.pending.filter((message) => !message.sent);
  }

  // Sends all messages in their order, until one can't reach the host.
  async flush() {
    this.draw();
    if (this.isSending) return;
    this.isSending = true;
    clearTimeout(this.timer);
    for (let message = this.next(); message; message = this.next()) {
      if (await this.send(message)) continue;
      this.timer = setTimeout(() => this.flush(), this.pause);
      this.pause = Math.min(LONGEST_PAUSE, 2 * this.pause);
      break;
    }
    this.isSending = false;
  }

  next() {
    return this.state.pending.find((message) => !message.sent && (!message.error || isWaiting(message)));
  }

  // Returns false if the host can't be reached.
  async send(message) {
    const { chat, client_id, text, choice } = message;
    const files = message.files.map(({ name, media_type, data }) => ({ name, media_type, data }));
    const body = { client_id, text, choice, files, locale: document.documentElement.lang };
    let error = null;
    try {
      await post(`conversations/${chat}/messages`, body);
    } catch (failure) {
      error = failure;
    }
    message.error = error;
    if (error && isWaiting(message)) {
      for (const behind of this.state.pending) if (!behind.sent) behind.error ??= error;
      this.draw();
      return false;
    }
    this.pause = FIRST_PAUSE;
    message.sent = !error;
    if (message.sent && chat !== this.state.current) this.dropSent();
    // The conversation of a message can be gone meanwhile.
    if (error && !this.state.chats.has(chat)) this.state.pending = this.state.pending.filter((one) => one !== message);
    this.keep();
    this.draw();
    if (message.sent) this.onSent();
    return true;
  }
}
