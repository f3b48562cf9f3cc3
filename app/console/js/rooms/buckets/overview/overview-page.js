// A bucket at a glance: contents, quota, store with its moves, and the ways to be rid of it.
import { html, useEffect, useState } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { Button } from "../../../components/button.js";
import { toast } from "../../../components/toast.js";
import { Bytes, Copy, Time } from "../../../components/values.js";
import { formatCount } from "../../../format.js";
import { useResource } from "../../../resource.js";
import { navigate, pathTo } from "../../../router.js";
import { BucketError, BucketFrame, isGone } from "../bucket-frame.js";
import { EmptyDialog } from "./empty-dialog.js";
import { MoveCard } from "./move-card.js";
import { QuotaCard } from "./quota-card.js";

const COUNTING_MS = 1500;

/** Shows one bucket. */
export function OverviewPage({ segments }) {
  const name = segments[0];
  const { data: bucket, error, reload } = useResource((signal) => callApi("GET", `buckets/${encodeURIComponent(name)}`, { signal }), [name]);
  const [asking, setAsking] = useState(null);
  useEffect(() => {
    if (!bucket || bucket.contents) return undefined;
    const timer = setTimeout(reload, COUNTING_MS);
    return () => clearTimeout(timer);
  }, [bucket]);
  const done = (deleted) => {
    setAsking(null);
    toast(deleted ? `The bucket ${name} is deleted.` : `The bucket ${name} is empty.`);
    if (deleted) navigate(pathTo(["buckets"]));
    else reload();
  };
  if (isGone(error)) return html`<${BucketFrame} name=${name} gone />`;
  const close = () => {
    setAsking(null);
    reload();
  };
  return html`
    <${BucketFrame} name=${name} current="overview" actions=${html`<${Button} kind="plain" icon="refresh" label="Load again" onClick=${reload} />`}>
      <div class="stack together">
        <${BucketError} name=${name} error=${error} retry=${reload} />
        ${bucket && html`
          <${Contents} bucket=${bucket} />
          <div class="grid">
            <${Facts} bucket=${bucket} />
            <${QuotaCard} bucket=${bucket} reload=${reload} />
            <${MoveCard} bucket=${bucket} reload=${reload} />
          </div>
          <${Dangers} onAsk=${setAsking} />`}
        ${asking && bucket && html`<${EmptyDialog} bucket=${bucket} deleteToo=${asking === "delete"} onDone=${done} onClose=${close} />`}
      </div>
    <//>`;
}

function Contents({ bucket }) {
  const contents = bucket.contents;
  const number = (label, value, more) => html`<div><strong>${value}</strong><span class="quiet small">${label}</span>${more && html`<div class="quiet small">${more}</div>`}</div>`;
  if (!contents) return html`
    <section class="card" aria-label="Contents">
      <div class="numbers">${number("objects", "…")} ${number("size of everything", "…")}</div>
      <p class="quiet small" role="status">Counting what is in it…</p>
    </section>`; // as high as the numbers: what is below keeps its place
  return html`
    <section class="card" aria-label="Contents">
      <div class="numbers">
        ${number(contents.objects === 1 ? "object" : "objects", formatCount(contents.objects))}
        ${number("size of everything", html`<${Bytes} value=${contents.bytes} />`)}
        ${contents.older_versions > 0 && number(contents.older_versions === 1 ? "older version" : "older versions", formatCount(contents.older_versions), html`<${Bytes} value=${contents.older_bytes} />`)}
        ${contents.delete_markers > 0 && number(contents.delete_markers === 1 ? "delete marker" : "delete markers", formatCount(contents.delete_markers))}
        ${contents.uploads > 0 && number(contents.uploads === 1 ? "unfinished upload" : "unfinished uploads", formatCount(contents.uploads), html`<${Bytes} value=${contents.upload_bytes} />`)}
      </div>
      <p class="quiet small">Counted <${Time} value=${contents.counted} />.</p>
    </section>`;
}

function Facts({ bucket }) {
  const arn = `arn:aws:s3:::${bucket.name}`;
  return html`
    <section class="card stack" aria-labelledby="facts"><h2 id="facts">Facts</h2>
      <dl class="facts">
        <dt>Created</dt><dd><${Time} value=${bucket.created} /></dd>
        <dt>Region</dt><dd>${bucket.signing_region}</dd>
        <dt>ARN</dt><dd><code>${arn}</code> <${Copy} text=${arn} label="Copy the ARN" /></dd>
        ${!bucket.owned && html`<dt>Owner</dt><dd><code>${bucket.owner_id}</code></dd>`}
        ${bucket.website && html`<dt>Website</dt><dd>${bucket.website}</dd>`}
        ${bucket.plain_files && html`<dt>Kind</dt><dd>plain files: each object is a file at its own path</dd>`}
      </dl></section>`;
}

function Dangers({ onAsk }) {
  return html`
    <section class="card stack tight danger-zone" aria-labelledby="dangers"><h2 id="dangers">Empty or delete</h2>
      <p class="quiet">Both remove all objects with all their versions. You see what will be lost, and type the bucket's name first.</p>
      <div class="row"><${Button} kind="danger" onClick=${() => onAsk("empty")}>Empty…<//><${Button} kind="danger" icon="trash" onClick=${() => onAsk("delete")}>Delete…<//></div>
    </section>`;
}
