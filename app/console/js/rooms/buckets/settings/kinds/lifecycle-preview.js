import { html, useState } from "../../../../ui.js";
import { Button } from "../../../../components/button.js";
import { LifecyclePreviewDialog } from "../../../lifecycle/lifecycle-preview.js";

/** Opens the preview of the stored rules or, once they are changed, of the draft that `source()` writes. */
export function LifecyclePreviewButton({ bucket, loaded, dirty, wrong, draft, source }) {
  const [asked, setAsked] = useState(null);
  const nothing = loaded.source === null && !dirty;
  const ask = () => setAsked(dirty ? { draft: source(), minimum: draft.note ?? null } : {});
  return html`
    <div><${Button} icon="search" disabled=${wrong || nothing} why=${nothing ? "There is no rule" : "Mend what is wrong first"} onClick=${ask}>What would go?<//></div>
    ${asked && html`<${LifecyclePreviewDialog} bucket=${bucket.name} ...${asked} onClose=${() => setAsked(null)} />`}`;
}
