# Sourced by both guests: names, the wire between them, and what every NFS program expects.
hostname "$role"
printf '127.0.0.1 localhost %s\n10.99.0.1 server\n10.99.0.2 client\n' "$role" >/etc/hosts
ip link set lo up
ip address add "$address/24" dev vec0
ip link set vec0 up mtu 8000
# whom the packages would have added
for user in _rpc:399 statd:398; do
    grep -q "^${user%:*}:" /etc/passwd || echo "${user%:*}:x:${user#*:}:65534::/run/rpcbind:/usr/sbin/nologin" >>/etc/passwd
done
mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/sm /var/lib/nfs/sm.bak
rpcbind -w
