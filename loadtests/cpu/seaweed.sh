#!/bin/sh
# SeaweedFS in one process, for `--target 'seaweed=sh loadtests/cpu/seaweed.sh {port} {data} {access_key} {secret_key}'`.
# As it ships, but for its keys, and for ports of its own beside the S3 listener. `weed` is looked for in PATH.
set -eu
port=$1 data=$2 access_key=$3 secret_key=$4
umask 077

cat > "$data/s3.json" <<END
{"identities": [{"name": "benchmark", "credentials": [{"accessKey": "$access_key", "secretKey": "$secret_key"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
END
exec weed server -dir="$data" -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.port=19333 -volume.port=18080 -volume.max=0 \
    -filer -filer.port=18888 -s3 -s3.port="$port" -s3.port.grpc=18333 -s3.config="$data/s3.json"
