import { html, signal, useLayoutEffect, useRef, useSignal, useState } from "../ui.js";
import { Button } from "./button.js";
import { Field } from "./field.js";

/** A modal dialog. Esc and the close button call `onClose`; `foot` has its buttons. */
export function Dialog({ title, onClose, foot, wide, children }) {
  const element = useRef(null);
  const shown = useRef(true);
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog.showModal();
    return () => {
      shown.current = false;
      dialog.close();
    };
  }, []);
  // Chromium closes at the second Esc, though the first was refused: what `onClose` keeps open stays open
  const reopen = () => shown.current && element.current.showModal();
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`
    <dialog ref=${element} tabindex="-1" class=${wide ? "wide" : ""} aria-label=${title} onCancel=${cancel} onClose=${reopen}>
      <div class="dialog-body">
        <div class="row dialog-head"><h2 class="grow breaks">${title}</h2><${Button} kind="plain" icon="close" label="Close" onClick=${onClose} /></div>
        ${children}
        ${foot && html`<div class="dialog-foot">${foot}</div>`}
      </div>
    </dialog>`;
}

const question = signal(null);

/**
 * Asks before something is lost. Resolves to true or false. `word`: what must be typed, such as the bucket's name;
 * `details`: a list of what will be lost.
 */
export function confirm({ title, message, details = [], action, word }) {
  return new Promise((resolve) => {
    question.value = { title, message, details, action, word, resolve };
  });
}

/** Shows the question of `confirm`; once in the shell. */
export function Confirmation() {
  const asked = useSignal(question);
  return asked && html`<${ConfirmDialog} key=${asked} ...${asked} />`;
}

function ConfirmDialog({ title, message, details, action, word, resolve }) {
  const [typed, setTyped] = useState("");
  const answer = (value) => {
    question.value = null;
    resolve(value);
  };
  const submit = (event) => {
    event.preventDefault();
    if (!word || typed === word) answer(true);
  };
  const foot = html`
    <${Button} onClick=${() => answer(false)}>Cancel<//>
    <${Button} kind="danger" type="submit" form="confirmation" disabled=${Boolean(word) && typed !== word}
      why=${`Type ${word} first`}>${action}<//>`;
  return html`
    <${Dialog} title=${title} onClose=${() => answer(false)} foot=${foot}>
      <form id="confirmation" class="stack" onSubmit=${submit}>
        <p>${message}</p>
        ${details.length > 0 && html`<ul>${details.map((line) => html`<li>${line}</li>`)}</ul>`}
        ${word && html`<${Field} label=${html`Type <code>${word}</code> to go on`}>
          ${(props) => html`<input ...${props} autocomplete="off" spellcheck=${false} value=${typed}
            onInput=${(event) => setTyped(event.target.value)} />`}<//>`}
      </form>
    <//>`;
}
