// The objects of a bucket: a folder's list, an object's page, open multipart uploads.
import { html, useEffect, useState } from "../../ui.js";
import { lazy } from "../../components/lazy.js";
import { ErrorNote } from "../../components/error-note.js";
import { loadStyle } from "../../components/style.js";
import { FolderPage } from "./folder-page.js";

const OpenUploads = lazy(async () => (await import("./open-uploads.js")).OpenUploads);

/** Shows /console/buckets/NAME/objects?prefix=…&key=… and …/objects/uploads. */
export default function Objects({ segments, query }) {
  const [styled, setStyled] = useState(false);
  const [error, setError] = useState(null);
  useEffect(() => void loadStyle(import.meta.url, "objects.css").then(() => setStyled(true), setError), []);
  const [bucket, , part] = segments;
  if (error) return html`<${ErrorNote} error=${error} />`;
  if (!styled) return null;
  if (part === "uploads") return html`<${OpenUploads} bucket=${bucket} />`;
  return html`<${FolderPage} key=${bucket} bucket=${bucket} prefix=${query.get("prefix") ?? ""} open=${query.get("key")} query=${query} />`;
}
