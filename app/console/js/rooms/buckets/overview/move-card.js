// The store of a bucket, and its move to another one: begin, watch, cancel.
import { html, useEffect, useState } from "../../../ui.js";
import { callApi } from "../../../api.js";
import { Button } from "../../../components/button.js";
import { confirm } from "../../../components/dialog.js";
import { ErrorNote } from "../../../components/error-note.js";
import { Field } from "../../../components/field.js";
import { toast } from "../../../components/toast.js";
import { formatBytes, formatCount } from "../../../format.js";
import { useAction, useResource } from "../../../resource.js";

const POLL_MS = 1500;

/** Shows where a bucket lies; those who may move it can. */
export function MoveCard({ bucket, reload }) {
  const path = `buckets/${encodeURIComponent(bucket.name)}/move`;
  const moving = Boolean(bucket.moving_from);
  return html`
    <section class="card stack" aria-labelledby="store"><h2 id="store">Store</h2>
      <p>${moving ? html`Moving from <strong>${bucket.moving_from}</strong> to <strong>${bucket.store}</strong>.` : html`It lies on the store <strong>${bucket.store}</strong>.`}</p>
      ${moving ? html`<${Progress} bucket=${bucket} path=${path} reload=${reload} />`
        : bucket.may_move && (bucket.plain_files ? html`<p class="quiet">Plain files cannot be moved. Copy them with a client.</p>` : html`<${Begin} bucket=${bucket} path=${path} reload=${reload} />`)}
    </section>`;
}

function Begin({ bucket, path, reload }) {
  const { data: choices, error } = useResource((signal) => callApi("GET", "bucket-choices", { signal }), []);
  const [target, setTarget] = useState("");
  const [run, action] = useAction(async () => {
    await callApi("POST", path, { body: { store: target } });
    reload();
  });
  const others = choices?.targets.filter((store) => store.name !== bucket.store) ?? [];
  const begin = async (event) => {
    event.preventDefault();
    const agreed = target && (await confirm({
      title: `Move ${bucket.name} to ${target}?`,
      message: "The bucket can be used all the while. New objects go to the new store at once, and everything else follows.",
      details: ["All versions, locks, tags and open uploads move with it.", `It reads and writes ${formatBytes(bucket.contents?.bytes ?? 0)}, while clients have precedence.`, "It can be cancelled: then what was moved comes back."],
      action: "Move it",
    }));
    if (agreed) run();
  };
  if (error) return html`<${ErrorNote} error=${error} />`;
  if (!choices) return html`<p aria-busy="true"></p>`;
  if (!others.length) return html`<p class="quiet">The gateway has no other store that it could move to.</p>`;
  return html`
    <form class="stack tight" onSubmit=${begin}>
      <${ErrorNote} error=${action.error} />
      <${Field} label="Move to">
        ${(props) => html`<select ...${props} value=${target} onChange=${(event) => setTarget(event.target.value)}>
          <option value="">Choose a store</option>${others.map((store) => html`<option key=${store.name} value=${store.name}>${store.name}</option>`)}</select>`}<//>
      <div><${Button} type="submit" busy=${action.busy} disabled=${!target} why="Choose a store first">Move…<//></div>
    </form>`;
}

function Progress({ bucket, path, reload }) {
  const { data: move, error, reload: poll } = useResource((signal) => callApi("GET", path, { signal }), [path]);
  useEffect(() => {
    const timer = setInterval(poll, POLL_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (!move || move.moving) return;
    toast(`All of ${bucket.name} is on the store ${move.store}.`);
    reload();
  }, [move?.moving]);
  const [cancel, action] = useAction(async () => {
    const agreed = await confirm({
      title: "Cancel the move?",
      message: `New objects go to ${bucket.moving_from} again, and what was moved comes back there. Nothing is lost; it takes as long as it took.`,
      action: "Turn back",
    });
    if (!agreed) return;
    await callApi("DELETE", path);
    reload();
    poll();
  });
  const known = move?.total_rows > 0;
  const percent = known ? Math.min(Math.floor((move.rows / move.total_rows) * 100), 100) : 0; // rows may be added meanwhile
  return html`
    <div class="stack tight">
      <${ErrorNote} error=${action.error ?? error} />
      <progress max=${known ? move.total_rows : undefined} value=${known ? move.rows : undefined} aria-label="Progress of the move"></progress>
      <p class="quiet small" role="status">${known ? `${percent} %: ${formatCount(move.rows)} of ${formatCount(move.total_rows)} rows looked at in this pass, ${formatBytes(move.bytes)} copied.` : "Waiting for the journals and for requests from before the move."}</p>
      ${move?.stuck > 0 && html`<p class="note warn">${formatCount(move.stuck)} parts cannot be read and stay where they are. Run a scrub of the store ${move.source}.</p>`}
      ${bucket.may_move && html`<div><${Button} busy=${action.busy} onClick=${cancel}>Cancel the move…<//></div>`}
    </div>`;
}
