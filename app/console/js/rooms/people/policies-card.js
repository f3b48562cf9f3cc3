// The policies of a user, group or role: managed ones that are attached, and inline ones.
import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { confirm } from "../../components/dialog.js";
import { ErrorNote } from "../../components/error-note.js";
import { Badge } from "../../components/values.js";
import { useAction, useResource } from "../../resource.js";
import { pathTo } from "../../router.js";
import { callIam, listAll } from "./iam.js";
import { InlinePolicyDialog } from "./inline-policy.js";
import { Picker } from "./picker.js";

/** Shows them. `kind`: User, Group or Role; `may(operation)` is about this one. */
export function PoliciesCard({ kind, name, may }) {
  const of = { [`${kind}Name`]: name };
  const mayList = may(`List${kind}Policies`);
  const mayListAttached = may(`ListAttached${kind}Policies`);
  const { data, error, reload } = useResource(async (signal) => ({
    inline: mayList ? await listAll(`List${kind}Policies`, "PolicyNames", of, { signal }) : [],
    attached: mayListAttached ? await listAll(`ListAttached${kind}Policies`, "AttachedPolicies", of, { signal }) : [],
  }), [kind, name]);
  const [open, setOpen] = useState(null);
  const done = () => {
    setOpen(null);
    reload();
  };
  const [run, acting] = useAction(async (action, parameters) => {
    await callIam(`${action}${kind}Policy`, { ...of, ...parameters });
    done();
  });
  const remove = async (PolicyName) => {
    const message = `${name} loses what only it allows. Its text is lost.`;
    if (await confirm({ title: `Delete the inline policy ${PolicyName}?`, message, action: "Delete policy" })) run("Delete", { PolicyName });
  };
  const load = async (signal) => (await listAll("ListPolicies", "Policies", {}, { signal }))
    .filter((policy) => data.attached.every((one) => one.PolicyArn !== policy.Arn)).map((policy) => ({ value: policy.Arn, label: policy.PolicyName }));
  if (!mayList && !mayListAttached) return null;
  return html`
    <section class="card stack" aria-labelledby="policies-head" aria-busy=${!(data ?? error)}>
      <div class="row"><h2 class="grow" id="policies-head">Policies</h2>
        ${may(`Attach${kind}Policy`) && html`<${Button} icon="link" disabled=${!data} onClick=${() => setOpen({ attach: true })}>Attach policy<//>`}
        ${may(`Put${kind}Policy`) && html`<${Button} icon="plus" disabled=${!data} onClick=${() => setOpen({ name: "" })}>Write inline policy<//>`}</div>
      <${ErrorNote} error=${error ?? acting.error} retry=${error && reload} />
      ${data && !data.inline.length && !data.attached.length && html`<p class="quiet">None${kind === "User" ? ": it may do what its groups and bucket policies allow" : ""}.</p>`}
      ${data && html`<ul class="lines">
        ${data.attached.map((one) => html`<li class="row" key=${one.PolicyArn}>
          <span class="grow"><a href=${pathTo(["people", "policies", one.PolicyName], { arn: one.PolicyArn })}>${one.PolicyName}</a> <${Badge}>managed<//></span>
          ${may(`Detach${kind}Policy`) && html`<${Button} kind="plain" icon="close" label="Detach ${one.PolicyName}" busy=${acting.busy}
            onClick=${() => run("Detach", { PolicyArn: one.PolicyArn })} />`}</li>`)}
        ${data.inline.map((policy) => html`<li class="row" key=${`inline ${policy}`}>
          <span class="grow">${may(`Get${kind}Policy`) ? html`<${Button} kind="plain" class="as-link" onClick=${() => setOpen({ name: policy })}>${policy}<//>` : policy} <${Badge}>inline<//></span>
          ${may(`Delete${kind}Policy`) && html`<${Button} kind="plain" icon="trash" label="Delete ${policy}" busy=${acting.busy} onClick=${() => remove(policy)} />`}</li>`)}
      </ul>`}
    </section>
    ${open?.attach && html`<${Picker} title="Attach a managed policy to ${name}" label="Policy" action="Attach" load=${load}
      choose=${(PolicyArn) => run("Attach", { PolicyArn })} onClose=${() => setOpen(null)} empty="All policies are attached." />`}
    ${open && !open.attach && html`<${InlinePolicyDialog} kind=${kind} of=${of} policy=${open.name} readOnly=${!may(`Put${kind}Policy`)} onDone=${done} onClose=${() => setOpen(null)} />`}`;
}
