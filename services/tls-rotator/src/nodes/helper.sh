# The one program that runs on a node, as root: handed over whole with every call, so nothing of ours is installed
# there. Everything it works on comes as an argument, and nothing of an argument is ever evaluated.
#   sh -c "$this" colonnade VERB MANIFEST CA_FILE [KEY_FILE] …   (content on standard input)
set -eu
umask 077
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C

verb=$1 manifest=$2 ca=$3 key=$4
shift 4
folder=$(dirname "$manifest")
name=$(basename "$manifest")
# Beside the watched folder: on its file system, so that a move is atomic, and not read by the kubelet.
home=$(dirname "$folder")/colonnade-tls
parked=$home/$name
journal=$home/journal
previous=$home/previous-ca
staged=$home/next-ca
restorer=$home/restore.sh
deadline=$home/deadline
unit=/etc/systemd/system/colonnade-tls-restore.service
cron=/etc/cron.d/colonnade-tls-restore

fail() {
  echo "$1" >&2
  exit 3
}

# Ages instead of times: nothing here is ever compared with another machine's clock.
age_ms() {
  now=$(date +%s%3N)
  changed=$(stat -c %.3Z "$1" | tr -d .)
  echo $((now - changed))
}

sum() {
  if [ -e "$1" ]; then sha256sum <"$1" | cut -d ' ' -f 1; else echo none; fi
}

is_mount() {
  cut -d ' ' -f 5 /proc/self/mountinfo | grep -qxF "$(readlink -f "$1")"
}

prepare() {
  mkdir -p "$home"
  chown 0:0 "$home"
  chmod 0700 "$home"
  [ "$(stat -c %d "$home")" = "$(stat -c %d "$folder")" ] || fail "$home is not on the file system of $folder"
  # Between two mounts nothing is moved in one step, not even on one file system.
  if is_mount "$home" || is_mount "$folder"; then fail "$home and $folder are not on one mount"; fi
  [ -w "$folder" ] || fail "$folder cannot be written to"
}

# Standard input becomes a file, whole or not at all, with the owner and mode of the one it replaces.
replace() {
  target=$1
  at=$(dirname "$target")
  [ -d "$at" ] || fail "there is no folder $at"
  [ ! -L "$target" ] || fail "$target is a link"
  draft=$(mktemp "$at/.colonnade-XXXXXXXX")
  trap 'rm -f "$draft"' EXIT
  cat >"$draft"
  if [ -e "$target" ]; then
    chown --reference="$target" "$draft"
    chmod --reference="$target" "$draft"
  else
    chmod "$2" "$draft"
  fi
  sync "$draft"
  mv -f "$draft" "$target"
  sync "$at"
  trap - EXIT
}

remove() {
  rm -f "$1"
  sync "$(dirname "$1")"
}

uptime_ms() {
  cut -d ' ' -f 1 /proc/uptime | tr -d . | sed 's/$/0/'
}

boot_id() {
  cat /proc/sys/kernel/random/boot_id
}

# Start and identity of every kube-apiserver of this node.
processes() {
  up=$(uptime_ms)
  boot=$(boot_id)
  for status in /proc/[0-9]*/stat; do
    # Built in, for there may be hundreds of them.
    { IFS= read -r comm <"${status%/stat}/comm"; } 2>/dev/null || continue
    [ "$comm" = kube-apiserver ] || continue
    # The name may hold spaces and brackets: what comes after the last one is numbers.
    numbers=$(sed 's/.*) //' "$status" 2>/dev/null) || continue
    state=${numbers%% *}
    started=$(echo "$numbers" | cut -d ' ' -f 20)
    pid=$(basename "${status%/stat}")
    [ -n "$started" ] && [ "$state" != Z ] || continue
    echo "process $boot:$pid:$started $((up - started * 1000 / $(getconf CLK_TCK)))"
  done
}

is_armed() {
  [ -e "$deadline" ] && [ -e "$restorer" ] && { [ -e "$unit" ] || [ -e "$cron" ]; } || return 1
  read -r boot at pid <"$deadline" || return 1
  [ "$boot" = "$(boot_id)" ] && [ "$(uptime_ms)" -lt "$at" ] || return 1
  tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$restorer"
}

look() {
  if [ -e "$ca" ]; then echo "ca $(sum "$ca") $(age_ms "$ca")"; fi
  [ "$key" = - ] || echo "key $(sum "$key")"
  if [ -e "$manifest" ] && [ -e "$parked" ]; then echo "manifest both $(age_ms "$manifest")"
  elif [ -e "$manifest" ]; then echo "manifest in-place $(age_ms "$manifest")"
  elif [ -e "$parked" ]; then echo "manifest parked $(age_ms "$parked")"
  else echo "manifest missing 0"; fi
  processes
  if is_armed; then echo armed; fi
  if [ -e "$journal" ]; then echo "journal $(base64 -w 0 <"$journal")"; fi
  echo end
}

