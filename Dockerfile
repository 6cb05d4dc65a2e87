# BraidDB's packages, built from this tree with Debian's packages, and an image that has them installed.
#
#   docker build -t braiddb .
#   docker run --rm -v /mnt/pmem0:/data braiddb check /data/example
#
# Databases lie in a mounted directory. Emulated persistent memory needs a larger /dev/shm (--shm-size).
FROM debian:12-slim AS build
# Debian 12 keeps one version of each package.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      g++ cmake ninja-build dpkg-dev git ca-certificates \
      libpmem-dev libpmemobj-dev libpmempool-dev libnuma-dev libxxhash-dev libjemalloc-dev \
      libboost-program-options-dev nlohmann-json3-dev libgtest-dev libedit-dev python3 \
 && rm -rf /var/lib/apt/lists/*
COPY . /braiddb
WORKDIR /braiddb
RUN scripts/package --output /packages

FROM debian:12-slim
COPY --from=build /packages/libbraiddb0_*.deb /packages/braiddb-tools_*.deb /packages/
RUN apt-get update \
 && apt-get install -y --no-install-recommends /packages/*.deb \
 && rm -rf /var/lib/apt/lists/* /packages \
 && useradd --uid 1000 --create-home braiddb
USER 1000
VOLUME /data
WORKDIR /data
ENTRYPOINT ["braiddb"]
CMD ["--help"]
