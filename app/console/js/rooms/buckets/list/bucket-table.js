// The table of buckets, with badges and the bar of the quota.
import { html } from "../../../ui.js";
import { DataTable } from "../../../components/data-table.js";
import { Badge, Bytes, Time } from "../../../components/values.js";
import { formatBytes, formatCount, formatPlural } from "../../../format.js";
import { pathTo } from "../../../router.js";

const COLUMNS = [
  { name: "name", label: "Bucket", sort: (bucket) => bucket.name, render: renderName },
  { name: "objects", label: "Objects", number: true, sort: (bucket) => bucket.contents?.objects, render: renderObjects },
  { name: "bytes", label: "Size", number: true, sort: (bucket) => bucket.contents?.bytes, render: renderSize },
  { name: "quota", label: "Quota", wideOnly: true, sort: (bucket) => quotaShare(bucket), render: (bucket) => html`<${QuotaBar} quota=${bucket.quota} contents=${bucket.contents} />` },
  { name: "store", label: "Store", wideOnly: true, sort: (bucket) => bucket.store, render: renderStore },
  { name: "created", label: "Created", wideOnly: true, sort: (bucket) => bucket.created, render: (bucket) => html`<${Time} value=${bucket.created} />` },
];

/** Shows buckets, sorted by name first. */
export function BucketTable({ buckets }) {
  return html`<${DataTable} caption="Buckets" columns=${COLUMNS} rows=${buckets} rowKey=${(bucket) => bucket.name} sortedBy="name" />`;
}

function renderName(bucket) {
  return html`
    <div class="bucket-name">
      <a href=${pathTo(["buckets", bucket.name, "objects"])}>${bucket.name}</a>
      <div class="row bucket-badges"><${Badges} bucket=${bucket} />
        <span class="row bucket-links"><a class="small" href=${pathTo(["buckets", bucket.name])} aria-label="Overview of ${bucket.name}">Overview</a>
        <a class="small" href=${pathTo(["buckets", bucket.name, "settings"])} aria-label="Settings of ${bucket.name}">Settings</a></span></div>
    </div>`;
}

/** Shows what is special about a bucket; nothing for what the session may not read. */
export function Badges({ bucket }) {
  return html`
    ${bucket.public && html`<${Badge} kind="warn" title="Its policy or ACL lets everybody in">public<//>`}
    ${bucket.versioning === "enabled" && html`<${Badge} title="Older versions of objects are kept">versions<//>`}
    ${bucket.versioning === "suspended" && html`<${Badge} kind="warn" title="Versioning is suspended: new objects replace older ones">versions suspended<//>`}
    ${bucket.object_lock && html`<${Badge} kind="accent" title="Versions can be locked against removal">lock<//>`}
    ${bucket.encryption && html`<${Badge} kind="good" title="New objects are encrypted: ${bucket.encryption}">encrypted<//>`}
    ${bucket.moving_from && html`<${Badge} kind="accent" title="Its data is being moved here from ${bucket.moving_from}">moving<//>`}`;
}

function renderObjects(bucket) {
  const contents = bucket.contents;
  if (!contents) return bucket.store ? html`<span class="quiet" title="It is being counted">…</span>` : "–";
  const older = contents.older_versions + contents.delete_markers;
  return html`${formatCount(contents.objects)}${older > 0 && html`<div class="quiet small nowrap">+ ${formatPlural(older, "version")}</div>`}`;
}

function renderSize(bucket) {
  return bucket.contents ? html`<${Bytes} value=${bucket.contents.bytes} />` : "";
}

function renderStore(bucket) {
  return html`<span class="nowrap">${bucket.store ?? "–"}${bucket.moving_from && ` ← ${bucket.moving_from}`}</span>`;
}

/** Returns the fuller of the two shares of a quota, null without one. */
function quotaShare({ quota, contents }) {
  if (!quota || !contents) return null;
  const shares = [[contents.bytes, quota.bytes], [objectsOf(contents), quota.objects]].filter(([, most]) => most !== null);
  return shares.length ? Math.max(...shares.map(([used, most]) => (most === 0 ? 1 : used / most))) : null;
}

function objectsOf(contents) {
  return contents.objects + contents.older_versions;
}

/** Shows how much of a quota is used; a dash without one. */
export function QuotaBar({ quota, contents }) {
  const share = quotaShare({ quota, contents });
  if (share === null) return html`<span class="quiet">–</span>`;
  const limits = [
    quota.bytes !== null && `${formatBytes(contents.bytes)} of ${formatBytes(quota.bytes)}`,
    quota.objects !== null && `${formatCount(objectsOf(contents))} of ${formatPlural(quota.objects, "object")}`,
  ].filter(Boolean);
  return html`
    <div class="quota" title=${limits.join(", ")}>
      <meter min="0" max="1" low="0.8" high="0.95" optimum="0" value=${Math.min(share, 1)} aria-label="Quota: ${limits.join(", ")}"></meter>
      ${limits.map((limit) => html`<span class="small quiet nowrap" key=${limit}>${limit}</span>`)}
    </div>`;
}
