// A secret that was just made: shown once, and forgotten with the dialog.
import { html, useEffect, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { Check } from "../../components/field.js";
import { Dialog } from "../../components/dialog.js";
import { Copy } from "../../components/values.js";
import { leaveQuestion, pathTo } from "../../router.js";
import { session } from "../../session.js";

const FORGET_URL_MS = 10_000;

/** Shows credentials { accessKey, secretKey, token, expires } of `owner`, to be copied or saved. */
export function SecretDialog({ title, owner, credentials, onClose, children }) {
  const [saved, setSaved] = useState(false);
  const { accessKey, secretKey, token } = credentials;
  useEffect(() => {
    leaveQuestion.value = saved ? null : () => "The secret is not kept yet, and is never shown again. Leave it?";
    return () => {
      leaveQuestion.value = null;
    };
  }, [saved]);
  const values = [["Access key", accessKey], ["Secret key", secretKey], ...(token ? [["Session token", token]] : [])];
  const save = () => {
    saveFile(`${owner || "account"}-${accessKey}.credentials`, credentialsFile(credentials));
    setSaved(true);
  };
  const foot = html`
    <${Button} icon="download" onClick=${save}>Download as credentials file<//>
    <${Button} kind="primary" onClick=${onClose} disabled=${!saved} why="First say that you have kept it">Done<//>`;
  return html`
    <${Dialog} title=${title} onClose=${() => saved && onClose()} foot=${foot}>
      <p class="note warn">The secret is shown now and never again. If it is lost, make another key.</p>
      <dl class="secrets">
        ${values.map(([label, value]) => html`
          <div key=${label}><dt>${label}</dt><dd><code>${value}</code> <${Copy} text=${value} label="Copy ${label.toLowerCase()}" /></dd></div>`)}
      </dl>
      ${children}
      <${Check} label="I have kept the secret" checked=${saved} onChange=${setSaved} />
      <p class="quiet small">What to do with it: <a href=${pathTo(["people", "connect"])} target="_blank">ready-made settings for aws, boto3, rclone and others</a>.</p>
    <//>`;
}

/** Returns the text of a credentials file, as AWS's tools read it. */
export function credentialsFile({ accessKey, secretKey, token }) {
  const { endpoint, region } = session.peek();
  const lines = ["[default]", `aws_access_key_id = ${accessKey}`, `aws_secret_access_key = ${secretKey}`];
  if (token) lines.push(`aws_session_token = ${token}`);
  return [...lines, `region = ${region}`, `endpoint_url = ${endpoint}`, ""].join("\n");
}

function saveFile(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), FORGET_URL_MS);
}
