// How the targets of a bucket's notifications fare: last delivery, last error, and a test message.
import { html, useEffect, useState } from "../../../../ui.js";
import { callApi } from "../../../../api.js";
import { Button } from "../../../../components/button.js";
import { ErrorNote } from "../../../../components/error-note.js";
import { Badge, Time } from "../../../../components/values.js";
import { formatPlural, formatSeconds } from "../../../../format.js";
import { useAction, useResource } from "../../../../resource.js";

const POLL_MS = 2000;
const WATCH_MS = 60_000;

/** Shows the targets that saved rules name. `loaded` is what was read, so that it is asked again after a save. */
export function TargetStates({ bucket, loaded }) {
  const path = `buckets/${encodeURIComponent(bucket.name)}/notification-targets`;
  const { data, error, reload } = useResource((signal) => callApi("GET", path, { signal }), [path, loaded]);
  const [watched, setWatched] = useState(0);
  useEffect(() => {
    if (!watched) return undefined;
    const timer = setInterval(() => (Date.now() - watched < WATCH_MS ? reload() : setWatched(0)), POLL_MS);
    return () => clearInterval(timer);
  }, [watched]);
  const used = data?.filter((target) => target.used) ?? [];
  if (!used.length) return html`<${ErrorNote} error=${error} retry=${reload} />`;
  return html`
    <section class="stack" aria-labelledby="targets"><h2 id="targets">Delivery</h2>
      <${ErrorNote} error=${error} retry=${reload} />
      <div class="grid">${used.map((target) => html`<${Target} key=${target.name} target=${target} path=${path} onSent=${() => setWatched(Date.now())} reload=${reload} />`)}</div>
    </section>`;
}

function Target({ target, path, onSent, reload }) {
  const [queued, setQueued] = useState(null);
  const [send, { busy, error }] = useAction(async () => {
    setQueued((await callApi("POST", `${path}/test`, { body: { target: target.name } })).queued);
    onSent();
    reload();
  });
  const arrived = queued !== null && target.delivered !== null && target.delivered >= queued && target.backlog === 0;
  return html`
    <div class="card stack tight">
      <div class="row"><h3 class="grow">${target.name}</h3>${target.error ? html`<${Badge} kind="bad">failing<//>` : html`<${Badge} kind="good">${target.delivered ? "delivers" : "nothing sent yet"}<//>`}</div>
      <dl class="facts">
        <dt>Last delivery</dt><dd><${Time} value=${target.delivered} /></dd>
        <dt>Waiting</dt><dd>${target.backlog ? `${formatPlural(target.backlog, "message")}, the oldest for ${formatSeconds(target.oldest_seconds)}` : "nothing"}</dd>
        ${target.error && html`<dt>Last error</dt><dd>${target.error} <span class="quiet">since <${Time} value=${target.failing_since} /></span></dd>`}
        ${target.refused + target.expired > 0 && html`<dt>Given up</dt><dd>${formatPlural(target.refused, "message")} refused, ${target.expired} too old</dd>`}
      </dl>
      <${ErrorNote} error=${error} />
      <div class="row"><${Button} busy=${busy} onClick=${send}>Send a test<//>
        <span class="small" role="status">${queued === null ? "" : arrived ? "The test arrived." : target.error ? "The test waits: the target does not take it." : "The test is on its way…"}</span></div>
    </div>`;
}
