// The question of a workflow as a form. The host checks its values once more; these checks say at the field what is wrong.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { say } from "./i18n.js";

const TYPES = { number: "number", integer: "number" };

export function formCard(message, known, actions) {
  const { fields, answered } = message.form;
  if (answered) return html`<p class="muted answered">${say("form_answered")}</p>`;
  const name = `form-${message.number}`;
  return html`<form class="card fields" novalidate aria-label=${say("form")} @submit=${(event) => actions.answer(event, message)}>
    ${fields.map((field) => entry(field, name, known?.problems ?? {}))}
    ${known?.note ? html`<p class="note" role="alert">${known.note}</p>` : nothing}
    <div class="actions">
      <button type="submit" class="primary" aria-disabled=${known?.busy ? "true" : nothing}>${say("form_send")}</button>
    </div>
  </form>`;
}

function entry(field, path, problems) {
  const id = `${path}.${field.name}`;
  if (field.kind === "group") {
    return html`<fieldset>
      <legend>${field.label}</legend>
      ${hint(field, id)} ${field.fields.map((one) => entry(one, id, problems))}
    </fieldset>`;
  }
  const problem = problems[id];
  const about = { id, problem, described: [field.help && `${id}-help`, problem && `${id}-problem`].filter(Boolean).join(" ") };
  return html`<div class="field">
    ${control(field, about)} ${hint(field, id)}
    ${problem ? html`<p class="problem" id="${id}-problem">${say(`form_${problem}`, limits(field))}</p>` : nothing}
  </div>`;
}

const hint = (field, id) => (field.help ? html`<p class="muted" id="${id}-help">${field.help}</p>` : nothing);

function control(field, about) {
  if (field.kind === "boolean") return tick(field, about, "checkbox", Boolean(field.default), field.label);
  if (field.kind === "choices") return several(field, about);
  const label = html`<label for=${about.id}>${field.label}${field.required ? "" : html` <span class="muted">${say("form_optional")}</span>`}</label>`;
  return html`${label}${field.kind === "choice" ? select(field, about) : input(field, about)}`;
}

function tick(field, about, type, checked, label, value = "") {
  const id = value ? `${about.id}-${value}` : about.id;
  return html`<label class="tick"
    ><input
      type=${type}
      id=${id}
      name=${about.id}
      value=${value}
      ?checked=${checked}
      aria-describedby=${about.described || nothing}
    />${label}</label
  >`;
}

// A choice as it is displayed: its value may have characters that can't be seen.
const labelOf = (field, index) => field.labels?.[index] ?? String(field.choices[index]);

function several(field, about) {
  return html`<fieldset>
    <legend>${field.label}</legend>
    ${field.choices.map((_, index) => tick(field, about, "checkbox", false, labelOf(field, index), String(index)))}
  </fieldset>`;
}

function select(field, about) {
  return html`<select
    id=${about.id}
    name=${about.id}
    ?required=${field.required}
    aria-invalid=${about.problem ? "true" : nothing}
    aria-describedby=${about.described || nothing}
  >
    <option value="">${say("form_choose")}</option>
    ${field.choices.map((choice, index) => html`<option value=${index} ?selected=${choice === field.default}>${labelOf(field, index)}</option>`)}
  </select>`;
}

function input(field, about) {
  return html`<input
    type=${TYPES[field.kind] ?? (field.format || "text")}
    id=${about.id}
    name=${about.id}
    dir="auto"
    value=${field.default ?? ""}
    step=${field.kind === "number" ? "any" : nothing}
    min=${field.minimum ?? nothing}
    max=${field.maximum ?? nothing}
    ?required=${field.required}
    aria-invalid=${about.problem ? "true" : nothing}
    aria-describedby=${about.described || nothing}
  />`;
}

const limits = (field) => ({ least: field.minimum ?? field.shortest ?? 0, most: field.maximum ?? field.longest ?? 4000 });

// The values of a form, and what is wrong with them by the ids of the fields.
export function readForm(form, fields, path) {
  const values = {};
  const problems = {};
  for (const field of fields) {
    const id = `${path}.${field.name}`;
    if (field.kind === "group") {
      const inner = readForm(form, field.fields, id);
      values[field.name] = inner.values;
      Object.assign(problems, inner.problems);
      continue;
    }
    const { value, problem } = readField(form, field, id);
    if (problem) problems[id] = problem;
    else if (value !== undefined) values[field.name] = value;
  }
  return { values, problems };
}

function readField(form, field, id) {
  const data = new FormData(form);
  if (field.kind === "boolean") return { value: data.has(id) };
  if (field.kind === "choices") {
    const value = data.getAll(id).map((index) => field.choices[index]);
    return { value, problem: wrongLength(value.length, field) };
  }
  const text = data.get(id) ?? "";
  if (!text.trim()) return field.required ? { problem: "required" } : { value: field.nullable ? null : undefined };
  if (field.kind === "choice") return { value: field.choices[text] };
  if (field.kind === "text") return { value: text, problem: wrongLength([...text].length, field) };
  const value = Number(text);
  if (!Number.isFinite(value)) return { problem: "number" };
  if (field.kind === "integer" && !Number.isSafeInteger(value)) return { problem: "integer" };
  if (value < (field.minimum ?? -Infinity)) return { problem: "small" };
  return { value, problem: value > (field.maximum ?? Infinity) ? "large" : undefined };
}

function wrongLength(length, field) {
  if (length < (field.shortest ?? 0)) return "short";
  return length > (field.longest ?? 4000) ? "long" : undefined;
}
