// What an empty folder says: drop files, or use a client.
import { html, useSignal } from "../../ui.js";
import { Copy } from "../../components/values.js";
import { Icon } from "../../components/icon.js";
import { session } from "../../session.js";

/** Teaches the next step. */
export function EmptyFolder({ bucket, prefix }) {
  const { endpoint } = useSignal(session);
  const commands = [
    ["aws", `aws --endpoint-url ${endpoint} s3 cp FILE s3://${bucket}/${prefix}`],
    ["rclone", `rclone copy FOLDER sluice:${bucket}/${prefix}`],
    ["mc", `mc cp --recursive FOLDER sluice/${bucket}/${prefix}`],
  ];
  return html`
    <div class="empty drop-here">
      <${Icon} name="upload" />
      <h2>${prefix ? "Nothing here yet" : "This bucket is empty"}</h2>
      <p class="quiet">Drop files or folders anywhere on this page, or use the buttons above.</p>
      <p class="quiet small">Or with a client, as the key that you signed in with:</p>
      <ul class="commands">${commands.map(([name, command]) => html`
        <li key=${name} class="row"><code class="grow cut">${command}</code><${Copy} text=${command} label=${`Copy the ${name} command`} /></li>`)}</ul>
    </div>`;
}
