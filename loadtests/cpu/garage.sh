#!/bin/sh
# One Garage node in the foreground, for `--target 'garage=sh loadtests/cpu/garage.sh {port} {data} {access_key} {secret_key}'`.
# As it ships, but for one copy and a region; `db_engine` by GARAGE_DB (sqlite or lmdb). `garage` is looked for in PATH.
set -eu
port=$1 data=$2 access_key=$3 secret_key=$4
umask 077

cat > "$data/garage.toml" <<END
metadata_dir = "$data/meta"
data_dir = "$data/data"
db_engine = "${GARAGE_DB:-sqlite}"
replication_factor = 1
# beside the S3 listener's address, so that a free port there is free here
rpc_bind_addr = "127.0.0.2:$port"
rpc_public_addr = "127.0.0.2:$port"
rpc_secret = "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"

[s3_api]
s3_region = "${AWS_REGION:-us-east-1}"
api_bind_addr = "127.0.0.1:$port"
END
export GARAGE_CONFIG_FILE="$data/garage.toml"
export GARAGE_DEFAULT_ACCESS_KEY="$access_key" GARAGE_DEFAULT_SECRET_KEY="$secret_key"
export RUST_LOG="${RUST_LOG:-warn}"

# the node cannot let a key make buckets before it runs
garage server --single-node --default-access-key &
trap 'kill $!; wait $!; exit' TERM INT
until garage key allow --create-bucket "$access_key" > /dev/null 2>&1; do
    kill -0 $! || exit 1
    sleep 0.1
done
wait $!
