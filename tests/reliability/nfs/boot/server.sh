#!/bin/sh
# The NFS server: disks that outlive it, each exported in its own way. Its memory does not outlive it.
set -eu
. "${0%/*}/network.sh"
modprobe nfsd

# the first is the root of NFSv4, for which an overlay will not do, and has who held what at the time of a power cut
for disk in a: b:/sync c:/async d:/small e:/squash f:/closed; do
    device=/dev/ubd${disk%:*} where=/srv${disk#*:}
    blkid -s TYPE "$device" >/dev/null || mkfs.ext4 -q -E lazy_itable_init=1,quotatype=usrquota -O quota "$device"
    mkdir -p "$where"
    mount -o usrquota "$device" "$where"
done
mkdir -p /srv/state
mount --bind /srv/state /var/lib/nfs
mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/sm /var/lib/nfs/sm.bak /var/lib/nfs/v4recovery /var/lib/nfs/nfsdcld
touch /var/lib/nfs/etab /var/lib/nfs/rmtab /var/lib/nfs/state
# all that comes to it is this user, who may have 24 MiB
chown 1000:1000 /srv/squash
setquota -u 1000 0 24576 0 0 /srv/squash

cat >/etc/exports <<EXPORTS
/sync   *(rw,sync,no_root_squash,no_subtree_check)
/async  *(rw,async,no_root_squash,no_subtree_check)
/small  *(rw,sync,no_root_squash,no_subtree_check)
/squash *(rw,sync,all_squash,anonuid=1000,anongid=1000,no_subtree_check)
/closed *(rw,sync,root_squash,no_subtree_check)
EXPORTS
cat >/etc/nfs.conf <<CONF
[exports]
rootdir=/srv
[nfsd]
# 90 s are usual
lease-time=10
grace-time=10
CONF
mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs
mount -t nfsd nfsd /proc/fs/nfsd
rpc.statd
nfsdcld
exportfs -ra
rpc.nfsd 8
rpc.mountd
touch "/run/lab/$ready"
exec sleep infinity
