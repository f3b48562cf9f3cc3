// A folder or a selection as a zip archive: first what it costs, then the download.
import { html, useEffect } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { toast } from "../../components/toast.js";
import { Bytes } from "../../components/values.js";
import { formatPlural } from "../../format.js";
import { useResource } from "../../resource.js";
import { startDownload } from "./actions.js";

const MAX_KEYS = 1000;
const MAX_PREFIXES = 100;

/** `keys` and `prefixes` are packed with names that leave `root` out. */
export function ArchiveDialog({ bucket, keys, prefixes, root, onClose }) {
  const isTooMany = keys.length > MAX_KEYS || prefixes.length > MAX_PREFIXES;
  const measure = async (signal) => (isTooMany ? null : callApi("POST", "archives", { body: { bucket, keys, prefixes, root }, signal }));
  const { data, error, loading, reload } = useResource(measure, []);
  useEffect(() => {
    if (!data) return undefined;
    const timer = setTimeout(reload, data.expires_in * 1000 - 5000); // a ticket ends; the dialog may stay open
    return () => clearTimeout(timer);
  }, [data]);
  const download = () => {
    startDownload(data.path);
    toast(`${data.name} is being downloaded. Its last entry ERRORS.txt, if there is one, names what could not be read.`);
    onClose();
  };
  const foot = html`<${Button} onClick=${onClose}>Cancel<//>
    <${Button} kind="primary" icon="download" busy=${loading} disabled=${!data || !data.objects} onClick=${download}>Download<//>`;
  return html`
    <${Dialog} title="Download as zip" onClose=${onClose} foot=${foot}>
      ${isTooMany && html`<p>A selection has at most ${MAX_KEYS} objects and ${MAX_PREFIXES} folders: download the whole folder instead.</p>`}
      <${ErrorNote} error=${error} retry=${reload} />
      ${!data && !error && !isTooMany && html`<p role="status">Counting what there is…</p>`}
      ${data && html`
        <dl class="facts">
          <dt>File</dt><dd>${data.name}</dd>
          <dt>Holds</dt><dd>${formatPlural(data.objects, "object")}, <${Bytes} value=${data.bytes} /> before packing</dd>
          ${data.unreadable > 0 && html`<dt>Without</dt><dd>${formatPlural(data.unreadable, "object")} that you may not read, or that is gone</dd>`}
        </dl>
        <p class="quiet">The gateway packs it while you download; each object is read with your rights, and logged.</p>`}
    <//>`;
}
