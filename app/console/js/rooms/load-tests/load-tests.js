// The room of load tests: history, a new one, one that runs or has ended, two compared.
import { html, useEffect, useState } from "../../ui.js";
import { useCommands } from "../../components/palette.js";
import { Loaded } from "../../components/lazy.js";
import { loadStyle } from "../../components/style.js";
import { page, pathTo } from "../../router.js";
import { may } from "../../session.js";

const VIEWS = {
  __proto__: null,
  history: async () => (await import("./history.js")).HistoryPage,
  new: async () => (await import("./new.js")).NewPage,
  compare: async () => (await import("./comparison.js")).ComparisonPage,
  one: async () => (await import("./load-test.js")).LoadTestPage,
};
const viewOf = ([name]) => (name ? VIEWS[name] ?? VIEWS.one : VIEWS.history);

viewOf(page.peek().segments.slice(1))().catch(() => {}); // comes beside the style; Loaded says what is missing

/** Shows the page of a path: none, `new`, `compare`, or a load test's id. */
export default function LoadTests({ segments, query }) {
  const [styled, setStyled] = useState(false);
  useEffect(() => {
    loadStyle(import.meta.url, "load-tests.css").finally(() => setStyled(true));
  }, []);
  useCommands("load-tests", () => (may("sluice:RunLoadTest") ? [{ label: "New load test", hint: "action", href: pathTo(["load-tests", "new"]) }] : []), []);
  if (!styled) return null;
  return html`<${Loaded} load=${viewOf(segments)} name=${segments[0]} query=${query} />`;
}
