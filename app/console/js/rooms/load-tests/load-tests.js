// The room of load tests: history, a new one, one that runs or has ended, two compared.
import { html, useEffect, useState } from "../../ui.js";
import { useCommands } from "../../components/palette.js";
import { loadStyle } from "../../components/style.js";
import { pathTo } from "../../router.js";
import { may } from "../../session.js";
import { ComparisonPage } from "./comparison.js";
import { HistoryPage } from "./history.js";
import { LoadTestPage } from "./load-test.js";
import { NewPage } from "./new.js";

/** Shows the page of a path: none, `new`, `compare`, or a load test's id. */
export default function LoadTests({ segments, query }) {
  const [styled, setStyled] = useState(false);
  useEffect(() => {
    loadStyle(import.meta.url, "load-tests.css").finally(() => setStyled(true));
  }, []);
  useCommands("load-tests", () => (may("sluice:RunLoadTest") ? [{ label: "New load test", hint: "action", href: pathTo(["load-tests", "new"]) }] : []), []);
  if (!styled) return null;
  const [name] = segments;
  if (!name) return html`<${HistoryPage} />`;
  if (name === "new") return html`<${NewPage} query=${query} />`;
  if (name === "compare") return html`<${ComparisonPage} a=${query.get("a") ?? ""} b=${query.get("b") ?? ""} />`;
  return html`<${LoadTestPage} key=${name} id=${name} />`;
}
