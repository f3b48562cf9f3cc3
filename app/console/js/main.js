// The console's first module: finds out who is signed in, then shows the page of the path.
import { html, render, useEffect, useSignal } from "./ui.js";
import { Shell } from "./components/shell.js";
import { Unreachable } from "./components/unreachable.js";
import { SignIn } from "./rooms/sign-in/sign-in.js";
import { startFocusKeeper } from "./focus.js";
import { startRouter } from "./router.js";
import { session } from "./session.js";
import { loadSession } from "./sign-in.js";
import { useResource } from "./resource.js";

function App() {
  const current = useSignal(session);
  const { error, reload } = useResource(loadSession, []);
  useEffect(() => {
    document.documentElement.dataset.ready = current === undefined ? "" : "yes";
  }, [current]);
  if (current) return html`<${Shell} session=${current} />`;
  if (current === null) return html`<${SignIn} />`;
  return error ? html`<${Unreachable} error=${error} retry=${reload} />` : null;
}

startRouter();
startFocusKeeper();
render(html`<${App} />`, document.getElementById("app"));
