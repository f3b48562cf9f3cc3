// Versions of a bucket: kept, or not kept any more.
import { html } from "../../../../ui.js";
import { Select } from "../inputs.js";
import { documentOf, text } from "../shape.js";

const WORDS = {
  Enabled: "Every overwrite and delete keeps what was there before. Older versions take space until a lifecycle rule removes them.",
  Suspended: "New objects replace the version “null”. Older versions stay, and can be restored.",
  "": "An overwrite or a delete is final.",
};

function Form({ value, onChange }) {
  const status = value.status ?? "";
  const options = [...(status ? [] : [["", "Never turned on"]]), ["Enabled", "Enabled"], ["Suspended", "Suspended"]];
  return html`<${Select} label="Versions" value=${status} hint=${WORDS[status]} options=${options} onChange=${(chosen) => onChange({ ...value, status: chosen || null })} />`;
}

export default {
  name: "versioning",
  title: "Versions",
  about: "With versions, what was overwritten or deleted can be brought back. They can be suspended later, but never be turned off again.",
  query: { versioning: "" },
  root: "VersioningConfiguration",
  ...documentOf("VersioningConfiguration", { status: text("Status"), mfa: text("MfaDelete") }),
  summary: (value) => ({ Enabled: "kept", Suspended: "suspended" })[value.status] ?? "not kept",
  problems: (value) => (value.status ? {} : { status: "Choose one." }),
  formOnly: true,
  Form,
};
