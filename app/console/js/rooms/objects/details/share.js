// Links to an object that work without signing in, until they end.
import { html, useState } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { Button } from "../../../components/button.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Field } from "../../../components/field.js";
import { Copy, Time } from "../../../components/values.js";
import { useAction } from "../../../resource.js";
import { QrCode } from "./qr-code.js";

const SPANS = [[300, "5 minutes"], [3600, "1 hour"], [86_400, "1 day"], [604_800, "7 days"]];

/** Makes presigned URLs for GET and PUT, with the key that was signed in with. */
export function Share({ bucket, objectKey }) {
  const [method, setMethod] = useState("GET");
  const [seconds, setSeconds] = useState(3600);
  const [link, setLink] = useState(null);
  const [showsCode, setShowsCode] = useState(false);
  const change = (set) => (event) => {
    set(event.target.value);
    setLink(null);
  };
  const [make, { busy, error }] = useAction(async () => {
    const requests = [{ method, bucket, key: objectKey, query: {}, headers: {} }];
    const { urls, expires } = await callApi("POST", "signatures", { body: { requests, expires: Number(seconds), share: true } });
    setLink({ url: urls[0], expires });
  });
  const curl = link && (method === "PUT" ? `curl -T FILE '${link.url}'` : `curl -o FILE '${link.url}'`);
  return html`
    <div class="row share-choice">
      <${Field} label="The link allows to">${(props) => html`<select ...${props} value=${method} onChange=${change(setMethod)}>
        <option value="GET">download this object</option><option value="PUT">upload over this object</option></select>`}<//>
      <${Field} label="For">${(props) => html`<select ...${props} value=${seconds} onChange=${change(setSeconds)}>
        ${SPANS.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}</select>`}<//>
      <${Button} kind="primary" icon="link" busy=${busy} onClick=${make}>Make a link<//>
    </div>
    <${ErrorNote} error=${error} />
    ${link && html`
      <div class="stack tight">
        <div class="row"><input class="grow mono" readonly aria-label="Link" value=${link.url} onFocus=${(event) => event.target.select()} /><${Copy} text=${link.url} label="Copy the link" /></div>
        <div class="row"><code class="grow cut">${curl}</code><${Copy} text=${curl} label="Copy the curl command" /></div>
        <p class="quiet small">It ends at <${Time} value=${link.expires} />, or when the access key that you signed in with is disabled or loses its rights.</p>
        <div><${Button} aria-expanded=${String(showsCode)} onClick=${() => setShowsCode(!showsCode)}>${showsCode ? "Hide the QR code" : "Show as QR code"}<//></div>
        ${showsCode && html`<${QrCode} text=${link.url} label="QR code of the link" />`}
      </div>`}`;
}
