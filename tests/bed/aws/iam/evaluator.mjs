// Judges requests by IAM policies: a request a line on stdin as JSON, its verdict a line on stdout.
//
// The evaluation is @cloud-copilot/iam-simulate's, which has AWS' own lists of actions, resources and condition keys. A request
// that these do not know is an error and no denial: whoever asks has to look.
import { createInterface } from "node:readline";
import { runSimulation } from "@cloud-copilot/iam-simulate";

for await (const line of createInterface({ input: process.stdin })) {
  const { principal, account, policies, resourcePolicy, action, resource, context } = JSON.parse(line);
  const simulation = {
    request: { principal, action, resource: { resource, accountId: account }, contextVariables: context },
    identityPolicies: policies,
    resourcePolicy,
    serviceControlPolicies: [],
    resourceControlPolicies: [],
  };
  const answer = await runSimulation(simulation, {});
  const verdict =
    answer.resultType === "error" ? { error: answer.errors.message } : { allowed: answer.overallResult === "Allowed" };
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
}
