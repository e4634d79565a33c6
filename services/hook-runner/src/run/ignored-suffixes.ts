/** What editors, package managers and people leave beside a hook: Rudder's own list, and the leavings of `patch`. */
export const DEFAULT_IGNORED_SUFFIXES: readonly string[] = [
  ...['.swp', '~', '.bak', '.orig', '.rej'],
  ...['.cfnew', '.cfsaved', '.cfedited', '.cfdisabled', '.cfmoved'],
  ...['.dpkg-old', '.dpkg-dist', '.dpkg-new', '.dpkg-tmp'],
  ...['.disable', '.disabled', '_disable', '_disabled'],
  ...['.ucf-old', '.ucf-dist', '.ucf-new'],
  ...['.rpmnew', '.rpmsave', '.rpmorig'],
];

/** Whether a name ends in one of the suffixes, whatever their case (seed 002). */
export function hasIgnoredSuffix(name: string, suffixes: readonly string[]): boolean {
  const lower = name.toLowerCase();
  return suffixes.some((suffix) => lower.endsWith(suffix.toLowerCase()));
}
