// The tags of an object.
import { html, useEffect, useState } from "../../../ui.js";
import { Button } from "../../../components/button.js";
import { ErrorNote } from "../../../components/error-note.js";
import { toast } from "../../../components/toast.js";
import { useAction, useResource } from "../../../resource.js";
import { callS3, callS3Xml } from "../../../s3.js";
import { childOf, childrenOf, S3_NAMESPACE, textOf, toXml } from "../../../xml.js";
import { Pairs } from "./pairs.js";

const MAX_TAGS = 10;

async function readTags(bucket, key, signal) {
  const root = await callS3Xml({ bucket, key, query: { tagging: "" }, signal });
  return childrenOf(childOf(root, "TagSet"), "Tag").map((one) => [textOf(one, "Key"), textOf(one, "Value")]);
}

/** Shows and changes them; lifecycle rules and policies can go by tags. */
export function Tags({ bucket, objectKey }) {
  const { data, error, reload } = useResource((signal) => readTags(bucket, objectKey, signal), [bucket, objectKey]);
  const [tags, setTags] = useState([]);
  useEffect(() => void (data && setTags(data)), [data]);
  const used = tags.filter(([name, value]) => name || value);
  const problem = problemOf(used);
  const [save, { busy, error: failure }] = useAction(async () => {
    const body = toXml("Tagging", [["TagSet", used.map(([name, value]) => ["Tag", [["Key", name], ["Value", value]]])]], S3_NAMESPACE);
    await callS3({ method: "PUT", bucket, key: objectKey, query: { tagging: "" }, headers: { "content-type": "application/xml" }, body });
    toast("Tags saved");
    reload();
  });
  if (!data) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  return html`
    <form class="stack" onSubmit=${(event) => event.preventDefault() || save()}>
      ${!tags.length && html`<p class="quiet">No tags. Lifecycle rules, policies and inventories can go by them.</p>`}
      <${Pairs} pairs=${tags} onChange=${setTags} noun="tag" most=${MAX_TAGS} />
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <${ErrorNote} error=${failure} />
      <div><${Button} kind="primary" type="submit" busy=${busy} disabled=${problem || JSON.stringify(used) === JSON.stringify(data)} why=${problem || "Nothing is changed"}>Save<//></div>
    </form>`;
}

function problemOf(tags) {
  if (tags.some(([name]) => !name)) return "A tag needs a name.";
  if (tags.some(([name, value]) => name.length > 128 || value.length > 256)) return "A name has at most 128 characters, a value 256.";
  if (new Set(tags.map(([name]) => name)).size < tags.length) return "A name stands twice.";
  return "";
}
