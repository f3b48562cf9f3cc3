import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Check, Field } from "../../components/field.js";
import { toast } from "../../components/toast.js";
import { useAction } from "../../resource.js";
import { setLegalHold, setRetention } from "./actions.js";
import { isRetained } from "./version-facts.js";

const MODES = [["", "None"], ["GOVERNANCE", "GOVERNANCE: who has the right may bypass it"], ["COMPLIANCE", "COMPLIANCE: nobody can end it, not even root"]];

/** Shows and sets the retention and the legal hold of a version. */
export function LockDialog({ bucket, version, facts, onClose, onDone }) {
  const before = facts?.lock ?? { mode: "", until: "", hold: false };
  const [mode, setMode] = useState(before.mode);
  const [until, setUntil] = useState(toLocal(before.until));
  const [hold, setHold] = useState(before.hold);
  const [bypass, setBypass] = useState(false);
  const date = mode && until ? new Date(until) : null;
  const problem = mode && (!date || date <= new Date()) ? "Choose a time that is still to come." : "";
  const retentionChanged = mode !== before.mode || (mode && until !== toLocal(before.until));
  const weaker = isRetained(before) && (mode !== before.mode || (date && date < new Date(before.until)));
  const [run, { busy, error }] = useAction(async () => {
    if (hold !== before.hold) await setLegalHold(bucket, version, hold);
    if (retentionChanged) await setRetention(bucket, version, { mode, until: date, bypass });
    toast("The protection is changed.");
    onDone();
  });
  const unchanged = !retentionChanged && hold === before.hold;
  const foot = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" type="submit" form="lock" busy=${busy} disabled=${unchanged || Boolean(retentionChanged && problem)}
      why="Nothing has changed, or the time has passed">Save<//>`;
  const submit = (event) => {
    event.preventDefault();
    run();
  };
  return html`
    <${Dialog} title="Retention and legal hold" onClose=${onClose} foot=${foot}>
      <form id="lock" class="stack" onSubmit=${submit}>
        <${Field} label="Retention">
          ${(control) => html`<select ...${control} value=${mode} onChange=${(event) => setMode(event.target.value)}>
            ${MODES.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select>`}<//>
        ${mode && html`<${Field} label="Retain until" hint="In this browser's time zone." problem=${retentionChanged ? problem : ""}>
          ${(control) => html`<input ...${control} type="datetime-local" value=${until} onInput=${(event) => setUntil(event.target.value)} />`}<//>`}
        ${mode === "COMPLIANCE" && retentionChanged && html`<p class="note warn">Until then nobody can delete this version or shorten the time. It can only be made longer.</p>`}
        ${weaker && before.mode === "COMPLIANCE" && html`<p class="note bad">It is retained in COMPLIANCE mode: S3 will refuse anything but a later time.</p>`}
        ${weaker && before.mode === "GOVERNANCE" && html`<${Check} label="Bypass governance" checked=${bypass} onChange=${setBypass}
          hint="This ends or shortens a protection that somebody set. It needs s3:BypassGovernanceRetention; without it S3 refuses." />`}
        <${Check} label="Legal hold" checked=${hold} onChange=${setHold}
          hint="Nobody can delete the version while it is on. It has no end of its own; who has s3:PutObjectLegalHold can take it off." />
        <${ErrorNote} error=${error} />
      </form>
    <//>`;
}

function toLocal(text) {
  if (!text) return "";
  const date = new Date(text);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
