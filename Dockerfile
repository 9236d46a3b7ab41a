# Tokamak and all it needs, on Debian 12, whose packages are the reference. CUDA 13 and NCCL come from NVIDIA's image
# (of Ubuntu 22.04: its glibc is no newer than Debian's). Without them:  docker build --build-arg BACKEND=cpu .
# No docker engine has built this yet; the steps after the last FROM were run in a bare Debian 12 tree (debootstrap).
ARG BACKEND=cuda

FROM debian:12 AS base-cpu

FROM debian:12 AS base-cuda
COPY --from=nvidia/cuda:13.0.0-devel-ubuntu22.04 /usr/local/cuda-13.0 /usr/local/cuda-13.0
COPY --from=nvidia/cuda:13.0.0-devel-ubuntu22.04 /usr/include/nccl*.h /usr/include/
COPY --from=nvidia/cuda:13.0.0-devel-ubuntu22.04 /usr/lib/x86_64-linux-gnu/libnccl* /usr/lib/x86_64-linux-gnu/
ENV PATH=/usr/local/cuda-13.0/bin:${PATH}

FROM base-${BACKEND}
WORKDIR /tokamak
COPY scripts/install_deps.sh scripts/
RUN scripts/install_deps.sh build quickstart test cluster package

# Not the builder's own processor: the image should run on any with AVX2.
ARG MARCH=x86-64-v3
ARG BACKEND
COPY . .
RUN cmake --preset ${BACKEND} -DTOKAMAK_MARCH=${MARCH} && cmake --build --preset ${BACKEND}

ENV PATH=/tokamak/build:${PATH} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
CMD ["tokamak", "--help"]
