# Proctor's image. Targets: slim holds the harness and git, agents the vendors' CLIs as well.
#
#   docker build --target slim -t proctor .
#   docker build --target agents -t registry.example.com/proctor:agents .   # for your own registry: see docs/image.md
#
# A release passes both bases by digest; a build by hand takes what the tags name today.
ARG GOLANG=docker.io/library/golang:1.26-bookworm
ARG NODE=docker.io/library/node:20-bookworm-slim
ARG DEBIAN=docker.io/library/debian:bookworm-slim

FROM --platform=$BUILDPLATFORM ${GOLANG} AS build
ARG TARGETARCH VERSION=dev COMMIT= DATE=
WORKDIR /src
COPY . .
RUN GOARCH=$TARGETARCH make program VERSION="$VERSION" COMMIT="$COMMIT" DATE="$DATE" OUT=/out

FROM --platform=$BUILDPLATFORM ${NODE} AS clis
ARG TARGETARCH
WORKDIR /clis
COPY image/agents ./
# npm takes the packages of one architecture, by the lock files' checksums, and runs none of their scripts.
RUN for agent in claude-code codex; do (cd $agent && npm ci --ignore-scripts --no-audit --no-fund --os=linux --libc=glibc --cpu="$([ "$TARGETARCH" = arm64 ] && echo arm64 || echo x64)") || exit 1; done \
 && mkdir /agents && mv claude-code/node_modules/@anthropic-ai/claude-code-linux-* /agents/claude-code && mv codex/node_modules/@openai/codex-linux-*/vendor/* /agents/codex \
 && test -x /agents/claude-code/claude && test -x /agents/codex/bin/codex

FROM ${DEBIAN} AS slim
# Debian's package holds git, git-shell and scalar twice. The second git becomes a link; what serves, mails or speaks WebDAV stays out. In the same step,
# for a later one would make the image larger.
RUN apt-get update -q && apt-get install -qy --no-install-recommends git ca-certificates tini \
 && ln -sf ../../bin/git /usr/lib/git-core/git && cd /usr/lib/git-core \
 && rm git-daemon git-http-push git-imap-send git-shell scalar /usr/bin/git-shell /usr/bin/scalar \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/cache/debconf /var/log/apt /var/log/dpkg.log /var/log/alternatives.log \
 && ln -s proctor /usr/local/bin/proctor-action
COPY --from=build /out/proctor /usr/local/bin/proctor
# No USER: the harness gives agents and gates users of their own, and a runner's mounts belong to whoever the runner is.
ENTRYPOINT ["/usr/bin/tini", "-g", "--", "/usr/local/bin/proctor"]

FROM slim AS agents
COPY --from=clis /agents /opt/agents
ENV PATH=/opt/agents/claude-code:/opt/agents/codex/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# What a build without a target makes.
FROM slim