# Brings the manifest back by itself: at the deadline, or at once after a reboot.
write_restorer() {
  cat <<'RESTORER'
# Written by Colonnade's tls-rotator. Brings a parked manifest back if whoever parked it does not.
home=$1 manifest=$2
if [ "${3:-}" = armed ]; then
  # Who watches: the look asks for this process.
  read -r boot at _ <"$home/deadline"
  printf '%s %s %s\n' "$boot" "$at" $$ >"$home/deadline.new" && mv "$home/deadline.new" "$home/deadline"
  exec /bin/sh "$0" "$home" "$manifest"
fi
parked=$home/$(basename "$manifest")
while [ -e "$parked" ]; do
  read -r boot at _ <"$home/deadline" || at=0
  now=$(cut -d ' ' -f 1 /proc/uptime | tr -d . | sed 's/$/0/')
  if [ "$boot" != "$(cat /proc/sys/kernel/random/boot_id)" ] || [ "$now" -ge "$at" ]; then
    if [ -e "$manifest" ]; then rm -f "$parked"; else mv "$parked" "$manifest"; fi
    sync "$home" "$(dirname "$manifest")"
    exit 0
  fi
  sleep 1
done
# Not parked yet: wait for it as long as it may still come.
read -r boot at _ <"$home/deadline" || exit 0
now=$(cut -d ' ' -f 1 /proc/uptime | tr -d . | sed 's/$/0/')
[ "$now" -lt "$at" ] || exit 0
sleep 1
exec /bin/sh "$0" "$home" "$manifest"
RESTORER
}

# Out of reach of whatever ends our session: a unit of its own, for a session's processes may be killed with it.
start_restorer() {
  set -- "$restorer" "$home" "$manifest" armed
  if [ -d /run/systemd/system ] && systemd-run --quiet --collect /bin/sh "$@" </dev/null >/dev/null 2>&1; then return; fi
  setsid /bin/sh "$@" </dev/null >/dev/null 2>&1 &
}

# After a reboot systemd or cron starts it.
arm() {
  prepare
  write_restorer | replace "$restorer" 0700
  if [ -d /run/systemd/system ]; then
    replace "$unit" 0644 <<UNIT
[Unit]
Description=Brings the manifest of kube-apiserver back
RequiresMountsFor=$home $folder
ConditionPathExists=$parked
Before=kubelet.service
[Service]
Type=oneshot
ExecStart=/bin/sh $restorer $home $manifest
[Install]
WantedBy=multi-user.target
UNIT
    systemctl daemon-reload
    systemctl enable colonnade-tls-restore.service
  elif [ -d /etc/cron.d ] && command -v cron >/dev/null; then
    printf '@reboot root /bin/sh %s %s %s\n' "$restorer" "$home" "$manifest" | replace "$cron" 0644
  else
    fail 'neither systemd nor cron: nothing would bring the manifest back after a reboot'
  fi
  extend "$1" 0
  start_restorer
  tries=0
  until is_armed; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || fail 'the restorer does not start'
    sleep 0.1
  done
}

# The restorer's time begins anew.
extend() {
  printf '%s %s %s\n' "$(boot_id)" $(($(uptime_ms) + $1)) "$2" | replace "$deadline" 0600
}

disarm() {
  if [ -e "$unit" ]; then
    systemctl disable colonnade-tls-restore.service || true
    remove "$unit"
    systemctl daemon-reload || true
  fi
  if [ -e "$cron" ]; then remove "$cron"; fi
  # The process sees that nothing is parked and that its time is over, and ends.
  extend 0 0
}

case $verb in
look) look ;;
read-ca) if [ -e "$ca" ]; then cat "$ca"; fi ;;
read-previous) if [ -e "$previous" ]; then cat "$previous"; fi ;;
begin)
  # Standard input: the journal as one line, then the bundle. What is there now is kept once, whatever comes after.
  prepare
  IFS= read -r text
  cat >"$staged.new"
  sync "$staged.new"
  mv -f "$staged.new" "$staged"
  if [ ! -e "$journal" ]; then
    if [ -e "$ca" ]; then cp -p "$ca" "$previous.new" && sync "$previous.new" && mv -f "$previous.new" "$previous"
    else rm -f "$previous"; fi
  fi
  printf '%s\n' "$text" | replace "$journal" 0600
  ;;
write)
  [ -e "$staged" ] || fail 'the new bundle is not there'
  replace "$ca" 0644 <"$staged"
  ;;
write-previous)
  if [ -e "$previous" ]; then replace "$ca" 0644 <"$previous"; else remove "$ca"; fi
  ;;
write-key) replace "$key" 0600 ;;
arm) arm "$1" ;;
note) replace "$journal" 0600 ;;
park)
  is_armed || fail 'no restorer is armed'
  read -r _ _ pid <"$deadline"
  extend "$1" "$pid"
  replace "$journal" 0600
  mv "$manifest" "$parked"
  sync "$home" "$folder"
  ;;
unpark)
  if [ -e "$parked" ]; then
    if [ -e "$manifest" ]; then fail 'somebody has made another manifest'; fi
    mv "$parked" "$manifest"
  fi
  [ -e "$manifest" ] || fail 'the manifest is gone'
  sync "$home" "$folder"
  ;;
discard-parked)
  [ -e "$manifest" ] || fail 'there is no other manifest'
  remove "$parked"
  ;;
finish)
  disarm
  remove "$journal"
  ;;
*) fail "unknown verb" ;;
esac
