#!/bin/bash
# pmu_vm.sh: run a command inside an emulated arm64 Debian machine whose kernel
# drives a real perf PMU driver (armv8_pmuv3) over QEMU's emulated ARMv8 PMU, so
# that perf_event_open's hardware path can be tested on a host that has no PMU.
#
#   pmu_vm.sh deps                 install the host packages (root, apt)
#   pmu_vm.sh build                build what is missing in the cache
#   pmu_vm.sh run [options] -- COMMAND [ARG...]
#   pmu_vm.sh selftest [options]   boot and check that the emulated PMU counts right
#   pmu_vm.sh clean                drop the cache
#
# run options:
#   -d DIR   copied to /lab/src in the guest, the command's working directory
#   -x PAT   tar --exclude pattern for -d (may be repeated; .git is always left out)
#   -o DIR   gets what the command wrote under $OUT (/lab/out in the guest)
#   -w DIR   wheels (aarch64 or pure Python) unpacked onto the guest's PYTHONPATH
#   -e K=V   environment for the command (may be repeated)
#   -s N     processors (default 1)          -m SIZE  memory (default 4G)
#   -i MODE  icount: "shift=1,sleep=off" (default), any -icount value, or "off"
#   -c CPU   QEMU processor (default neoverse-n1)
#   -t SEC   give up after that long (status 124; default 900)
#   -u       run the command as an ordinary user (uid 1000), not root
#   -p N     write N to /proc/sys/kernel/perf_event_paranoid first
#   -T       no PyTorch disk (boots the same, saves building it)
#   -v       show the guest's console afterwards
#
# environment: PMU_VM_CACHE (default ~/.cache/pmu_vm), PMU_VM_KERNEL (Debian meta
# package, default linux-image-6.12-cloud-arm64), PMU_VM_PACKAGES (more Debian
# packages for the guest), PMU_VM_PYREQS (Python requirements of the PyTorch
# disk), PMU_VM_PYTHON (host Python 3.11 with pip).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${PMU_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pmu_vm}
kmeta=${PMU_VM_KERNEL:-linux-image-6.12-cloud-arm64}
kdir=$cache/kernels/$kmeta
py=${PMU_VM_PYTHON:-python3}
pyreqs=${PMU_VM_PYREQS:-"torch==2.10.0 numpy<2.4 filelock typing-extensions sympy mpmath networkx jinja2 markupsafe fsspec"}
guestpkgs="python3 python3-distutils busybox-static bash coreutils grep sed findutils util-linux procps hostname libgomp1 libstdc++6 linux-perf strace libpapi7.0 ${PMU_VM_PACKAGES:-}"
NICE="nice -n 10"
PATH=$PATH:/usr/sbin:/sbin
# every boot has the same clock, random numbers and order of files
epoch=2026-01-01T00:00:00 uuid=00000000-0000-4000-8000-000000000001
t= qpid= unpacked=
say() { echo "pmu_vm: $*" >&2; }
die() { say "$*"; exit 2; }

