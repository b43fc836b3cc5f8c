// Changing an earlier message: its text, and the files that it keeps, drops or gets. It is said anew on a branch.

import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { newId, post } from "./api.js";
import { attachButton, attached, readFiles } from "./files.js";
import { say, sayError } from "./i18n.js";

const kept = (message) => (message.files ?? []).filter((file) => file.id);

export function editing(state, page) {
  const focus = () => document.getElementById(state.editing ? "edit" : "text")?.focus();

  async function attach(chosen) {
    const edit = state.editing;
    edit.problem = null;
    try {
      edit.files.push(...(await readFiles(chosen, edit.files, state.me)));
    } catch (error) {
      edit.problem = error;
    }
    page.show();
    focus();
  }

  return {
    edit(message) {
      state.editing = message && { number: message.number, files: kept(message), problem: null };
      page.show();
      focus();
    },
    editPasted(event) {
      if (event.clipboardData.files.length) attach([...event.clipboardData.files]);
    },
    async editChosen({ currentTarget: input }) {
      await attach([...input.files]);
      input.value = "";
    },
    editDetach(file) {
      state.editing.files = state.editing.files.filter((one) => one !== file);
      page.show();
      focus();
    },
    async editSaved(event) {
      event.preventDefault();
      const { number, files } = state.editing;
      const text = new FormData(event.currentTarget).get("text");
      if (text.trim() || files.length) await this.resend({ number, text, files });
    },
    editPressed(event) {
      if (event.key === "Escape") {
        event.stopPropagation();
        this.edit(null);
      }
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      event.currentTarget.form.requestSubmit();
    },
    // Says something in the place of an earlier message: on a branch, which is then shown.
    async resend({ number, text = "", files = [] }) {
      const body = {
        client_id: newId(),
        text,
        instead_of: number,
        keep: kept({ files }).map((file) => file.id),
        files: files.filter((file) => file.data).map(({ name, media_type, data }) => ({ name, media_type, data })),
        locale: document.documentElement.lang,
      };
      try {
        const { conversation } = await post(`conversations/${state.current}/messages`, body);
        await page.open(conversation, number);
      } catch (error) {
        if (state.editing) state.editing.problem = error;
        else state.problem = error;
        page.show();
      }
    },
  };
}

export function editor(message, state, actions) {
  const { files, problem } = state.editing;
  const text = message.text ?? "";
  return html`<form class="editor" @submit=${(event) => actions.editSaved(event)} @paste=${actions.editPasted}>
    <textarea
      id="edit"
      name="text"
      dir="auto"
      maxlength=${state.me.max_text}
      rows=${Math.min(8, text.split("\n").length + 1)}
      aria-label=${say("edit")}
      .value=${text}
      @keydown=${(event) => actions.editPressed(event)}
    ></textarea>
    ${attached(files, actions.editDetach)} ${problem ? html`<p class="problem" role="alert">${sayError(problem)}</p>` : nothing}
    <div class="actions">
      <button type="submit" class="primary">${say("send")}</button>
      <button type="button" @click=${() => actions.edit(null)}>${say("cancel")}</button>
      ${attachButton(state.me, actions.editChosen)}
    </div>
  </form>`;
}
