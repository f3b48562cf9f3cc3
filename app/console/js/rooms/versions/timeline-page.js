// The time line of a key: every version and delete marker, newest first, and what can be done with each.
import { html, useEffect, useMemo, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { ErrorNote } from "../../components/error-note.js";
import { Empty, Page } from "../../components/page.js";
import { VirtualList } from "../../components/virtual-list.js";
import { formatPlural } from "../../format.js";
import { navigate, pathTo } from "../../router.js";
import { CompareDialog } from "./compare-dialog.js";
import { loadKeyPage } from "./list-versions.js";
import { folderPath, keysPath, parentOf, timelinePath } from "./paths.js";
import { usePages } from "./use-pages.js";
import { VersionDetails } from "./version-details.js";
import { VersionLine } from "./version-line.js";

const LINE_PX = 56;
const MAX_SEARCHED = 20_000;

/** Shows the versions of the key `name`; `chosen` is the id of the one in detail, none: the newest. */
export function TimelinePage({ bucket, name, chosen }) {
  const pages = usePages(async (marker, signal) => {
    const { versions, next } = await loadKeyPage({ bucket, key: name, marker, signal });
    return { items: versions, next };
  }, [bucket, name]);
  const [compared, setCompared] = useState([]);
  const [comparing, setComparing] = useState(false);
  const versions = pages.items;
  const found = versions.find((one) => one.id === chosen);
  const current = found ?? versions[0];
  const choose = (version) => navigate(timelinePath(bucket, name, version.id), { replace: true });
  const toggle = (version) => setCompared((before) => (
    before.includes(version.id) ? before.filter((id) => id !== version.id) : [...before, version.id].slice(-2)));
  const pair = useMemo(() => versions.filter((one) => compared.includes(one.id)).reverse(), [compared, versions]);
  useEffect(() => {
    if (chosen && !found && versions.length < MAX_SEARCHED) pages.more(); // the address names an older one
  }, [versions.length, pages.loading]);
  const onChanged = ({ kept }) => {
    if (!kept) navigate(timelinePath(bucket, name), { replace: true });
    pages.reload();
  };
  const position = versions.indexOf(current);
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (event.key === " " && current && event.target.role === "grid") toggle(current);
    else if (step) choose(versions[Math.min(Math.max(position + step, 0), versions.length - 1)]);
    else return;
    event.preventDefault();
  };
  const line = (index) => html`<${VersionLine} version=${versions[index]} current=${versions[index] === current}
    compared=${compared.includes(versions[index].id)} onChoose=${choose} onCompare=${toggle} />`;
  const compare = () => setComparing(true);
  const gone = !pages.loading && !pages.error && versions.length === 0;
  return html`
    <${Page} title=${name} crumbs=${crumbsOf(bucket, name)} actions=${html`
      <${Button} disabled=${pair.length !== 2} why="Choose two versions that are no delete markers" onClick=${compare}>Compare two<//>
      <${Button} href=${folderPath(bucket, parentOf(name))} icon="folder">Objects<//>`}>
      <${ErrorNote} error=${pages.error} retry=${pages.reload} />
      ${gone && html`<${Empty} title="No version of this key" action="Keys with versions" href=${keysPath(bucket, parentOf(name))}>
        There is none, or none any more. In a bucket that keeps versions, each upload adds one and each deletion a marker.<//>`}
      ${versions.length > 0 && html`
        <p class="quiet small timeline-note" aria-live="polite">${formatPlural(versions.length, "version")}${pages.done ? "" : " loaded, more as you scroll"}.
          <span class="wide-only">${" "}Arrows move, Space marks for the comparison.</span></p>
        <div class="timeline">
          <${VirtualList} label=${`Versions of ${name}`} count=${versions.length} lineHeight=${LINE_PX} columns=${2} renderLine=${line}
            onNearEnd=${pages.more} onKeyDown=${onKeyDown} scrollTo=${position > 0 ? position : null} />
          <${VersionDetails} key=${current.id} bucket=${bucket} version=${current} previous=${versions[position + 1]}
            onChanged=${onChanged} onCompare=${(other) => { setCompared([other.id, current.id]); setComparing(true); }} />
        </div>`}
      ${comparing && pair.length === 2 && html`<${CompareDialog} bucket=${bucket} versions=${pair} onClose=${() => setComparing(false)} />`}
    <//>`;
}

function crumbsOf(bucket, key) {
  const crumbs = [{ label: "Buckets", href: pathTo(["buckets"]) }, { label: bucket, href: pathTo(["buckets", bucket]) }];
  return [...crumbs, { label: "Versions", href: keysPath(bucket, "") }, ...folderCrumbs(bucket, parentOf(key))];
}

function folderCrumbs(bucket, prefix) {
  const parts = prefix.split("/").slice(0, -1);
  return parts.map((part, index) => ({ label: part || "(empty)", href: keysPath(bucket, `${parts.slice(0, index + 1).join("/")}/`) }));
}
