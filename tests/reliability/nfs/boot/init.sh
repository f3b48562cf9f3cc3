#!/bin/sh
# The first process of a guest: lays the unpacked packages and memory over the machine's root, which it only reads.
# From the kernel's command line: packages, run, checkout (directories of the machine), role, address.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root /mnt/packages
mount -t hostfs -o "$packages" none /mnt/packages
ln -s "$packages/usr/bin/kmod" /mnt/insmod
LD_LIBRARY_PATH="$packages/usr/lib/x86_64-linux-gnu" \
    /mnt/insmod "$packages/usr/lib/modules/$(uname -r)/kernel/fs/overlayfs/overlay.ko"
mount -t overlay -o "lowerdir=/mnt/packages:/,upperdir=/mnt/upper,workdir=/mnt/work" root /mnt/root
cd /mnt/root
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t devtmpfs devtmpfs dev
mkdir -p dev/shm dev/pts srv
mount -t devpts devpts dev/pts
for directory in dev/shm run; do mount -t tmpfs -o mode=1777 tmpfs $directory; done
# /tmp stays what it is: the checkout may lie there
mkdir -m 1777 run/tmp
mkdir run/lab run/rpcbind run/lock
mount -t hostfs -o "$run" none run/lab
exec chroot . /bin/sh "$checkout/tests/reliability/nfs/boot/$role.sh"
