import { html, useState } from "../../ui.js";
import { Button } from "../../components/button.js";
import { ErrorNote } from "../../components/error-note.js";
import { useAction, useResource } from "../../resource.js";
import { pathTo } from "../../router.js";
import { arnOf, callIam, listAll } from "./iam.js";
import { Picker } from "./picker.js";
import { useRights } from "./rights.js";

/** The groups of a user, which give it their policies. */
export function GroupsCard({ name }) {
  const { data: groups, error, reload } = useResource((signal) => listAll("ListGroupsForUser", "Groups", { UserName: name }, { signal }), [name]);
  const { may, known, error: unknown } = useRights([arnOf("group")]); // the gateway decides again for each group
  const [adding, setAdding] = useState(false);
  const [leave, leaving] = useAction(async (GroupName) => {
    await callIam("RemoveUserFromGroup", { UserName: name, GroupName });
    reload();
  });
  const join = async (GroupName) => {
    await callIam("AddUserToGroup", { UserName: name, GroupName });
    setAdding(false);
    reload();
  };
  const load = async (signal) => {
    const all = await listAll("ListGroups", "Groups", {}, { signal });
    return all.filter((one) => groups.every((joined) => joined.GroupId !== one.GroupId)).map((one) => ({ value: one.GroupName, label: one.GroupName }));
  };
  return html`
    <section class="card stack" aria-labelledby="groups-head" aria-busy=${!(groups ?? error) || !(known || unknown)}>
      <div class="row"><h2 class="grow" id="groups-head">Groups</h2>
        ${may("AddUserToGroup") && may("ListGroups") && html`<${Button} icon="plus" disabled=${!groups} onClick=${() => setAdding(true)}>Add to group<//>`}</div>
      <${ErrorNote} error=${error ?? leaving.error} retry=${error && reload} />
      ${groups && !groups.length && html`<p class="quiet">In no group. A group gives its policies to all its users.</p>`}
      ${groups?.length > 0 && html`<ul class="lines">${groups.map((group) => html`
        <li class="row" key=${group.GroupId}><a class="grow" href=${pathTo(["people", "groups", group.GroupName])}>${group.GroupName}</a>
          ${may("RemoveUserFromGroup") && html`<${Button} kind="plain" icon="close" label="Remove from ${group.GroupName}" busy=${leaving.busy} onClick=${() => leave(group.GroupName)} />`}</li>`)}</ul>`}
    </section>
    ${adding && html`<${Picker} title="Add ${name} to a group" label="Group" action="Add" load=${load} choose=${join} onClose=${() => setAdding(false)}
      empty="There is no other group. Make one in the tab Groups." />`}`;
}
