// Who pays for requests: nothing is billed here, but what such a bucket asks of requests is enforced.
import { html } from "../../../../ui.js";
import { Select } from "../inputs.js";
import { documentOf, text } from "../shape.js";

const PAYERS = [["BucketOwner", "The owner"], ["Requester", "Its sender"]];

function Form({ value, onChange }) {
  return html`<${Select} label="Requests are paid by" value=${value.payer} options=${PAYERS} onChange=${(payer) => onChange({ payer })}
    hint=${value.payer === "Requester" ? "Requests of others must say x-amz-request-payer: requester, and anonymous ones are refused." : "Requests need nothing more."} />`;
}

export default {
  name: "request-payment",
  title: "Request payment",
  about: "Sluice bills nothing. The setting is for programs that were written for requester-pays buckets: others must declare that they would pay.",
  query: { requestPayment: "" },
  root: "RequestPaymentConfiguration",
  ...documentOf("RequestPaymentConfiguration", { payer: text("Payer") }),
  summary: (value) => (value.payer === "Requester" ? "by the requester" : "by the owner"),
  formOnly: true,
  Form,
};
