# systemd as the first process of a node, with the few units that are named here and none of what the host would start.
#   sh node-systemd.sh FOLDER NODE_JS KUBELET
set -eu
dir=$1 node=$2 kubelet=$3
units=$dir/units
if [ ! -d "$units" ]; then
  mkdir "$units"
  rm -rf /etc/systemd/system
  mkdir -p /etc/systemd/system/multi-user.target.wants
  for target in sysinit basic multi-user shutdown umount slices sockets; do
    printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$target" >"$units/$target.target"
  done
  printf 'Requires=basic.target\nAfter=basic.target\n' >>"$units/multi-user.target"
  printf 'Requires=sysinit.target\nAfter=sysinit.target\n' >>"$units/basic.target"
  service() {
    printf '[Service]\nExecStart=%s\nKillMode=process\nRestart=always\nRestartSec=200ms\nStandardOutput=append:%s\nStandardError=inherit\n[Install]\nWantedBy=multi-user.target\n' \
      "$2" "$3" >"/etc/systemd/system/$1.service"
    ln -s "../$1.service" /etc/systemd/system/multi-user.target.wants/
  }
  service sshd "/usr/sbin/sshd -D -e -f $dir/sshd_config" "$dir/sshd.log"
  service kubelet "$node $kubelet /etc/kubernetes/manifests $dir/kubelet" "$dir/kubelet.log"
fi
mount --bind "$units" /usr/lib/systemd/system
# Its own part of the hierarchy, and of no other machine's.
if [ -d /sys/fs/cgroup/systemd ]; then
  mount -t tmpfs tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd systemd /sys/fs/cgroup/systemd
else
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
exec env -i container=colonnade PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /usr/lib/systemd/systemd --system --unit=multi-user.target --log-target=console --show-status=0
