// The card of a tool call that waits for an approval. Its buttons work once every argument is shown.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { say, sayError } from "./i18n.js";

export function questionCard(message, known, actions) {
  const { approval_id: id, tool, outcome } = message.question;
  if (outcome) return settled(tool, outcome, message.question);
  if (!known) actions.loadQuestion(id);
  const question = known?.question;
  if (question && question.status !== "pending") return settled(tool, question.status, question);
  const title = `question-${message.number}`;
  const waits = !question || known.busy;
  return html`<section class="card" role="group" aria-labelledby=${title}>
    <h3 id=${title}>${say("asks", { tool })}</h3>
    ${known?.note ? html`<p class="note" role="alert">${known.note}</p>` : nothing}
    ${question?.waits_for ? people(question) : nothing}
    ${question ? fields(question.arguments) : details(known)}
    ${question?.may_answer === false ? nothing : html`<div class="actions">
      <button type="button" class="primary" ?disabled=${waits} @click=${() => actions.decide(id, true)}>
        ${say("approve")}
      </button>
      <button type="button" ?disabled=${waits} @click=${() => actions.decide(id, false)}>${say("reject")}</button>
      ${known?.error ? html`<button type="button" @click=${() => actions.loadQuestion(id)}>${say("retry")}</button>` : nothing}
    </div>`}
  </section>`;
}

function details(known) {
  return html`<p class="muted">${known?.error ? sayError(known.error) : say("loading")}</p>`;
}

// Who asks, whom it waits for, and for how long.
function people(question) {
  const { asker, channel, votes, seconds_left: left } = question;
  const said = question.may_answer
    ? [say("asked_for", { asker, channel }), votes > 1 ? say("votes", { votes }) : ""]
    : [say("waits_for", { people: question.waits_for.join(", ") })];
  if (left !== null) said.push(say("until", { when: new Date(Date.now() + left * 1000).toLocaleString() }));
  return html`<p class="muted">${said.filter(Boolean).join(" ")}</p>`;
}

function settled(tool, outcome, { reason, by, at }) {
  return html`<section class="card settled ${outcome}" role="group" aria-label=${tool}>
    <p><strong>${tool}</strong> <span class="outcome">${say(outcome)}</span></p>
    ${by || at ? html`<p class="muted">${[by, at ? new Date(at * 1000).toLocaleString() : ""].filter(Boolean).join(", ")}</p>` : nothing}
    ${reason ? html`<p class="muted">${reason}</p>` : nothing}
  </section>`;
}

// Numbers that a browser would round: what is approved is the call as it came, so that it is shown like that.
const ROUNDED = /\d[\d.]{15}|\d[eE]/;
const STRINGS = /"(?:[^"\\]|\\.)*"/g;

export function fields(text) {
  let values;
  try {
    values = ROUNDED.test(text.replace(STRINGS, "")) ? null : JSON.parse(text);
  } catch {
    values = null;
  }
  if (values === null || typeof values !== "object" || Array.isArray(values)) return html`<pre tabindex="0">${text}</pre>`;
  const names = Object.keys(values);
  if (!names.length) return html`<p class="muted">${say("no_arguments")}</p>`;
  return html`<dl>${names.map((name) => html`<dt>${name}</dt><dd>${value(values[name])}</dd>`)}</dl>`;
}

function value(given) {
  if (typeof given === "string") return html`<bdi>${given}</bdi>`;
  if (given !== null && typeof given === "object") return html`<pre tabindex="0">${JSON.stringify(given, null, 2)}</pre>`;
  return String(given);
}
