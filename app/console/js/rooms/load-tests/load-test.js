// One load test: its progress while it runs, its verdict and report afterwards.
import { html, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { toast } from "../../components/toast.js";
import { useAction, useResource } from "../../resource.js";
import { navigate, pathTo } from "../../router.js";
import { may } from "../../session.js";
import { Progress } from "./progress.js";
import { Result } from "./result.js";
import { againPath, ROOM, titleOf } from "./words.js";

/** Shows a load test by its id. */
export function LoadTestPage({ name: id }) {
  const found = useResource((signal) => callApi("GET", `load-tests/${encodeURIComponent(id)}`, { signal }), [id]);
  const loadTest = found.data;
  const crumbs = [{ label: "Load tests", href: pathTo(ROOM) }];
  return html`
    <${Page} title=${loadTest ? titleOf(loadTest) : "Load test"} crumbs=${crumbs} actions=${loadTest && html`<${Actions} loadTest=${loadTest} />`}>
      <div class="stack">
        <${ErrorNote} error=${found.error} retry=${found.reload} />
        ${loadTest && (loadTest.state === "running"
          ? html`<${Progress} loadTest=${loadTest} onEnd=${found.reload} />`
          : html`<${Result} loadTest=${loadTest} />`)}
      </div>
    <//>`;
}

function Actions({ loadTest }) {
  const path = `/api/v1/load-tests/${loadTest.id}`;
  const [remove, removing] = useAction(() => removeIt(loadTest));
  if (loadTest.state === "running") return may("sluice:RunLoadTest") && html`<${CancelButton} loadTest=${loadTest} />`;
  return html`
    ${loadTest.report && html`
      <${Button} href=${`${path}/report`} target="_blank" icon="link">Open the report<//>
      <${Button} href=${`${path}/report?download=true`} download icon="download">Report<//>`}
    ${loadTest.bytes > 0 && html`<${Button} href=${`${path}/data`} download icon="download">Raw data<//>`}
    ${may("sluice:RunLoadTest") && html`
      <${Button} href=${againPath(loadTest)} icon="refresh">Again<//>
      <${Button} kind="danger" icon="trash" label="Remove" busy=${removing.busy} onClick=${remove} />`}`;
}

async function removeIt(loadTest) {
  const message = "Its report and its raw data are removed. This cannot be undone.";
  if (!(await confirm({ title: "Remove this load test?", message, action: "Remove" }))) return;
  try {
    await callApi("DELETE", `load-tests/${loadTest.id}`);
    toast("The load test is removed.");
    navigate(pathTo(ROOM));
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
}

function CancelButton({ loadTest }) {
  const [asked, setAsked] = useState(false);
  const [cancel, state] = useAction(async () => {
    await callApi("POST", `load-tests/${loadTest.id}/cancel`);
    setAsked(true);
  });
  return html`
    ${state.error && html`<span class="small problem" role="alert">${state.error.message}</span>`}
    <${Button} icon="close" busy=${state.busy} disabled=${asked} why="It ends, and reports what it has measured" onClick=${cancel}>${asked ? "Ending…" : "Cancel"}<//>`;
}
