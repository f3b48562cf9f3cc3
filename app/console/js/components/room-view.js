// Loads a room's module when it is first opened, and catches what its pages throw.
import { Component, html, useEffect, useState } from "../ui.js";
import { Button } from "./button.js";
import { ErrorNote } from "./error-note.js";
import { Page } from "./page.js";
import { pathTo } from "../router.js";

/** Shows a room, or says that there is none, or that it cannot be loaded. */
export function RoomView({ room, page }) {
  const [loaded, setLoaded] = useState(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    room?.load().then((module) => setLoaded(() => module.default), () => setFailed(true));
  }, [room]);
  if (!room) return html`<${Missing} />`;
  if (failed) return html`<${Stale} />`;
  return loaded && html`<${Boundary} key=${page.segments.join("/")}><${loaded} segments=${page.segments.slice(1)} query=${page.query} /><//>`;
}

function Missing() {
  return html`
    <${Page} title="No such page">
      <p>There is nothing here, or you have no right to see it.</p>
      <p><a href=${pathTo([])}>To the first page</a></p>
    <//>`;
}

function Stale() {
  return html`
    <${Page} title="This page cannot be loaded">
      <p>The gateway was restarted with another version, or does not answer.</p>
      <p><${Button} icon="refresh" onClick=${() => location.reload()}>Load again<//></p>
    <//>`;
}

/** Catches an error of a page's code, so that the rest of the console stays usable. */
class Boundary extends Component {
  componentDidCatch(error) {
    this.setState({ error });
  }

  render({ children }, { error }) {
    if (!error) return children;
    console.error(error);
    return html`<${ErrorNote} error=${new Error(`This page has a fault: ${error.message}`)} retry=${() => this.setState({ error: null })} />`;
  }
}
