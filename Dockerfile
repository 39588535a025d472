FROM python:3.11-slim

RUN groupadd --system steward && useradd --system --gid steward --create-home steward \
    && mkdir /data && chown steward:steward /data
WORKDIR /srv/steward
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE openapi.json ./
COPY app app
COPY workers workers
COPY migrations migrations
COPY clients/python clients/python
COPY examples/demos examples/demos
RUN pip install --no-cache-dir --constraint constraints.txt ./clients/python '.[archive,worker]'

USER steward
ENV STEWARD_DATA_DIR=/data
VOLUME /data
EXPOSE 8080
CMD ["steward", "serve"]
