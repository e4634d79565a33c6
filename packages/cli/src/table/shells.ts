/**
 * What a shell needs to ask `colonnade __complete` for the words that fit. One line a candidate, its help behind a tab;
 * where there is none, the shell offers files.
 */
export const SHELLS: Readonly<Record<string, string>> = {
  bash: `_colonnade() {
  local line candidates=()
  while IFS= read -r line; do candidates+=("\${line%%$'\\t'*}"); done \
    < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=("\${candidates[@]}")
  if [ "\${#COMPREPLY[@]}" -eq 0 ]; then compopt -o default; fi
}
complete -F _colonnade colonnade
`,
  zsh: `#compdef colonnade
_colonnade() {
  local line word help
  local -a candidates
  while IFS= read -r line; do
    word="\${line%%$'\\t'*}"
    help="\${line#*$'\\t'}"
    candidates+=("\${word//:/\\\\:}:\${help}")
  done < <("\${words[1]}" __complete "\${(@)words[2,$CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then _describe 'colonnade' candidates; else _files; fi
}
if [ "\${funcstack[1]}" = "_colonnade" ]; then _colonnade "$@"; else compdef _colonnade colonnade; fi
`,
  fish: `function __colonnade_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c colonnade -a '(__colonnade_complete)'
`,
};
