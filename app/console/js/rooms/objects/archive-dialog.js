// A folder or a selection as a zip archive: first what it costs, then the download and how far it is.
import { html, useEffect, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Bytes } from "../../components/values.js";
import { formatCount, formatPlural } from "../../format.js";
import { useResource } from "../../resource.js";
import { startDownload } from "./actions.js";

const MAX_KEYS = 1000;
const MAX_PREFIXES = 100;
const POLL_MS = 1000;

/** `keys` and `prefixes` are packed with names that leave `root` out. */
export function ArchiveDialog({ bucket, keys, prefixes, root, onClose }) {
  const [begun, setBegun] = useState(null);
  if (begun) return html`<${DownloadDialog} archive=${begun} onClose=${onClose} />`;
  return html`<${CostDialog} bucket=${bucket} selection=${{ keys, prefixes, root }} onClose=${onClose} onBegin=${setBegun} />`;
}

function CostDialog({ bucket, selection: { keys, prefixes, root }, onClose, onBegin }) {
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
    onBegin(data);
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

/** The browser cannot know the size of an archive, so the gateway says how much it has packed. */
function DownloadDialog({ archive, onClose }) {
  const load = (signal) => callApi("GET", `archives/${archive.ticket}/progress`, { signal });
  const { data, error, loading, reload } = useResource(load, [archive.ticket]);
  const ended = data?.state === "done" || data?.state === "broken";
  useEffect(() => {
    if (loading || ended || error?.status === 404) return undefined;
    const timer = setTimeout(reload, POLL_MS);
    return () => clearTimeout(timer);
  }, [loading, ended]);
  const done = data?.state === "done";
  const percent = done ? 100 : Math.min(Math.floor(((data?.bytes ?? 0) / Math.max(archive.bytes, 1)) * 100), 99);
  const foot = html`<${Button} kind="primary" onClick=${onClose}>Close<//>`;
  return html`
    <${Dialog} title=${`Download of ${archive.name}`} onClose=${onClose} foot=${foot}>
      <${ErrorNote} error=${error} retry=${reload} />
      ${data?.state === "broken" ? html`<p class="note bad" role="alert">The download ended before its time: it was cancelled, or the connection broke. Ask for it again.</p>` : html`
        <progress max="100" value=${percent} aria-label="Progress of the archive"></progress>
        <p role="status">${done ? "All is packed and sent." : data?.state === "running" ? "The gateway packs and sends." : "Waiting for the browser to begin."}</p>`}
      ${data && html`<p class="quiet small">${percent} %: ${formatCount(data.objects)} of ${formatPlural(archive.objects, "object")}, <${Bytes} value=${data.bytes} /> of <${Bytes} value=${archive.bytes} /> before packing</p>`}
      ${data?.failed > 0 && html`<p class="note warn">${formatCount(data.failed)} could not be read: the last entry ERRORS.txt names them.</p>`}
      ${!ended && html`<p class="quiet">The window may be closed, the download goes on. The browser's list of downloads cancels it.</p>`}
    <//>`;
}
