#!/bin/sh
# Run each class of Hadoop's S3A contract tests by itself, as its own build does: file systems are cached in a process.
#   run.sh BUILD PLACE: a report of all into PLACE/report.xml
set -u
here=$(dirname "$0")
path="$here:$1/sources:$1/test-classes:$(cat "$1/classpath")"
tests=org/apache/hadoop/fs/contract/s3a

echo '<all>' > "$2/all.xml"
for source in "$1/sources/$tests"/ITest*.java; do
    class=$(basename "$source" .java)
    java -Xmx768m -cp "$path" org.junit.platform.console.ConsoleLauncher --details=none --reports-dir="$2" \
        -n '.*' -c "$(echo "$tests" | tr / .).$class"
    sed '/^<?xml/d' "$2/TEST-junit-vintage.xml" >> "$2/all.xml"
    rm -f "$2/TEST-junit-vintage.xml"
done
echo '</all>' >> "$2/all.xml"
mv "$2/all.xml" "$2/report.xml"
