exec 2>&1
set +e
cd /tmp
mkdir -p t/bin && cp $(command -v busybox) t/bin/busybox && for a in sh sleep cat true; do ln -sf busybox t/bin/$a; done
tar -C t -cf t.tar . && podman import -q t.tar localhost/t:1
podman --version; systemctl --user --version | head -1; podman info --format '{{.Host.CgroupManager}} {{.Host.CgroupControllers}} {{.Host.OCIRuntime.Name}}'
try() {
  echo "== cgroup-parent '$1'"
  podman pod create -q --name p ${1:+--cgroup-parent $1} --cpu-shares 200 && podman create -q --name c --pod p --memory 64m localhost/t:1 /bin/busybox sleep 100 && podman start c
  echo "pod says: $(podman pod inspect p --format '{{.CgroupParent}} {{.CgroupPath}}')"
  pid=$(podman inspect c --format '{{.State.Pid}}'); echo "pid $pid in $(cat /proc/$pid/cgroup)"
  d=/sys/fs/cgroup$(dirname $(sed 's/^0:://' /proc/$pid/cgroup)); case $d in */libpod-*) d=$(dirname $d);; esac
  ls -ld $d; for f in cpu.weight memory.max memory.min pids.max; do echo "$d/$f: $(cat $d/$f)"; done
  [ -n "$2" ] && sh -c "$2" d $d
  podman pod rm -f -t 0 p
}
try "" 'echo own files; echo 77 >$1/cpu.weight; cat $1/cpu.weight; echo 100M >$1/memory.max; cat $1/memory.max; u=$(dirname $1); ls -ld $u; echo 500M >$u/memory.max && cat $u/memory.max; echo max > $u/memory.max'
try rootlet.slice 'u=$(dirname $1); echo parent $u; systemctl --user set-property --runtime rootlet.slice MemoryMax=500M CPUWeight=50; cat $u/memory.max $u/cpu.weight $u/memory.current $u/pids.current; systemctl --user daemon-reload; sleep 2; cat $u/memory.max $1/cpu.weight'
try rootlet_x.slice
try rootletburstable.slice
try rootlet-burstable.slice
try user-rootlet-burstable.slice
try user.slice/user-rootlet.slice
echo done