deps() {
  local need=()
  command -v qemu-system-aarch64 >/dev/null || need+=(qemu-system-arm)
  command -v mkfs.ext4 >/dev/null || need+=(e2fsprogs)
  command -v debugfs >/dev/null || need+=(e2fsprogs)
  command -v dpkg-deb >/dev/null || need+=(dpkg)
  "$py" -m pip --version >/dev/null 2>&1 || need+=(python3-pip)
  [ ${#need[@]} -eq 0 ] && { say "host packages are there"; return; }
  $NICE apt-get update -q
  # the firmware images QEMU can suggest are not needed to boot a kernel directly
  DEBIAN_FRONTEND=noninteractive $NICE apt-get install -y -q --no-install-recommends "${need[@]}"
}

apt_arm64() { # an apt tool working for arm64 in folders of our own; sources, keys and proxies stay the host's
  local tool=$1; shift
  APT_CONFIG=$cache/apt/apt.conf $NICE "$tool" -o APT::Architecture=arm64 -o APT::Install-Recommends=0 -o APT::Install-Suggests=0 \
    -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Dir::State="$cache/apt/state" \
    -o Dir::State::status="$cache/apt/status" -o Dir::Cache="$cache/apt/cache" "$@"
}
apt_setup() {
  mkdir -p "$cache"/apt/state/lists/partial "$cache"/apt/cache/archives/partial
  : > "$cache/apt/status"; echo 'APT::Architectures { "arm64"; };' > "$cache/apt/apt.conf"
  apt_arm64 apt-get update -qq >&2
}

mkimg() { # mkimg DIR IMAGE SPARE_MB: an ext4 image of DIR, made without mounting
  local used mb
  used=$(du -sm --apparent-size "$1" | cut -f1)
  local files; files=$(find "$1" | wc -l)
  mb=$(( used + used/10 + files/200 + 24 + $3 ))
  rm -f "$2"; truncate -s "${mb}M" "$2"
  # root_owner only covers the top folder; root builds it, so owners are right
  $NICE mkfs.ext4 -q -F -m 0 -O ^has_journal -U "$uuid" -E "root_owner=0:0,lazy_itable_init=1,hash_seed=$uuid" -d "$1" "$2" </dev/null 2> "$2.log" || { cat "$2.log" >&2; return 1; }
  rm -f "$2.log"
}

build_kernel() { # the kernel named by PMU_VM_KERNEL and an initramfs with its modules
  [ -e "$kdir/ok" ] && return
  [ -d "$cache/apt/state/lists/partial" ] || apt_setup
  if [ -z "${PMU_VM_KERNEL:-}" ] && ! apt_arm64 apt-cache show -q=2 "$kmeta" >/dev/null 2>&1; then
    kmeta=linux-image-cloud-arm64; kdir=$cache/kernels/$kmeta; [ -e "$kdir/ok" ] && return   # what every Debian 12 has
  fi
  say "building the guest's kernel ($kmeta)"
  local d
  rm -rf "$kdir"; mkdir -p "$kdir/x"
  d=$(apt_arm64 apt-cache depends "$kmeta" | sed -n 's/.*Depends: *\(linux-image-[^ ]*\).*/\1/p' | head -1)
  (cd "$kdir" && apt_arm64 apt-get download -q "${d:-$kmeta}" busybox-static >&2)
  dpkg-deb -x "$kdir"/linux-image*.deb "$kdir/x"; dpkg-deb -x "$kdir"/busybox*.deb "$kdir/x"
  cp "$kdir"/x/boot/vmlinuz-* "$kdir/vmlinuz"; cp "$kdir"/x/boot/config-* "$kdir/config"
  "$py" "$here/mkinitramfs.py" "$kdir/x" "$(ls "$kdir"/x/bin/busybox "$kdir"/x/usr/bin/busybox 2>/dev/null | head -1)" \
    "$here/guest/initramfs-init" "$kdir/initramfs" virtio_mmio virtio_blk virtio_console ext4 crc32c_generic >&2
  rm -rf "$kdir/x" "$kdir"/*.deb; : > "$kdir/ok"
}

build_root() { # the guest's root disk: Debian packages unpacked, no maintainer script run
  local tag; tag=$(printf '%s' "$guestpkgs" | cat - "$here/guest/pmu-vm-init" | sha256sum | cut -c1-12)
  [ -e "$cache/root.ok-$tag" ] && return
  say "building the guest's root disk"
  apt_setup
  rm -rf "$cache"/apt/cache/archives/*.deb "$cache/root"
  apt_arm64 apt-get install -y -qq --download-only $guestpkgs >&2
  local r=$cache/root f
  mkdir -p "$r"/usr/{bin,sbin,lib} "$r"/{proc,sys,dev,run,mnt,lab,opt/site,var/tmp}
  for f in bin sbin lib; do ln -s "usr/$f" "$r/$f"; done
  for f in "$cache"/apt/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$f" | tar -x -C "$r" --keep-directory-symlink \
      --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*'
  done
  ln -sf bash "$r/usr/bin/sh"; ln -sf mawk "$r/usr/bin/awk"
  printf 'root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/tmp:/bin/bash\n' > "$r/etc/passwd"
  printf 'root:x:0:\nuser:x:1000:\n' > "$r/etc/group"
  printf '127.0.0.1 localhost pmuvm\n' > "$r/etc/hosts"
  install -m 755 "$here/guest/pmu-vm-init" "$r/usr/sbin/pmu-vm-init"
  pyc "$r/usr/lib/python3.11" /usr/lib/python3.11
  mkimg "$r" "$cache/root.img" 256
  rm -rf "$r" "$cache"/apt/cache/archives/*.deb "$cache"/root.ok-*; : > "$cache/root.ok-$tag"
}

pyc() { # compile DIR's Python files (to lie at PATH in the guest) where the host's Python is the guest's
  "$py" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { say "host Python is not 3.11: guest imports will be slow"; return 0; }
  $NICE "$py" -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$1" -p "$2" -x '/(lib2to3/tests|test|bad_coding)/' "$1" >/dev/null 2>&1 || true
}

pip_target() { # pip_target DIR PIP-ARGS...: unpack aarch64 wheels for Python 3.11 into DIR
  local t=$1; shift
  $NICE "$py" -m pip install -q --no-deps --no-compile --ignore-installed --target "$t" \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
    --only-binary=:all: --python-version 3.11 --implementation cp --root-user-action=ignore "$@" >&2
}

build_site() {
  local tag; tag=$(printf %s "$pyreqs" | sha256sum | cut -c1-12)
  [ -e "$cache/site.ok-$tag" ] && return
  say "building the PyTorch disk ($pyreqs)"
  rm -rf "$cache/site"; mkdir -p "$cache/site"
  pip_target "$cache/site" $pyreqs
  rm -rf "$cache"/site/torch/{include,test,bin/test_*} "$cache"/site/torch/lib/*.a
  pyc "$cache/site" /opt/site
  mkimg "$cache/site" "$cache/site.img" 8
  rm -rf "$cache/site" "$cache"/site.ok-*; : > "$cache/site.ok-$tag"
}

build_wheels() { # the wheels in DIR unpacked and compiled, once for each set of names and sizes; sets $unpacked
  unpacked=$cache/wheels/$(stat -c '%n %s' "$1"/*.whl | sed 's|.*/||' | sha256sum | cut -c1-12)
  [ -e "$unpacked/ok" ] && return
  say "unpacking the wheels in $1"
  rm -rf "$unpacked"; mkdir -p "$unpacked/site"
  pip_target "$unpacked/site" --no-index "$1"/*.whl
  pyc "$unpacked/site" /lab/site
  : > "$unpacked/ok"
}

build_all() { # build_all WITH_TORCH [WHEELS]; one builder at a time
  mkdir -p "$cache"; exec 9> "$cache/lock"; flock 9
  build_root; build_kernel; [ -z "$1" ] || build_site; [ -z "${2:-}" ] || build_wheels "$2"
  exec 9>&-
}

run() {
  local dir= outdir= wheels= smp=1 mem=4G icount=shift=1,sleep=off cpu=neoverse-n1 limit=900 user= paranoid= site=1 verbose= OPTIND=1 o
  local ex=(--exclude=.git) envs=()
  while getopts d:x:o:w:e:s:m:i:c:t:up:Tv o; do case $o in
    d) dir=$OPTARG;; x) ex+=("--exclude=$OPTARG");; o) outdir=$OPTARG;; w) wheels=$OPTARG;;
    e) envs+=("$OPTARG");; s) smp=$OPTARG;; m) mem=$OPTARG;; i) icount=$OPTARG;; c) cpu=$OPTARG;;
    t) limit=$OPTARG;; u) user=1;; p) paranoid=$OPTARG;; T) site=;; v) verbose=1;; *) exit 2;; esac; done
  shift $((OPTIND-1)); [ $# -gt 0 ] || die "no command"
  command -v qemu-system-aarch64 >/dev/null || die "no qemu-system-aarch64 (pmu_vm.sh deps)"
  build_all "$site" "$wheels"
  t=$(mktemp -d "$cache/run.XXXXXX"); trap '[ -z "$qpid" ] || kill "$qpid" 2>/dev/null; rm -rf "$t"' EXIT; trap 'exit 130' INT TERM HUP
  mkdir -p "$t"/w/{src,out,site,.pmu_vm}
  [ -z "$dir" ] || tar -C "$dir" -c "${ex[@]}" . | tar -C "$t/w/src" -x --no-same-owner
  [ -z "$wheels" ] || cp -al "$unpacked/site/." "$t/w/site/"
  { local e; for e in "${envs[@]}"; do printf 'export %q\n' "$e"; done; printf 'exec'; printf ' %q' "$@"; echo; } > "$t/w/.pmu_vm/job"
  [ -z "$user" ] || : > "$t/w/.pmu_vm/user"
  [ -z "$paranoid" ] || echo "$paranoid" > "$t/w/.pmu_vm/paranoid"
  mkimg "$t/w" "$t/work.img" 256; rm -rf "$t/w"
  mkfifo "$t/out"; cat "$t/out" & local catpid=$!
  local q=(qemu-system-aarch64 -M virt,gic-version=3 -cpu "$cpu" -smp "$smp" -m "$mem" -nodefaults -no-user-config
    -display none -monitor none -serial "file:$t/console" -no-reboot -seed 1 -rtc "base=$epoch,clock=vm"
    -kernel "$kdir/vmlinuz" -initrd "$kdir/initramfs" -append "console=ttyAMA0 quiet loglevel=4 panic=-1 nokaslr ${PMU_VM_APPEND:-}"
    -drive "if=none,id=root,format=raw,file=$cache/root.img,snapshot=on" -device virtio-blk-device,drive=root,serial=root
    -drive "if=none,id=work,format=raw,file=$t/work.img,cache=unsafe" -device virtio-blk-device,drive=work,serial=work
    -device virtio-serial-device
    -chardev "file,id=out,path=$t/out" -device virtserialport,chardev=out,name=out
    -chardev "file,id=rc,path=$t/rc" -device virtserialport,chardev=rc,name=rc)
  [ -z "$site" ] || q+=(-drive "if=none,id=site,format=raw,file=$cache/site.img,snapshot=on" -device virtio-blk-device,drive=site,serial=site)
  if [ "$icount" = off ]; then q+=(-accel tcg,tb-size=512); else q+=(-accel tcg,thread=single,tb-size=512 -icount "$icount"); fi
  [ -z "$verbose" ] || say "${q[*]}"
  local rc=0 t0=$SECONDS
  TMPDIR=$t timeout -k 5 "$limit" $NICE "${q[@]}" </dev/null & qpid=$!
  wait "$qpid" || rc=$?; qpid=
  # where QEMU never opened the pipe, this lets cat end
  if [ -z "$(jobs -pr)" ]; then :; else (timeout 2 bash -c ': > "$0"' "$t/out") || true; fi
  wait "$catpid" || true
  [ -z "$verbose" ] || { say "console:"; cat "$t/console" >&2 || true; say "wall $((SECONDS-t0)) s"; }
  if [ -n "$outdir" ]; then
    mkdir -p "$outdir" "$t/back"; debugfs -R "rdump /out $t/back" "$t/work.img" >/dev/null 2>&1 || true
    [ ! -d "$t/back/out" ] || cp -r "$t/back/out/." "$outdir/"
  fi
  [ $rc -eq 124 ] || [ $rc -eq 137 ] && { say "gave up after $limit s"; exit 124; }
  [ -s "$t/rc" ] || { say "the guest ended without a status (QEMU: $rc); console:"; tail -n 40 "$t/console" >&2 || true; exit 125; }
  exit "$(tr -dc 0-9 < "$t/rc")"
}

cmd=${1:-}; [ $# -gt 0 ] && shift
case $cmd in
  deps) deps;; build) build_all 1;; run) run "$@";;
  selftest) run -T -d "$here/guest" "$@" -- python3 selftest.py;;
  clean) rm -rf "$cache"/{apt,kernels,lock,root,root.*,site,site.*,wheels,run.*};; *) sed -n '2,30p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//'; exit 2;;
esac
