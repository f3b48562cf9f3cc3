// The frame of every page of one bucket: its name, its tabs, and a clear word when it is gone.
import { html } from "../../ui.js";
import { ErrorNote } from "../../components/error-note.js";
import { Empty, Page, Tabs } from "../../components/page.js";
import { pathTo } from "../../router.js";

const CRUMBS = [{ label: "Buckets", href: pathTo(["buckets"]) }];

/** Returns the tabs of a bucket; `current`: objects, overview, versions or settings. */
export function bucketTabs(name, current) {
  const tab = (label, ...rest) => ({ label, href: pathTo(["buckets", name, ...rest]), current: current === (rest[0] ?? "overview") });
  return [tab("Objects", "objects"), tab("Versions", "versions"), tab("Overview"), tab("Settings", "settings")];
}

/** Shows a page of a bucket. With `gone`, the page says that the bucket was deleted. */
export function BucketFrame({ name, current, title = name, crumbs = [], actions, gone, children }) {
  return html`
    <${Page} title=${title} crumbs=${[...CRUMBS, ...crumbs]} actions=${actions}>
      ${gone ? html`<${BucketGone} name=${name} />` : html`<${Tabs} label="Parts of the bucket" tabs=${bucketTabs(name, current)} />${children}`}
    <//>`;
}

/** Returns whether an error says that the bucket does not exist. */
export function isGone(error) {
  return Boolean(error) && (error.code === "NoSuchBucket" || (error.status === 404 && error.name === "ApiError"));
}

/** Says that there is no such bucket. */
export function BucketGone({ name }) {
  return html`<${Empty} title="There is no such bucket" action="All buckets" href=${pathTo(["buckets"])}>
    <p>The bucket <code>${name}</code> does not exist. If it was here a moment ago, it was deleted in another window or by somebody else.</p><//>`;
}

/** Shows an error, or that the bucket is gone. */
export function BucketError({ name, error, retry }) {
  return isGone(error) ? html`<${BucketGone} name=${name} />` : html`<${ErrorNote} error=${error} retry=${retry} />`;
}
