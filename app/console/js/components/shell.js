// The frame of every page: rooms on the left, palette and user above, the room of the path within.
import { classes, html, useEffect, useMemo, useSignal, useState } from "../ui.js";
import { navigate, page, pathTo } from "../router.js";
import { openRooms } from "../rooms.js";
import { may } from "../session.js";
import { signOut } from "../sign-in.js";
import { Button } from "./button.js";
import { Confirmation } from "./dialog.js";
import { Icon } from "./icon.js";
import { Menu } from "./menu.js";
import { openPalette, Palette, useCommands } from "./palette.js";
import { RoomView } from "./room-view.js";
import { Toasts } from "./toast.js";

/** Shows the console for a session. */
export function Shell({ session }) {
  const current = useSignal(page);
  const rooms = useMemo(openRooms, [session]);
  const [open, setOpen] = useState(false);
  const name = current.segments[0];
  useEffect(() => setOpen(false), [current]);
  useEffect(() => {
    if (!open) return undefined;
    const close = (event) => event.target.closest("#rooms, .open-rooms") || setOpen(false);
    document.addEventListener("click", close);
    return () => document.removeEventListener("click", close);
  }, [open]);
  useEffect(() => {
    if (!name) navigate(pathTo([rooms[0].name]), { replace: true });
  }, [name]);
  useCommands("rooms", () => rooms.flatMap(commandsOf), [rooms]);
  useCommands("session", () => [{ label: "Sign out", run: signOut }], []);
  const room = rooms.find((one) => one.name === name);
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <div class=${classes("shell", open && "rooms-open")} onKeyDown=${(event) => event.key === "Escape" && setOpen(false)}>
      <${Rooms} rooms=${rooms} name=${name} session=${session} />
      <div>
        <${Bar} session=${session} open=${open} toggle=${() => setOpen(!open)} />
        <main id="content" tabindex="-1">${name && html`<${RoomView} key=${name} room=${room} page=${current} />`}</main>
      </div>
    </div>
    <${Palette} /><${Confirmation} /><${Toasts} />`;
}

function commandsOf({ name, label, pages = [] }) {
  const open = pages.filter((page) => !page.action || may(page.action));
  return [{ label, hint: "room", href: pathTo([name]) }, ...open.map((page) => ({ label: page.label, hint: "page", href: pathTo([name, page.name]) }))];
}

function skip(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}

function Rooms({ rooms, name, session }) {
  return html`
    <nav aria-label="Rooms" id="rooms">
      <a class="brand" href=${pathTo([rooms[0].name])}><${Icon} name="sluice" /> Sluice</a>
      ${rooms.map((room) => html`
        <a class="room" key=${room.name} href=${pathTo([room.name])} aria-current=${room.name === name ? "page" : undefined}>
          <${Icon} name=${room.icon} /> ${room.label}</a>`)}
      <div class="foot">Sluice ${session.version}</div>
    </nav>`;
}

function Bar({ session, open, toggle }) {
  const items = [{ label: "Sign out", onClick: signOut }];
  return html`
    <header class="bar">
      <${Button} class="open-rooms" kind="plain" icon="menu" label="Rooms" aria-expanded=${String(open)} aria-controls="rooms" onClick=${toggle} />
      <${Button} class="find" icon="search" label="Go to or do" onClick=${openPalette}>
        <span class="words grow">Go to or do…</span><kbd>Ctrl K</kbd><//>
      <span class="grow"></span>
      <span class="wide-only quiet small cut" title=${session.arn}>${session.name || session.arn}</span>
      <${Menu} label="Your session" icon="user" items=${items} />
    </header>`;
}
