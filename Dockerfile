# The gateway as an image; `--target loadtest` adds Locust and the load tests. See deploy/README.md.
# Both stages have the same base, so that what pip installs in one runs in the other; nothing here knows an architecture.
ARG PYTHON=docker.io/library/python:3.11-slim-bookworm

FROM ${PYTHON} AS dependencies
# of pyproject.toml, with commas, besides `postgres`: `fsspec` for stores over sftp and the like; these are not locked
ARG EXTRAS=
WORKDIR /source
COPY pyproject.toml ./
COPY deploy/requirements.txt deploy/requirements-loadtest.txt deploy/
RUN apt-get update && apt-get install -y --no-install-recommends binutils
# apart from the sources, so that they change without all of this being installed again; wheels come with symbols for debuggers
RUN python3 -m venv --without-pip /opt/sluice && \
    python3 -m pip --python /opt/sluice/bin/python install --no-cache-dir --only-binary :all: --require-hashes \
    -r deploy/requirements.txt && \
    python3 -c "import sys, tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
print('\n'.join(d for e in filter(None, sys.argv[1].split(',')) for d in extras[e]))" "${EXTRAS}" > /extras && \
    python3 -m pip --python /opt/sluice/bin/python install --no-cache-dir --only-binary :all: -r /extras && \
    find /opt/sluice -name '*.so' -exec strip --strip-unneeded {} + && \
    # a fifth of it is what no part of Sluice loads: tests and C of libraries, other databases, a highlighter's grammars
    cd /opt/sluice/lib/python3.*/site-packages && \
    rm -r apsw/tests apsw/sqlite_extra_binaries greenlet/tests sqlalchemy/testing sqlalchemy/dialects/mssql \
    sqlalchemy/dialects/mysql sqlalchemy/dialects/oracle pygments/lexers/[a-z]*.py pygments/lexers/__pycache__ && \
    find . -type f -regex '.*\.\(c\|cpp\|h\|hpp\|pxd\|pyi\|pyx\)' -delete

FROM dependencies AS installed
COPY LICENSE NOTICE README.md setup.py ./
COPY app app
COPY storage_drivers storage_drivers
COPY migrations migrations
COPY loadtests loadtests
# a set-up made for MinIO calls `minio server`
RUN python3 -m pip --python /opt/sluice/bin/python install --no-cache-dir --no-deps . && \
    ln -s sluice /opt/sluice/bin/minio

FROM ${PYTHON} AS base
# tini as PID 1 takes signals from the first moment and reaps what health checks leave; curl is for health checks of others
RUN apt-get update && apt-get install -y --no-install-recommends curl tini && apt-get clean && rm -rf /var/lib/apt/lists/* && \
    groupadd --gid 10001 sluice && \
    useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin sluice && \
    install -d -o 10001 -g 10001 -m 0700 /secrets && \
    # a volume takes this mode too, so that `--user` may be anybody; what is made in it is closed to others
    install -d -o 10001 -g 10001 -m 1777 /data && \
    # Docker gives a new named volume the owner and mode of the directory it is mounted on, and root's where there is none;
    # Postgres and Grafana, which are other users, read the first two
    install -d -o 10001 -g 10001 -m 0755 /postgres-secret /grafana-secret /stores/a /stores/b /results && \
    ln -s /opt/deploy/mc /usr/local/bin/mc
COPY deploy/entrypoint.sh deploy/healthcheck.py deploy/keys.py deploy/mc /opt/deploy/
# the store is the relative path `data`, its default: SLUICE_DATA here would forbid SLUICE_STORES
WORKDIR /
ENV PATH=/opt/sluice/bin:$PATH PYTHONDONTWRITEBYTECODE=1 SLUICE_HOST=0.0.0.0 SLUICE_ADMIN_HOST=0.0.0.0
USER 10001:10001

FROM installed AS installed-loadtest
RUN python3 -m pip --python /opt/sluice/bin/python install --no-cache-dir --only-binary :all: --require-hashes \
    -r deploy/requirements-loadtest.txt && ln -s /opt/sluice/lib/python3.*/site-packages/sluice_s3/loadtests /opt/sluice/loadtests

FROM base AS loadtest
COPY --from=installed-loadtest /opt/sluice /opt/sluice
ENV HOME=/tmp
ENTRYPOINT ["tini", "--"]
CMD ["sluice", "bench", "--help"]

FROM base AS sluice
COPY --from=installed /opt/sluice /opt/sluice
LABEL org.opencontainers.image.title="Sluice" \
      org.opencontainers.image.description="An S3 gateway over a directory" \
      org.opencontainers.image.licenses="Apache-2.0"
EXPOSE 9000 9001
VOLUME /data
HEALTHCHECK --interval=10s --timeout=8s --start-period=60s --retries=3 \
    CMD ["python3", "-I", "-S", "/opt/deploy/healthcheck.py"]
ENTRYPOINT ["tini", "--", "/opt/deploy/entrypoint.sh"]
CMD ["serve"]
