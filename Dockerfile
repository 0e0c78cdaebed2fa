# bakeoff in a container, with a Linux kernel for virtual time. docs/container.md says how to use it.
#
#   docker build -t bakeoff .                                 everything: half an hour of one core
#   docker build -t bakeoff --target simulator .              without a kernel: the simulator, tables and pictures
#   docker run --rm bakeoff duel prague cubic --qdisc "fq_codel flows 1"
#   docker run --rm bakeoff duel cubic reno --qdisc "pie ecn" --engine kernel

FROM debian:trixie-slim AS build
# The newest of what is in Debian: the lock of Python's packages is what makes an image repeatable.
# hadolint ignore=DL3008
RUN sed -i 's/^Suites: trixie trixie-updates$/& trixie-backports/' /etc/apt/sources.list.d/debian.sources \
    && apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates gcc git libc6-dev make python3-venv \
    && apt-get install --yes --no-install-recommends --target-release trixie-backports cargo \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN make wheel
# The versions of requirements.lock, of those packages alone that the wheel asks for.
RUN sed -n 's/^\([a-z][a-z0-9.-]*==[^ ]*\).*/\1/p' requirements.lock >constraints.txt \
    && python3 -m venv /opt/bakeoff \
    && /opt/bakeoff/bin/pip install --no-cache-dir --constraint constraints.txt dist/*.whl

FROM build AS kernel
ENV XDG_CACHE_HOME=/var/cache
# `make kernel` reads apt's lists for the sources of Linux and for newer programs, so they go last. What a run needs
# stays: the kernel and its modules, programs for its hosts, and the library that gives it a seed.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bc bison flex perl xz-utils \
    && make kernel \
    && rm -rf /var/lib/apt/lists/* /var/cache/bakeoff/apt /var/cache/bakeoff/sources /var/cache/bakeoff/kernels/*/build

FROM debian:trixie-slim AS simulator
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends passwd procps python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 bakeoff \
    && install --directory --owner bakeoff /data \
    && install --directory --mode 1777 /var/cache/bakeoff
COPY --from=build /opt/bakeoff /opt/bakeoff
# Whoever it runs as (`docker run --user`) may write into the cache.
ENV PATH=/opt/bakeoff/bin:$PATH XDG_CACHE_HOME=/var/cache MPLCONFIGDIR=/var/cache/bakeoff/matplotlib
USER 1000
WORKDIR /data
ENTRYPOINT ["bakeoff"]
CMD ["--help"]

FROM simulator
COPY --from=kernel /var/cache/bakeoff /var/cache/bakeoff
