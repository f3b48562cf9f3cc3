import { html, useEffect } from "../ui.js";
import { ErrorNote } from "./error-note.js";

const RETRY_MS = 2000;

/** Stands for the whole page while the gateway does not answer, and tries again by itself. */
export function Unreachable({ error, retry }) {
  useEffect(() => {
    const timer = setInterval(retry, RETRY_MS);
    return () => clearInterval(timer);
  }, [retry]);
  return html`<main><${ErrorNote} error=${error} retry=${retry} /></main>`;
}
