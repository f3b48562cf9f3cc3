// How long, and what is asked for seldom.
import { html } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Check, Field } from "../../components/field.js";

const USUAL = [2, 5, 15, 60];

/** Minutes; and durability and plain files, below. */
export function Duration({ asked, change }) {
  const wrong = !(asked.minutes >= 0.1 && asked.minutes <= 240) && "Between 0.1 and 240 minutes.";
  return html`
    <fieldset class="choices stack tight">
      <legend><h2>How long</h2></legend>
      <div class="row end">
        <${Field} label="Minutes" problem=${wrong || undefined}>
          ${(props) => html`<input ...${props} class="minutes" type="number" min="0.1" max="240" step="any" value=${asked.minutes}
            onInput=${(event) => change({ minutes: event.target.valueAsNumber })} />`}
        <//>
        ${USUAL.map((minutes) => html`<${Button} key=${minutes} aria-pressed=${String(asked.minutes === minutes)} onClick=${() => change({ minutes })}>${minutes}<//>`)}
      </div>
      <details>
        <summary>More</summary>
        <div class="stack tight more">
          <${Check} label="Plain files too" hint="Each directory also without a gateway: what the gateway itself costs." checked=${asked.direct}
            onChange=${(direct) => change({ direct })} />
          <${Check} label="Relaxed durability" hint="Answers before data are synced: a power cut may lose what was answered last."
            checked=${asked.durability === "relaxed"} onChange=${(relaxed) => change({ durability: relaxed ? "relaxed" : "full" })} />
        </div>
      </details>
    </fieldset>`;
}
