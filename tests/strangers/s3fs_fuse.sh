#!/bin/bash
# Build s3fs-fuse and run its integration tests, in a copy of its checkout: they write where they are.
#   s3fs_fuse.sh build BUILD    (in the checkout, with one of pjd/pjdfstest beside it)
#   s3fs_fuse.sh run BUILD PLACE OPTIONS
set -eu
source=$2/source

if [ "$1" = build ]; then
    rm -rf "$source"
    git clone --quiet . "$source"
    pjdfstest=$(sed -n 's/^PJDFSTEST_HASH="\(.*\)"/\1/p' "$source/test/integration-test-common.sh")
    git clone --quiet ../pjdfstest "$source/test/pjdfstest"
    git -C "$source/test/pjdfstest" checkout --quiet "$pjdfstest"
    # where the tests look whether they have downloaded it
    ln -s pjdfstest "$source/test/pjd-pjdfstest-${pjdfstest:0:7}"
    (cd "$source/test/pjdfstest" && autoreconf -ifs && ./configure && make)
    # one mount a run, with the options of our round
    sed -i 's/^for flag in .*/for flag in "$S3FS_OPTIONS"; do/' "$source/test/small-integration-test.sh"
    mkdir -p "$2/bin"
    # curl before 8 leaves out this header, which AWS asks for
    printf '#!/bin/sh\nexec %s --header "x-amz-content-sha256: UNSIGNED-PAYLOAD" "$@"\n' "$(command -v curl)" > "$2/bin/curl"
    chmod +x "$2/bin/curl"
    cd "$source"
    ./autogen.sh && ./configure && make
else
    export S3FS_OPTIONS=$4 S3FS_CREDENTIALS_FILE=$3/passwd PATH=$2/bin:$PATH
    echo "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" > "$S3FS_CREDENTIALS_FILE"
    cd "$source/test"
    exec ./small-integration-test.sh
fi
