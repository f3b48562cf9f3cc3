#!/bin/sh
# SeaweedFS for `--target 'seaweed=sh loadtests/cpu/seaweed.sh {port} {data} {access_key} {secret_key}'`.
# As it ships, but for its keys, and for ports of its own beside the S3 listener. `weed` is looked for in PATH.
set -eu
port=$1 data=$2 access_key=$3 secret_key=$4
umask 077

cat > "$data/s3.json" <<END
{"identities": [{"name": "benchmark", "credentials": [{"accessKey": "$access_key", "secretKey": "$secret_key"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
END
# volumes of 30 GiB, its default, leave a small disk with none for the bucket of each cell
weed server -master.volumeSizeLimitMB=512 -dir="$data" -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.port=19333 -volume.port=18080 -volume.max=0 \
    -filer -filer.port=18888 &
server=$!
# SIGTERM takes a server 20 s, longer than the benchmark waits. The next start needs the ports, so both must have ended;
# one of them may have ended before.
trap 'kill -KILL $server $! || true; wait; exit' TERM INT
# the S3 listener would answer before its volumes are known to the master: seconds of errors
until curl --silent --fail http://127.0.0.1:19333/dir/assign | grep -q fid; do
    kill -0 $server || exit 1
    sleep 0.2
done
weed s3 -ip.bind=127.0.0.1 -port="$port" -port.grpc=18333 -filer=127.0.0.1:18888 -config="$data/s3.json" &
wait $!
