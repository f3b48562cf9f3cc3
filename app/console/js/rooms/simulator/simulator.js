// The page of the policy simulator. Its question is in the address, so that it can be shared; drafts are not.
import { html } from "../../ui.js";
import { Page, Tabs } from "../../components/page.js";
import { navigate, pathTo } from "../../router.js";
import { Simulator } from "./form.js";
import { loadSimulatorStyle } from "./style.js";

const FIELDS = ["principal", "action", "bucket", "key"];

await loadSimulatorStyle();

/** The page /console/people/simulator; `tabs` are those of its room. */
export default function SimulatorPage({ query, tabs }) {
  const initial = Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? ""]));
  const keep = (question) => navigate(
    pathTo(["people", "simulator"], Object.fromEntries(FIELDS.map((name) => [name, question[name] ?? ""]))), { replace: true },
  );
  return html`
    <${Page} title="Policy simulator">
      <${Tabs} label="People" tabs=${tabs} />
      <div class="stack">
        <p class="quiet">Asks the code that decides about every request, without doing anything: may somebody do something, and which
          statement says so?</p>
        <${Simulator} initial=${initial} onAsk=${keep} withDrafts />
      </div>
    <//>`;
}
