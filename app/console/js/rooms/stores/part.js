import { html } from "../../ui.js";
import { Time } from "../../components/values.js";

/** A part of a card that is read apart. It keeps its last value while its source does not answer, and says since when. */
export function Part({ part, what, children }) {
  const render = Array.isArray(children) ? children[0] : children;
  return html`
    ${part.value !== null && render(part.value)}
    ${part.silent_since !== null && html`<p class="note warn small" role="status">${what} does not answer since <${Time} value=${part.silent_since} />.
      ${part.value !== null && html` What is shown is of <${Time} value=${part.read} />.`}</p>`}`;
}
