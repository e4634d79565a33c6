/** Packages and services whose purpose nobody has written down. */
export function checkReadmes(files: readonly string[]): string[] {
  const all = new Set(files);
  const folders = new Set(files.flatMap((file) => /^(?:packages|services)\/[^/]+(?=\/)/.exec(file) ?? []));
  return [...folders]
    .filter((folder) => !all.has(`${folder}/README.md`))
    .map((folder) => `${folder}: no README.md`);
}
