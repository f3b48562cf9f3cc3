# The gateway as an image; `--target loadtest` adds Locust and the load tests. See deploy/README.md.
# Both stages have the same base, so that what pip installs in one runs in the other; nothing here knows an architecture.
ARG PYTHON=docker.io/library/python:3.11-slim-bookworm

FROM ${PYTHON} AS dependencies
# of pyproject.toml, with commas, besides `postgres`: `fsspec` for stores over sftp and the like
ARG EXTRAS=
WORKDIR /source
COPY pyproject.toml ./
# apart from the sources, so that they change without all of this being installed again
RUN python3 -m venv --without-pip /opt/sluice && \
    python3 -c "import sys, tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
wanted = [*p['dependencies'], *(d for e in ['postgres', *filter(None, sys.argv[1].split(','))] for d in p['optional-dependencies'][e])]; \
print('\n'.join(wanted))" "${EXTRAS}" > /requirements && \
    python3 -m pip --python /opt/sluice/bin/python install --no-cache-dir --only-binary :all: -r /requirements

FROM dependencies AS installed
COPY LICENSE NOTICE README.md setup.py ./
COPY app app
COPY storage_drivers storage_drivers
COPY migrations migrations
COPY loadtests loadtests
RUN python3 -m pip --python /opt/sluice/bin/python install --no-cache-dir --no-deps .

FROM ${PYTHON} AS base
# as PID 1 it takes signals from the first moment and reaps what health checks leave
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin && \
    groupadd --gid 10001 sluice && \
    useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin sluice && \
    install -d -o 10001 -g 10001 -m 0700 /data /secrets && \
    # Docker gives a new named volume the owner and mode of the directory it is mounted on, and root's where there is none;
    # Postgres and Grafana, which are other users, read the first two
    install -d -o 10001 -g 10001 -m 0755 /postgres-secret /grafana-secret /stores/a /stores/b /results
COPY deploy/healthcheck.py deploy/keys.py /opt/deploy/
# the store is the relative path `data`, its default: SLUICE_DATA here would forbid SLUICE_STORES
WORKDIR /
ENV PATH=/opt/sluice/bin:$PATH PYTHONDONTWRITEBYTECODE=1 SLUICE_HOST=0.0.0.0
USER 10001:10001

FROM installed AS installed-loadtest
RUN python3 -m pip --python /opt/sluice/bin/python install --no-cache-dir --only-binary :all: \
    "$(pwd)[loadtest]" && ln -s /opt/sluice/lib/python3.*/site-packages/sluice_s3/loadtests /opt/sluice/loadtests

FROM base AS loadtest
COPY --from=installed-loadtest /opt/sluice /opt/sluice
ENV HOME=/tmp
ENTRYPOINT ["tini", "--"]
CMD ["sluice", "bench", "--help"]

FROM base AS sluice
COPY --from=installed /opt/sluice /opt/sluice
EXPOSE 9000 9001
HEALTHCHECK --interval=10s --timeout=8s --start-period=60s --retries=3 \
    CMD ["python3", "-I", "-S", "/opt/deploy/healthcheck.py"]
ENTRYPOINT ["tini", "--", "sluice"]
CMD ["serve"]
