// Where one is: the bucket and the folders down to here, each a link.
import { html } from "../../ui.js";
import { Copy } from "../../components/values.js";
import { folderPath } from "./paths.js";

/** Shows the path of a prefix; parts without a name (`//`) are shown as such. */
export function PathBar({ bucket, prefix }) {
  const parts = prefix.split("/");
  const last = parts.pop();
  const steps = parts.map((part, index) => ({ label: part || "(no name)", prefix: `${parts.slice(0, index + 1).join("/")}/` }));
  return html`
    <nav aria-label="Path" class="row path-bar">
      <ol class="crumbs">
        <li><a href=${folderPath(bucket, "")} aria-current=${prefix ? undefined : "page"}>${bucket}</a></li>
        ${steps.map((step) => html`
          <li key=${step.prefix}><a href=${folderPath(bucket, step.prefix)} aria-current=${step.prefix === prefix ? "page" : undefined}>${step.label}</a></li>`)}
        ${last && html`<li><span title="Only keys that begin so">${last}…</span></li>`}
      </ol>
      <${Copy} text=${`s3://${bucket}/${prefix}`} label="Copy the S3 path" />
    </nav>`;
}
