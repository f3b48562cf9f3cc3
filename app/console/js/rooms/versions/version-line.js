import { classes, html } from "../../ui.js";
import { Badge, Bytes, Time } from "../../components/values.js";

/** A line of the time line: when, what, and a mark for the comparison. */
export function VersionLine({ version, current, compared, onChoose, onCompare }) {
  const label = `Compare the version of ${version.modified}`;
  return html`
    <div class=${classes("version-line", current && "current", version.marker && "marker")}>
      <div role="gridcell" class="mark">
        <input type="checkbox" tabindex="-1" aria-label=${label} checked=${compared} disabled=${version.marker}
          onChange=${() => onCompare(version)} />
      </div>
      <div role="gridcell" class="grow">
        <button type="button" class="version-button" tabindex="-1" aria-current=${current ? "true" : undefined} onClick=${() => onChoose(version)}>
          <strong><${Time} value=${version.modified} /></strong>
          <span class="facts-line quiet small">
            ${version.latest && html`<${Badge} kind="accent">Latest<//>`}
            ${version.marker && html`<${Badge} kind="warn">Delete marker<//>`}
            ${version.storageClass && version.storageClass !== "STANDARD" && html`<${Badge}>${version.storageClass}<//>`}
            ${!version.marker && html`<${Bytes} value=${version.size} />`}<span class="cut">${version.id}</span></span>
        </button>
      </div>
    </div>`;
}
