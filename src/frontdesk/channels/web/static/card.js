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
  // A button that has the focus would lose it if it were disabled while the answer is sent.
  const waits = known?.busy ? "true" : nothing;
  return html`<section class="card" role="group" aria-labelledby=${title}>
    <h3 id=${title}>${say("asks", { tool: question?.tool ?? tool })}</h3>
    ${known?.note ? html`<p class="note" role="alert">${known.note}</p>` : nothing}
    ${question?.waits_for ? people(question) : nothing}
    ${question ? shown(question) : details(known)}
    ${question?.may_answer === false ? nothing : html`<div class="actions">
      <button type="button" class="primary" ?disabled=${!question} aria-disabled=${waits} @click=${() => actions.decide(id, true)}>
        ${say("approve")}
      </button>
      <button type="button" ?disabled=${!question} aria-disabled=${waits} @click=${() => actions.decide(id, false)}>${say("reject")}</button>
      ${known?.error ? html`<button type="button" @click=${() => actions.loadQuestion(id)}>${say("retry")}</button>` : nothing}
    </div>`}
  </section>`;
}

function details(known) {
  return html`<p class="muted">${known?.error ? sayError(known.error) : say("loading")}</p>`;
}

// Who asks, whom it waits for, and for how long.
function people(question) {
  const { asked_for: asker, channel, votes, seconds_left: left } = question;
  const said = question.may_answer
    ? [say("asked_for", { asker: asking(asker), channel }), votes > 1 ? say("votes", { votes }) : ""]
    : [say("waits_for", { people: question.people.map(person).join(", ") })];
  if (left !== null) said.push(say("until", { when: new Date(Date.now() + left * 1000).toLocaleString() }));
  return html`<p class="muted">${said.filter(Boolean).join(" ")}</p>`;
}

// A person with the name, the id and the channel. A name that no link has verified is marked.
function person(given) {
  if (given.is_operator) return say("operator");
  return given.id ? say("person_on", { person: asking(given), channel: given.channel ?? "" }) : (given.name ?? "");
}

function asking({ name, id, verified }) {
  return name ? say(verified ? "person" : "person_unverified", { name, id }) : id;
}

function settled(tool, outcome, question) {
  const { reason, by, decider, asked_for: asker, at } = question;
  const who = decider ? person(decider) : by;
  const when = at ? new Date(at * 1000).toLocaleString() : "";
  return html`<section class="card settled ${outcome}" role="group" aria-label=${`${tool}: ${say(outcome)}`}>
    <p><strong>${tool}</strong> <span class="outcome">${say(outcome)}</span></p>
    ${who || when ? html`<p class="muted">${[who, when].filter(Boolean).join(", ")}</p>` : nothing}
    ${asker ? html`<p class="muted">${say("asked_by", { person: person(asker) })}</p>` : nothing}
    ${reason ? html`<p class="muted">${reason}</p>` : nothing}
    ${question.fields || question.arguments ? shown(question) : nothing}
  </section>`;
}

// The host has escaped what can't be seen, after it has read the arguments: reading them here would undo that.
function shown({ fields: given, arguments: text }) {
  if (!given) return html`<pre tabindex="0">${text}</pre>`;
  if (!given.length) return html`<p class="muted">${say("no_arguments")}</p>`;
  return html`<dl>${given.map(([name, text, isBlock]) => html`<dt><bdi>${name}</bdi></dt>
    <dd>${isBlock ? html`<pre tabindex="0">${text}</pre>` : html`<bdi>${text}</bdi>`}</dd>`)}</dl>`;
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
