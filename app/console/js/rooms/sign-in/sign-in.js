// The page for signing in with an access key and its secret.
import { html, useEffect, useRef, useSignal, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Icon } from "../../components/icon.js";
import { useAction } from "../../resource.js";
import { endReason } from "../../session.js";
import { signIn } from "../../sign-in.js";

/** Asks for an access key and its secret. The address stays, so that the page that was wanted opens afterwards. */
export function SignIn() {
  const reason = useSignal(endReason);
  const [accessKey, setAccessKey] = useState("");
  const [secretKey, setSecretKey] = useState("");
  const first = useRef(null);
  const [run, { busy, error }] = useAction(() => signIn(accessKey.trim(), secretKey));
  useEffect(() => {
    document.title = "Sign in · Sluice";
    first.current?.focus();
  }, []);
  const submit = (event) => {
    event.preventDefault();
    run();
  };
  return html`
    <main class="sign-in">
      <form onSubmit=${submit}>
        <h1 class="brand"><${Icon} name="sluice" /> Sluice</h1>
        ${reason && html`<p class="note" role="status">${reason}</p>`}
        <${ErrorNote} error=${error} />
        <${Field} label="Access key">
          ${(props) => html`<input ...${props} ref=${first} name="username" autocomplete="username" autocapitalize="none"
            spellcheck=${false} required value=${accessKey} onInput=${(event) => setAccessKey(event.target.value)} />`}
        <//>
        <${Field} label="Secret key" hint="Of the gateway's root account, of an account, or of a user.">
          ${(props) => html`<input ...${props} type="password" name="password" autocomplete="current-password"
            required value=${secretKey} onInput=${(event) => setSecretKey(event.target.value)} />`}
        <//>
        <${Button} kind="primary" type="submit" busy=${busy}>Sign in<//>
        <p class="quiet small">The first key is in the file that <code>sluice serve</code> named when it started.</p>
      </form>
    </main>`;
}
