import { html, useMemo, useState } from "../../ui.js";
import { callS3Xml } from "../../s3.js";
import { Field } from "../../components/field.js";
import { Copy } from "../../components/values.js";
import { useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { session } from "../../session.js";
import { ListPage } from "./list-page.js";
import { makeSnippets } from "./snippets.js";

// a link from elsewhere may name anything, and what stands here goes into a shell
const BUCKET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/;
const EXAMPLE = { accessKey: "ACCESS_KEY", secretKey: "SECRET_KEY", token: "" };

/** Settings of S3 tools with this gateway's endpoint, region and a bucket filled in. */
export function ConnectPage({ query, tabs }) {
  const bucket = query.get("bucket") ?? "";
  const choose = (event) => navigate(pathTo(["people", "connect"], { bucket: event.target.value }), { replace: true });
  const names = useResource(listBuckets, []);
  const problem = bucket && !BUCKET_NAME.test(bucket) ? "No bucket can have this name." : "";
  return html`
    <${ListPage} title="Connect" tabs=${tabs} query=${query}>
      <p class="quiet">Put an access key and its secret in the place of <code>${EXAMPLE.accessKey}</code> and <code>${EXAMPLE.secretKey}</code>.
        Give each application a user of its own.</p>
      <${Field} label="Bucket" problem=${problem} hint=${names.error ? "You may not list buckets: type a name." : ""}>
        ${(control) => html`<input ...${control} class="people-filter" list="connect-buckets" value=${bucket} placeholder="BUCKET" autocomplete="off" spellcheck=${false} onInput=${choose} />`}<//>
      <datalist id="connect-buckets">${names.data?.map((name) => html`<option key=${name} value=${name} />`)}</datalist>
      <${Snippets} credentials=${EXAMPLE} bucket=${bucket && !problem ? bucket : "BUCKET"} />
    <//>`;
}

async function listBuckets(signal) {
  const answer = await callS3Xml({ query: { "max-buckets": "1000" }, signal });
  return [...answer.getElementsByTagName("Name")].map((one) => one.textContent);
}

/** One card a tool. */
export function Snippets({ credentials, bucket }) {
  const { endpoint, region } = session.peek();
  const snippets = useMemo(() => makeSnippets({ endpoint, region, bucket, ...credentials }), [endpoint, region, bucket, credentials]);
  const [tool, setTool] = useState(snippets[0].tool);
  const shown = snippets.find((one) => one.tool === tool);
  return html`
    <div class="row" role="group" aria-label="Tool">
      ${snippets.map((one) => html`<button key=${one.tool} type="button" class="button" aria-pressed=${String(one === shown)} onClick=${() => setTool(one.tool)}>${one.tool}</button>`)}
    </div>
    <section class="card stack tight" aria-label=${shown.tool}>
      <h2>${shown.tool}</h2>
      <p class="quiet">${shown.what}</p>
      ${shown.parts.map((part) => html`
        <div key=${part.label}><div class="row"><h3 class="grow">${part.label}</h3><${Copy} text=${part.text} label="Copy ${part.label}" /></div>
          <pre tabindex="0" aria-label=${part.label}>${part.text}</pre></div>`)}
    </section>`;
}
