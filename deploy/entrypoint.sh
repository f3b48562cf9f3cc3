#!/bin/sh
# The image's entry point: `serve …`, `server …` and other commands of sluice, `sluice …`, `minio …`, and shells as they are.
case "${1-}" in
sluice | minio | sh | bash | /*) ;;
*) set -- sluice "$@" ;;
esac
exec "$@"
