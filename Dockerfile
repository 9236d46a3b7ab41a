# Tokamak and all it needs. With NVIDIA's base image: CUDA 13. Without:  docker build --build-arg BASE=debian:12 .
# Not built by docker so far (no engine where this was written): the same steps were run in a plain Debian 12 and in a
# plain Ubuntu 24.04 tree. Ubuntu has Catch2 3, and the tests want 2.13: run scripts/test.sh on Debian's base.
ARG BASE=nvidia/cuda:13.0.0-devel-ubuntu24.04
FROM ${BASE}

WORKDIR /tokamak
COPY scripts/install_deps.sh scripts/
RUN scripts/install_deps.sh build quickstart

# Not the builder's own processor: the image should run on any with AVX2.
ARG MARCH=x86-64-v3
COPY . .
RUN cmake --preset cpu -DTOKAMAK_TESTS=OFF -DTOKAMAK_MARCH=${MARCH} && cmake --build --preset cpu --target tokamak

ENV PATH=/tokamak/build:${PATH} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
CMD ["tokamak", "--help"]
