// What is new, in order and behind a cursor: on a WebSocket, or else by server-sent events, or else by polls.

import { address, get } from "./api.js";

const SILENCE = 45000; // A connection that says nothing for longer is taken for lost: the host says something each 15 s.
const LONGEST_PAUSE = 15000;
const FAILURES = 2; // After so many connections that never opened, the next kind is tried.

export class Feed {
  constructor(cursor, onFrame, onState, box) {
    this.cursor = cursor;
    this.box = box;
    this.onFrame = onFrame;
    this.onState = onState;
    this.kinds = [this.socket, this.events, this.poll];
    this.failures = 0;
    this.tries = 0;
    this.wake = null;
    addEventListener("online", () => this.wake?.());
    document.addEventListener("visibilitychange", () => document.hidden || this.wake?.());
  }

  async run() {
    for (;;) {
      const opened = await this.kinds[0].call(this).catch(() => false);
      this.onState(false);
      this.failures = opened ? 0 : this.failures + 1;
      if (this.failures >= FAILURES && this.kinds.length > 1 && navigator.onLine) {
        this.kinds.shift();
        this.failures = 0;
      }
      await this.pause();
    }
  }

  pause() {
    const longest = Math.min(LONGEST_PAUSE, 300 * 2 ** this.tries++);
    return new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, longest * (0.5 + Math.random() / 2));
    });
  }

  // A cursor counts in one mailbox only: who is linked or unlinked gets another.
  place() {
    return `after=${this.cursor}&box=${this.box}`;
  }

  take(text) {
    const frame = typeof text === "string" ? JSON.parse(text) : text;
    this.tries = 0;
    this.onState(true);
    this.onFrame(frame);
    this.cursor = frame.cursor;
    this.box = frame.box;
  }

  // Each of these ends when its connection does, and tells whether it was ever open.
  socket() {
    return new Promise((resolve) => {
      const url = new URL(address(`feed?${this.place()}`), location.href);
      url.protocol = url.protocol.replace("http", "ws");
      const socket = new WebSocket(url);
      let opened = false;
      let timer = setTimeout(() => socket.close(), SILENCE);
      socket.onopen = () => {
        opened = true;
        this.onState(true);
      };
      socket.onmessage = (event) => {
        clearTimeout(timer);
        timer = setTimeout(() => socket.close(), SILENCE);
        this.take(event.data);
      };
      socket.onclose = () => {
        clearTimeout(timer);
        resolve(opened);
      };
    });
  }

  events() {
    return new Promise((resolve) => {
      const source = new EventSource(address(`events?${this.place()}`));
      let opened = false;
      source.onopen = () => {
        opened = true;
        this.onState(true);
      };
      source.addEventListener("frame", (event) => this.take(event.data));
      source.onerror = () => {
        source.close();
        resolve(opened);
      };
    });
  }

  async poll() {
    let shows = "";
    for (;;) {
      const frame = await get(`poll?${this.place()}&shows=${encodeURIComponent(shows)}`);
      this.take(frame);
      shows = frame.shows || "";
    }
  }
}
