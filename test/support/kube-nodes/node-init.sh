# The first process of a node: its own host name, mounts and processes, and what runs on it.
#   sh node-init.sh FOLDER NAME NODE_JS KUBELET plain|systemd
set -eu
dir=$1 name=$2 node=$3 kubelet=$4 init=$5
hostname "$name"
mount --make-rprivate /
mount --bind "$dir/etc" /etc
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/lock
# Every start is a boot: its id is new.
cat /proc/sys/kernel/random/uuid >/run/boot-id
mount --bind /run/boot-id /proc/sys/kernel/random/boot_id
ip link set lo up
[ "$init" = plain ] || exec /bin/sh "$(dirname "$0")/node-systemd.sh" "$dir" "$node" "$kubelet"
/usr/sbin/sshd -D -e -f "$dir/sshd_config" >>"$dir/sshd.log" 2>&1 &
cron -f >>"$dir/cron.log" 2>&1 &
while :; do
  "$node" "$kubelet" /etc/kubernetes/manifests "$dir/kubelet" >>"$dir/kubelet.log" 2>&1 || true
  # As a service manager does.
  sleep 0.2
done &
# Orphans are ours to reap.
while :; do
  wait || true
  sleep 1
done
