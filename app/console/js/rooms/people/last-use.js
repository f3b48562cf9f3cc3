import { html } from "../../ui.js";
import { Time } from "../../components/values.js";
import { formatTime } from "../../format.js";

/** When something was last used. Before `since` nothing was recorded, so "never" is said only of what was `created` later. */
export function LastUse({ used, since, service, created }) {
  if (used) return html`<${Time} value=${used} />${service && html` <span class="quiet small">by ${SERVICES[service] ?? service}</span>`}`;
  const title = since ? `Uses are recorded since ${formatTime(since)}` : "No use was recorded yet";
  return html`<span class="quiet" title=${title}>${since && created >= since ? "never" : "no use recorded"}</span>`;
}

const SERVICES = { s3: "S3", iam: "IAM", sts: "STS", console: "the console" };
