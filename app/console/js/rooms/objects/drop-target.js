// Takes files and folders that are dropped on a folder's page.
import { classes, html, useEffect, useRef, useState } from "../../ui.js";
import { Icon } from "../../components/icon.js";
import { addFiles } from "./upload/add-files.js";
import { filesOfDrop } from "./upload/chosen-files.js";

/** Its children are the page; a drop anywhere on the window uploads into `prefix`. */
export function DropTarget({ bucket, prefix, versioning, children }) {
  const [over, setOver] = useState(false);
  const depth = useRef(0);
  useEffect(() => {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    const enter = (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth.current += 1;
      setOver(true);
    };
    const leave = () => {
      depth.current = Math.max(0, depth.current - 1);
      if (!depth.current) setOver(false);
    };
    const allow = (event) => hasFiles(event) && event.preventDefault();
    const drop = async (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth.current = 0;
      setOver(false);
      addFiles(bucket, await filesOfDrop(event.dataTransfer, prefix), versioning);
    };
    const handlers = { dragenter: enter, dragleave: leave, dragover: allow, drop };
    for (const [name, handler] of Object.entries(handlers)) window.addEventListener(name, handler);
    return () => {
      for (const [name, handler] of Object.entries(handlers)) window.removeEventListener(name, handler);
    };
  }, [bucket, prefix, versioning]);
  return html`
    <div class=${classes("drop-target", over && "over")}>
      ${children}
      ${over && html`<div class="drop-hint" aria-hidden="true"><${Icon} name="upload" /> Drop to upload into ${prefix || bucket}</div>`}
    </div>`;
}
