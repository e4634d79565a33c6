export type NamespaceFacts = { name: string; terminating: boolean };

export type Selection = {
  /** Namespaces whose Secret is kept equal, sorted. */
  targets: readonly string[];
  /** Being deleted: nothing can be created there, and what is there goes anyway. */
  terminating: readonly string[];
  /** Named, but not there (yet). */
  absent: readonly string[];
};

/**
 * Which namespaces a spec means (seed 004): `*` wins over all else. The source itself is never a target of its own.
 */
export function selectNamespaces(
  spec: { namespaces: readonly string[]; secretName: string; source: { namespace: string; name: string } },
  existing: readonly NamespaceFacts[],
): Selection {
  const all = new Map(existing.map((n) => [n.name, n]));
  const wanted = spec.namespaces.includes('*') ? [...all.keys()] : [...new Set(spec.namespaces)];
  const isSource = (name: string) => name === spec.source.namespace && spec.secretName === spec.source.name;
  const named = wanted.filter((name) => !isSource(name)).sort();
  return {
    targets: named.filter((name) => all.get(name)?.terminating === false),
    terminating: named.filter((name) => all.get(name)?.terminating === true),
    absent: named.filter((name) => !all.has(name)),
  };
}

export type Claim = { name: string; createdAtMs: number; secretName: string; namespaces: readonly string[] };

/**
 * Of several IngressTLS that want the same Secret, the one made first has it; of two made in the same second the one
 * whose name comes first.
 * @returns whose the target is, undefined: nobody claims it
 */
export function ownerOf(claims: readonly Claim[], secretName: string, namespace: string): string | undefined {
  const wanting = claims.filter(
    (c) => c.secretName === secretName && (c.namespaces.includes('*') || c.namespaces.includes(namespace)),
  );
  const [first] = wanting.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.name < b.name ? -1 : 1));
  return first?.name;
}
