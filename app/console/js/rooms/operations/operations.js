// Operations: requests as they are answered, jobs, gateways, settings, the log of administrative changes.
import { html, useEffect, useState } from "../../ui.js";
import { ErrorNote } from "../../components/error-note.js";
import { Loaded } from "../../components/lazy.js";
import { Page, Tabs } from "../../components/page.js";
import { loadStyle } from "../../components/style.js";
import { page, pathTo } from "../../router.js";
import { OPERATIONS } from "../../rooms.js";
import { may } from "../../session.js";

const VIEWS = {
  __proto__: null,
  requests: async () => (await import("./requests/requests-page.js")).RequestsPage,
  jobs: async () => (await import("./jobs/jobs-page.js")).JobsPage,
  gateways: async () => (await import("./gateways-page.js")).GatewaysPage,
  settings: async () => (await import("./settings-page.js")).SettingsPage,
  audit: async () => (await import("./audit/audit-page.js")).AuditPage,
};

VIEWS[page.peek().segments[1]]?.().catch(() => {}); // comes beside the style; Loaded says what is missing

/** Shows /console/operations/TAB. */
export default function Operations({ segments, query }) {
  const [styled, setStyled] = useState(false);
  const [error, setError] = useState(null);
  useEffect(() => void loadStyle(import.meta.url, "operations.css").then(() => setStyled(true), setError), []);
  if (error) return html`<${ErrorNote} error=${error} />`;
  if (!styled) return null;
  const open = OPERATIONS.filter((tab) => may(tab.action));
  const current = segments[0] ? open.find((tab) => tab.name === segments[0]) : open[0];
  const tabs = open.map((tab) => ({ label: tab.label, href: pathTo(["operations", tab.name]), current: tab === current }));
  return html`
    <${Page} title=${current ? current.label : "No such page"}>
      <${Tabs} label="Operations" tabs=${tabs} />
      ${current ? html`<${Loaded} load=${VIEWS[current.name]} query=${query} />` : html`<p>There is nothing here, or you have no right to see it.</p>`}
    <//>`;
}
