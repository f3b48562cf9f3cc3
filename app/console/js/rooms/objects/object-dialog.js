// One object: preview, properties, tags, links.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { toast } from "../../components/toast.js";
import { pathTo } from "../../router.js";
import { useResource } from "../../resource.js";
import { downloadUrl, startDownload } from "./actions.js";
import { readHead } from "./details/head.js";
import { Preview } from "./details/preview.js";
import { Properties } from "./details/properties.js";
import { Share } from "./details/share.js";
import { Tags } from "./details/tags.js";

const TABS = [["preview", "Preview", Preview], ["properties", "Properties", Properties], ["tags", "Tags", Tags], ["share", "Share", Share]];

/** `objectKey`: its key; `listing` is loaded again after a change. */
export function ObjectDialog({ bucket, objectKey, versioning, listing, onClose }) {
  const [tab, setTab] = useState("preview");
  const { data: head, error, reload } = useResource((signal) => readHead(bucket, objectKey, signal), [bucket, objectKey]);
  const Part = TABS.find(([name]) => name === tab)[2];
  const changed = () => {
    reload();
    listing.reload();
  };
  const download = () => downloadUrl(bucket, objectKey).then(startDownload, (failure) => toast(failure.message, { kind: "bad" }));
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const index = TABS.findIndex(([name]) => name === tab);
    const [name] = TABS[(index + step + TABS.length) % TABS.length];
    setTab(name);
    event.currentTarget.querySelector(`[data-tab=${name}]`).focus();
  };
  return html`
    <${Dialog} wide title=${objectKey.split("/").filter(Boolean).at(-1) ?? objectKey} onClose=${onClose}>
      <p class="quiet small key-path"><code>${bucket}/${objectKey}</code></p>
      <div class="row object-tabs">
        <div class="tabs grow" role="tablist" aria-label="Object" onKeyDown=${onKeyDown}>${TABS.map(([name, label]) => html`
          <button type="button" role="tab" key=${name} data-tab=${name} id="tab-${name}" tabindex=${name === tab ? 0 : -1} aria-selected=${String(name === tab)}
            aria-controls="object-part" onClick=${() => setTab(name)}>${label}</button>`)}</div>
        ${versioning && html`<${Button} icon="clock" href=${pathTo(["buckets", bucket, "versions"], { key: objectKey })}>Versions<//>`}
        <${Button} icon="download" onClick=${download} disabled=${!head}>Download<//>
      </div>
      <div role="tabpanel" id="object-part" aria-labelledby="tab-${tab}" tabindex="0" class="stack">
        <${ErrorNote} error=${error} retry=${reload} />
        ${head && html`<${Part} bucket=${bucket} objectKey=${objectKey} head=${head} versioning=${versioning} changed=${changed} />`}
        ${!head && !error && html`<p class="quiet" role="status">Loading…</p>`}
      </div>
    <//>`;
}
