import { html } from "../../ui.js";
import { formatTime } from "../../format.js";
import { Badge } from "../../components/values.js";

const CONDITIONS = {
  up: { kind: "good", label: "up", title: "It answers and takes writes." },
  full: { kind: "bad", label: "full", title: "It takes no writes until there is space again; reads and deletes go on." },
  "read-only": { kind: "bad", label: "read-only", title: "Its mount takes no writes." },
  failing: { kind: "bad", label: "writes fail", title: "Its mount answers, but writes fail." },
  down: { kind: "bad", label: "out of service", title: "It does not answer. Requests for its buckets get 503." },
};

/** The condition of a store in a word. */
export function ConditionBadge({ condition, silentSince = null }) {
  if (condition === "up" && silentSince !== null) {
    return html`<${Badge} kind="warn" title=${`It does not answer since ${formatTime(silentSince)}.`}>no answer<//>`;
  }
  const { kind, label, title } = CONDITIONS[condition];
  return html`<${Badge} kind=${kind} title=${title}>${label}<//>`;
}
