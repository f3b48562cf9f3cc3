// An editor for names and values.
import { html } from "../../../ui.js";
import { Button } from "../../../components/button.js";

/** `pairs`: [[name, value]]; `onChange(pairs)`; `most`: how many there may be. */
export function Pairs({ pairs, onChange, noun, most = 100 }) {
  const set = (index, part, value) => onChange(pairs.map((pair, at) => (at === index ? pair.map((old, place) => (place === part ? value : old)) : pair)));
  return html`
    <div class="stack tight">
      ${pairs.map(([name, value], index) => html`
        <div class="row pair" key=${index}>
          <input class="grow" aria-label="Name of ${noun} ${index + 1}" placeholder="Name" spellcheck=${false} value=${name} onInput=${(event) => set(index, 0, event.target.value)} />
          <input class="grow" aria-label="Value of ${noun} ${index + 1}" placeholder="Value" value=${value} onInput=${(event) => set(index, 1, event.target.value)} />
          <${Button} kind="plain" icon="trash" label="Remove ${noun} ${index + 1}" onClick=${() => onChange(pairs.filter((_, at) => at !== index))} />
        </div>`)}
      <div><${Button} icon="plus" disabled=${pairs.length >= most} why="There are as many as there may be" onClick=${() => onChange([...pairs, ["", ""]])}>Add ${noun}<//></div>
    </div>`;
}
