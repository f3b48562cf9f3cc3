import { html, useEffect, useState } from "../../ui.js";
import { session } from "../../session.js";
import { Simulator } from "./form.js";
import { loadSimulatorStyle } from "./style.js";

/** The simulator for one bucket, beside the editor of its policy. `policy`: the draft in place of the stored one, if any. */
export function BucketSimulator({ bucket, policy }) {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    loadSimulatorStyle().then(() => setReady(true), () => setReady(true));
  }, []);
  const drafts = policy === undefined ? [] : [{ kind: "bucket", text: policy }];
  const fixed = { bucket };
  return ready && html`
    <p class="quiet small">${drafts.length ? "The answers are those with your draft. Nothing is stored." : "The answers are those with the stored policy."}</p>
    <${Simulator} initial=${{ principal: session.peek().arn, bucket }} fixed=${fixed} drafts=${drafts} />`;
}
