import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Check } from "../../components/field.js";
import { toast } from "../../components/toast.js";
import { Bytes, Time } from "../../components/values.js";
import { useAction } from "../../resource.js";
import { removeVersion } from "./actions.js";
import { isRetained } from "./version-facts.js";

/** Deletes a version for good, after it said what is lost. A governance retention is bypassed only if that is chosen. */
export function DeleteDialog({ bucket, version, facts, onClose, onDone, onWhy }) {
  const [bypass, setBypass] = useState(false);
  const [run, { busy, error }] = useAction(async () => {
    await removeVersion(bucket, version, { bypass });
    toast("The version is deleted.");
    onDone();
  });
  const governed = facts && isRetained(facts.lock) && facts.lock.mode === "GOVERNANCE";
  const foot = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="danger" busy=${busy} onClick=${() => run()}>Delete this version<//>`;
  return html`
    <${Dialog} title="Delete this version for good?" onClose=${onClose} foot=${foot}>
      <p>The version of <${Time} value=${version.modified} /> (<${Bytes} value=${version.size} />) cannot be brought back.
        ${version.latest ? " The version below it becomes the object." : " The other versions stay."}</p>
      ${governed && html`<${Check} label="Bypass its governance retention" checked=${bypass} onChange=${setBypass}
        hint=${html`It is protected until <${Time} value=${facts.lock.until} />. This needs s3:BypassGovernanceRetention, and undoes what somebody set on purpose.`} />`}
      <${ErrorNote} error=${error} />
      ${error && html`<div><${Button} onClick=${onWhy}>Why can this not be deleted?<//></div>`}
    <//>`;
}
