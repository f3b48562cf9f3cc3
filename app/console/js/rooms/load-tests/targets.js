// What can be compared: a card each, with its mount and its space.
import { html } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Badge } from "../../components/values.js";
import { formatBytes } from "../../format.js";

const KINDS = { store: "store", path: "directory", endpoint: "S3 endpoint" };

/** Cards with a checkbox each. `chosen` are names, in the order of choosing: the first one is what others are compared with. */
export function Targets({ targets, chosen, onChange, reload }) {
  const toggle = (name) => onChange(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return html`
    <fieldset class="choices stack tight">
      <legend><h2>What to compare</h2></legend>
      <p class="quiet">Each gets a gateway of its own in an empty directory. Objects that are there stay as they are.</p>
      <div class="grid">
        ${targets.map((target) => html`<${Target} key=${target.name} target=${target} checked=${chosen.includes(target.name)} toggle=${toggle} />`)}
      </div>
      <div class="row">
        <p class="quiet small grow">The setting <code>SLUICE_BENCH_TARGETS</code> lists more directories and endpoints.</p>
        <${Button} kind="plain" icon="refresh" onClick=${reload}>Look again<//>
      </div>
    </fieldset>`;
}

function Target({ target, checked, toggle }) {
  const { name, kind, where, filesystem, mount, source, driver, problem } = target;
  return html`
    <label class=${`target card ${problem ? "unusable" : ""}`}>
      <span class="row">
        <input type="checkbox" checked=${checked} disabled=${Boolean(problem) && !checked} onChange=${() => toggle(name)} />
        <strong class="grow">${name}</strong><${Badge}>${KINDS[kind]}<//>
      </span>
      <span class="quiet small where">${where}</span>
      ${filesystem && html`<span class="small">${filesystem} at ${mount}${source && html` <span class="quiet">(${source})</span>`}, driver ${driver}</span>`}
      ${target.total > 0 && html`<${Space} target=${target} />`}
      ${problem && html`<span class="small problem">${problem}</span>`}
    </label>`;
}

function Space({ target }) {
  const { name, total, free } = target;
  return html`
    <span class="small quiet">${formatBytes(free)} of ${formatBytes(total)} free</span>
    <meter aria-label=${`Space in use on ${name}`} min="0" max="1" low="0.8" high="0.95" optimum="0" value=${1 - free / total}></meter>`;
}
