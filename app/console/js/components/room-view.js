// Loads a room's module when it is first opened, and catches what its pages throw.
import { html, useEffect, useState } from "../ui.js";
import { Component } from "../ui.js";
import { Button } from "./button.js";
import { ErrorNote } from "./error-note.js";
import { Empty } from "./page.js";
import { pathTo } from "../router.js";

/** Shows a room, or says that there is none, or that it cannot be loaded. */
export function RoomView({ room, page }) {
  const [loaded, setLoaded] = useState(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    room?.load().then((module) => setLoaded(() => module.default), () => setFailed(true));
  }, [room]);
  if (!room) return html`<${Empty} title="No such page" action="To the first page" href=${pathTo([])}>There is nothing here, or you have no right to see it.<//>`;
  if (failed) return html`<${Stale} />`;
  return loaded && html`<${Boundary} key=${page.segments.join("/")}><${loaded} segments=${page.segments.slice(1)} query=${page.query} /><//>`;
}

function Stale() {
  return html`<${Empty} title="This page cannot be loaded">
    The gateway was restarted with another version, or does not answer.
    <p><${Button} icon="refresh" onClick=${() => location.reload()}>Load again<//></p><//>`;
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
