// The settings of a bucket: all of them with what they are now, and the page of each.
import { html, useEffect, useState } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Empty } from "../../../components/page.js";
import { useResource } from "../../../resource.js";
import { pathTo } from "../../../router.js";
import { BucketError, BucketFrame, isGone } from "../bucket-frame.js";
import { loadKind, settingsOf } from "./catalog.js";
import { SettingPage } from "./setting-page.js";
import { readSource } from "./use-setting.js";

/** Shows NAME/settings, or NAME/settings/SETTING. */
export function SettingsRoom({ segments }) {
  const [name, , chosen] = segments;
  const { data: bucket, error, reload } = useResource((signal) => callApi("GET", `buckets/${encodeURIComponent(name)}`, { signal }), [name]);
  if (isGone(error)) return html`<${BucketFrame} name=${name} gone />`;
  if (!bucket) return html`<${BucketFrame} name=${name} current="settings"><${BucketError} name=${name} error=${error} retry=${reload} /><//>`;
  return chosen ? html`<${One} key=${chosen} bucket=${bucket} chosen=${chosen} />` : html`<${All} bucket=${bucket} />`;
}

function One({ bucket, chosen }) {
  const [kind, setKind] = useState(undefined);
  const [failed, setFailed] = useState(null);
  useEffect(() => {
    loadKind(chosen).then((found) => setKind(found), setFailed);
  }, [chosen]);
  const crumbs = [{ label: bucket.name, href: pathTo(["buckets", bucket.name]) }, { label: "Settings", href: pathTo(["buckets", bucket.name, "settings"]) }];
  const title = kind?.title ?? "Settings";
  const Shown = kind?.Page ?? SettingPage;
  return html`
    <${BucketFrame} name=${bucket.name} title=${title} crumbs=${crumbs} current="settings">
      <${ErrorNote} error=${failed} />
      ${kind && html`<${Shown} kind=${kind} bucket=${bucket} />`}
      ${kind === null && html`<${Empty} title="No such setting" action="All settings" href=${crumbs[1].href}>The gateway has no setting of this name.<//>`}
    <//>`;
}

function All({ bucket }) {
  return html`
    <${BucketFrame} name=${bucket.name} current="settings">
      <div class="stack">
        ${settingsOf(bucket).map((group) => html`
          <section class="stack tight" key=${group.label} aria-labelledby="group-${group.label}"><h2 id="group-${group.label}">${group.label}</h2>
            <ul class="settings-list">${group.settings.map((setting) => html`<${Row} key=${setting.name} bucket=${bucket} ...${setting} />`)}</ul></section>`)}
      </div>
    <//>`;
}

/** A setting with what it is now; one that the session may not read is left out. */
function Row({ bucket, name, title }) {
  const { data, error } = useResource((signal) => describe(name, bucket, signal), [name, bucket.name]);
  if (error?.status === 403 || error?.code === "MethodNotAllowed" || error?.status === 501) return null;
  return html`
    <li><a href=${pathTo(["buckets", bucket.name, "settings", name])}>
      <span class="what">${title}</span>
      <span class="quiet">${error ? `It cannot be read: ${error.message}` : data ?? "…"}</span></a></li>`;
}

async function describe(name, bucket, signal) {
  const kind = await loadKind(name);
  if (kind.describe) return kind.describe(bucket, signal);
  const { source, value, shown } = await readSource(kind, bucket.name, signal);
  if (source === null) return kind.nothing ?? "none";
  return shown || kind.json ? kind.summary(value, source) : "more than its form can show";
}
