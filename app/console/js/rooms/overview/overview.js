// The room Overview: what needs attention, what the gateway does now, its stores.
import { html, useState } from "../../ui.js";
import { callApi } from "../../api.js";
import { useLive } from "../../live.js";
import { usePolled } from "../../polling.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { loadStyle } from "../../components/style.js";
import { Badge } from "../../components/values.js";
import { Attention } from "./attention.js";
import { Charts } from "./charts.js";
import { Numbers } from "./numbers.js";
import { BucketsTable, OperationsTable } from "./rate-tables.js";
import { addHistory, addSample, NO_SAMPLES } from "./samples.js";
import { StoresLine } from "./stores-line.js";

const ATTENTION_SECONDS = 10;
const STATES = {
  connecting: { label: "Connecting", title: "The first figures are on their way." },
  open: { kind: "good", label: "Live", title: "A new sample every second." },
  waiting: { kind: "warn", label: "Reconnecting", title: "The gateway does not answer. It may be restarting; what is shown is from before." },
  hidden: { label: "Paused", title: "Nothing is asked of the gateway while this tab is hidden." },
};

await loadStyle(import.meta.url, "overview.css");

/** Shows the room. */
export default function Overview() {
  const [samples, setSamples] = useState(NO_SAMPLES);
  const state = useLive("overview", {
    history: (history) => setSamples((before) => addHistory(before, history)),
    sample: (sample) => setSamples((before) => addSample(before, sample)),
  });
  const { data, error, reload } = usePolled((signal) => callApi("GET", "overview", { signal }), ATTENTION_SECONDS);
  const { kind, label, title } = STATES[state];
  return html`
    <${Page} title="Overview" actions=${html`<span role="status" class="live-label"><${Badge} key=${label} kind=${kind} title=${title}>${label}<//></span>`}>
      <div class="stack overview together">
        ${error && !data && html`<${ErrorNote} error=${error} retry=${reload} />`}
        ${(data || !error) && html`<${Attention} overview=${data} />`}
        <${Numbers} samples=${samples} stale=${state === "waiting"} />
        <${Charts} samples=${samples} />
        ${data && html`<${StoresLine} stores=${data.stores} />`}
        <${OperationsTable} samples=${samples} />
        <${BucketsTable} samples=${samples} />
      </div>
    <//>`;
}
