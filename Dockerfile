# Two images: `api` serves, without torch; `worker` fits and trains, too.
#
#   docker build --target api --tag steward .
#   docker build --target worker --tag steward-worker .
#
# Arguments of builds:
#   BASE   base image; pin it: --build-arg BASE=python:3.11-slim@sha256:…
#   TORCH  where the wheel of torch lies: a page of links, or a folder in the base image; by default PyTorch's build for
#          CPUs. For GPUs: --build-arg TORCH=https://download.pytorch.org/whl/cu130/torch/
#   EXTRAS  further extras of the service, separated by commas: --build-arg EXTRAS=scaling for autoscalers
#   SOURCE_DATE_EPOCH  date of the files in Steward's wheels, in seconds

ARG BASE=python:3.11-slim

FROM ${BASE} AS wheels
ARG SOURCE_DATE_EPOCH=315532800
ENV SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH}
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE openapi.json ./
COPY app app
COPY workers workers
COPY migrations migrations
COPY clients/python clients/python
COPY examples/demos examples/demos
RUN pip install --no-cache-dir --constraint constraints.txt setuptools \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels ./clients/python . \
    && cp constraints.txt /wheels
COPY deploy/extras deploy/slim /wheels/

FROM ${BASE} AS api
RUN groupadd --system --gid 10001 steward \
    && useradd --system --uid 10001 --gid steward --create-home steward \
    && mkdir /data && chown steward:steward /data
COPY --from=wheels /wheels /wheels
ARG EXTRAS=
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt /wheels/steward_client-*.whl \
    "$(echo /wheels/steward_allocation-*.whl)${EXTRAS:+[$EXTRAS]}" \
    && python /wheels/extras "${EXTRAS}" && /wheels/slim
USER 10001
ENV STEWARD_DATA_DIR=/data STEWARD_WORKERS=0
VOLUME /data
EXPOSE 8080
CMD ["steward", "serve", "--workers", "0"]

FROM api AS worker
ARG TORCH=https://download.pytorch.org/whl/cpu/torch/
USER root
# From there alone: the package index has builds for GPUs under the same version.
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt --no-deps --no-index --find-links "${TORCH}" torch \
    && /wheels/slim
RUN pip install --no-cache-dir --constraint /wheels/constraints.txt \
    "$(echo /wheels/steward_allocation-*.whl)[archive,worker]" && /wheels/slim
USER 10001
CMD ["steward", "worker"]
