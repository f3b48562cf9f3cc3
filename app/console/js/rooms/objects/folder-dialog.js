// Opens a folder that is not there yet: S3 has none, only keys with slashes.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Dialog } from "../../components/dialog.js";
import { Field } from "../../components/field.js";
import { navigate } from "../../router.js";
import { folderPath } from "./paths.js";

/** Asks for a name, and goes there: the folder is made by the first upload. */
export function FolderDialog({ bucket, prefix, onClose }) {
  const [name, setName] = useState("");
  const clean = name.replace(/^\/+|\/+$/g, "");
  const problem = new TextEncoder().encode(`${prefix}${clean}/`).length > 1000 ? "The path is too long: a key has at most 1024 bytes." : "";
  const submit = (event) => {
    event.preventDefault();
    if (!clean || problem) return;
    onClose();
    navigate(folderPath(bucket, `${prefix}${clean}/`));
  };
  const foot = html`<${Button} onClick=${onClose}>Cancel<//><${Button} kind="primary" type="submit" form="new-folder" disabled=${!clean || problem}>Open<//>`;
  return html`
    <${Dialog} title="New folder" onClose=${onClose} foot=${foot}>
      <form id="new-folder" onSubmit=${submit}>
        <${Field} label="Name" problem=${problem} hint="It appears with the first file that you upload into it. Slashes make folders within.">
          ${(props) => html`<input ...${props} autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} />`}<//>
      </form>
    <//>`;
}
