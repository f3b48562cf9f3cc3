// The console's first module: finds out who is signed in, then shows the page of the path.
import { html, render, useSignal } from "./ui.js";
import { Shell } from "./components/shell.js";
import { Unreachable } from "./components/unreachable.js";
import { SignIn } from "./rooms/sign-in/sign-in.js";
import { startFocusKeeper } from "./focus.js";
import { startRouter } from "./router.js";
import { session } from "./session.js";
import { loadSession } from "./sign-in.js";

function App() {
  const current = useSignal(session);
  return current ? html`<${Shell} session=${current} />` : html`<${SignIn} />`;
}

/** Renders into the frame that came with the document, once it is known who is signed in. */
async function start() {
  const error = await loadSession().then(() => null, (reason) => reason);
  const shown = error ? html`<${Unreachable} error=${error} retry=${start} />` : html`<${App} />`;
  render(html`<div id="app">${shown}</div>`, document.body); // within an element, Preact removes what is not used of the frame
}

startRouter();
startFocusKeeper();
start();
