import { html, useId } from "../ui.js";

/**
 * A labelled control. Its child is a function that takes the attributes for the control (id, descriptions, validity):
 * `problem` is what is wrong with the value now, `hint` what it means.
 */
export function Field({ label, hint, problem, children }) {
  const id = useId();
  const described = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ") || undefined;
  const control = { id, "aria-describedby": described, "aria-invalid": problem ? "true" : undefined };
  const render = Array.isArray(children) ? children[0] : children;
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${render(control)}
      ${hint && html`<span class="hint" id="${id}-hint">${hint}</span>`}
      ${problem && html`<span class="problem" id="${id}-problem" role="alert">${problem}</span>`}
    </div>`;
}

/** A checkbox with its label, and a hint below it. */
export function Check({ label, hint, checked, onChange, disabled }) {
  const id = useId();
  return html`
    <div class="check">
      <input id=${id} type="checkbox" checked=${checked} disabled=${disabled} onChange=${(event) => onChange(event.target.checked)} />
      <div><label for=${id}>${label}</label>${hint && html`<div class="quiet small">${hint}</div>`}</div>
    </div>`;
}
