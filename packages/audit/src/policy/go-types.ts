import type { GoType } from './go-decode.ts';

const text: GoType = { kind: 'string' };
const texts: GoType = { kind: 'list', of: text };
const flag: GoType = { kind: 'bool' };
const time: GoType = { kind: 'time' };
const labels: GoType = { kind: 'map', of: text };

function listOf(fields: Readonly<Record<string, GoType>>): GoType {
  return { kind: 'list', of: { kind: 'struct', fields } };
}

/** metav1.ObjectMeta: nothing of it is used, but what does not fit it is refused, as Kubernetes does. */
const objectMeta: GoType = {
  kind: 'struct',
  fields: {
    name: text,
    generateName: text,
    namespace: text,
    selfLink: text,
    uid: text,
    resourceVersion: text,
    generation: { kind: 'int64' },
    creationTimestamp: time,
    deletionTimestamp: { kind: 'pointer', of: time },
    deletionGracePeriodSeconds: { kind: 'pointer', of: { kind: 'int64' } },
    labels,
    annotations: labels,
    ownerReferences: listOf({
      apiVersion: text,
      kind: text,
      name: text,
      uid: text,
      controller: { kind: 'pointer', of: flag },
      blockOwnerDeletion: { kind: 'pointer', of: flag },
    }),
    finalizers: texts,
    managedFields: listOf({
      manager: text,
      operation: text,
      apiVersion: text,
      time: { kind: 'pointer', of: time },
      fieldsType: text,
      fieldsV1: { kind: 'pointer', of: { kind: 'raw' } },
      subresource: text,
    }),
  },
};

/** audit.k8s.io/v1 Policy. */
export const policyType: GoType = {
  kind: 'struct',
  fields: {
    kind: text,
    apiVersion: text,
    metadata: objectMeta,
    rules: listOf({
      level: text,
      users: texts,
      userGroups: texts,
      verbs: texts,
      resources: listOf({ group: text, resources: texts, resourceNames: texts }),
      namespaces: texts,
      nonResourceURLs: texts,
      omitStages: texts,
      omitManagedFields: { kind: 'pointer', of: flag },
    }),
    omitStages: texts,
    omitManagedFields: flag,
  },
};

/** What goDecode makes of a Policy: the same with nothing left out checked. */
export type RawPolicy = {
  rules?: readonly RawRule[];
  omitStages?: readonly (string | undefined)[];
  omitManagedFields?: boolean;
};

export type RawRule = {
  level?: string;
  users?: readonly (string | undefined)[];
  userGroups?: readonly (string | undefined)[];
  verbs?: readonly (string | undefined)[];
  resources?: readonly {
    group?: string;
    resources?: readonly (string | undefined)[];
    resourceNames?: readonly (string | undefined)[];
  }[];
  namespaces?: readonly (string | undefined)[];
  nonResourceURLs?: readonly (string | undefined)[];
  omitStages?: readonly (string | undefined)[];
  omitManagedFields?: boolean;
};
