// The policy of a bucket, as S3 stores it: JSON, checked by the gateway while one types.
import { formatJson } from "../../../../components/code-editor.js";
import { findJsonFault } from "../policy/json-fault.js";
import { PolicyPage } from "../policy/policy-page.js";

/** Returns a text in lines, if nothing but white space changes: a key that stands twice would be lost. */
function readable(source) {
  const bare = (text) => text.replace(/\s+/g, "");
  const lines = findJsonFault(source) ? source : formatJson(source);
  return bare(lines) === bare(source) ? lines : source;
}

export default {
  name: "policy",
  title: "Policy",
  about: "Says who may do what in this bucket, beside the policies of users. A deny wins over every allow.",
  query: { policy: "" },
  absent: ["NoSuchBucketPolicy"],
  json: true,
  write: () => "",
  render: ({ source }) => (source === null ? "" : readable(source)),
  summary: (value, source) => {
    try {
      const statements = [JSON.parse(source).Statement].flat();
      const count = (effect) => statements.filter((one) => one.Effect === effect).length;
      return `${count("Allow")} allow, ${count("Deny")} deny`;
    } catch {
      return "it cannot be read as JSON";
    }
  },
  loss: "What only the policy allows is not allowed any more, and what it denies is not denied any more.",
  Page: PolicyPage,
};
